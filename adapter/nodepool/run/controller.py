"""One round: read the cluster, plan, report changes, and apply the plan.

While the API server is unavailable, the controller does not plan. Headroom is kept until its
lifeline expires. Every round is bounded in time.

A full round reads the metrics of all HPAs once per interval. Between full rounds, changes of pods
start a round that plans with the same values. It lowers headroom that pods have taken, before the
node autoscaler provisions the same demand twice.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.hpa import Values
from adapter.nodepool.act.deletioncosts import DeletionCosts
from adapter.nodepool.act.events import Events
from adapter.nodepool.act.ledgerstore import LedgerStore
from adapter.nodepool.act.lifeline import Lifelines
from adapter.nodepool.act.methods.choice import MethodChoice, with_wait
from adapter.nodepool.act.orders import Orders
from adapter.nodepool.act.probe import Probe
from adapter.nodepool.act.serverside import Writer
from adapter.nodepool.learn import boots
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.learn.utilization import Utilization
from adapter.nodepool.model.apicall import ApiCall
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.home import Home
from adapter.nodepool.plan.limits import limits_of
from adapter.nodepool.plan.observation import PlanInput, observe
from adapter.nodepool.plan.order import Plan, pools_of
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.run import loop
from adapter.nodepool.run.changes import ChangeSignal
from adapter.nodepool.run.reports import Reports
from adapter.nodepool.run.state import ControllerState
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.metricvalues import MetricValues
from adapter.nodepool.seen.scales import Scales
from adapter.nodepool.seen.servedapis import ServedApis, discover
from adapter.nodepool.seen.targets import (
    PodsOf,
    RoundValues,
    ScaleTarget,
    ScaleTargets,
    pods_by_workload,
    targets,
    unwatched_autoscalers,
)
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from apiservice.kube.outages import Outages

log = structlog.get_logger(__name__)

_VALUES: Final = 8.0
"""Maximum seconds for reading all metrics of a round."""
_DISCOVERY: Final = 300.0
"""Seconds between discoveries of the APIs that the API server serves."""


class NodepoolController:
    """The controller of one cluster. ``lead`` runs while this replica is the leader."""

    def __init__(
        self,
        settings: NodepoolSettings,
        home: Home,
        cluster: ClusterTables,
        call: ApiCall,
        may_write: Callable[[], bool],
        watched: Callable[[float], str],
        started: Callable[[ServedApis], None],
        ledger: Ledger,
        reports: Reports,
        clock: Callable[[], float] = time.time,
        *,
        changes: ChangeSignal | None = None,
        listed: Callable[[], Awaitable[object]] = loop.at_once,
        outages: Outages | None = None,
        past: Callable[[], PrometheusOptions] | None = None,
    ) -> None:
        """Create a controller that has read nothing yet.

        Args:
            home: the namespaces of headroom.
            watched: returns why the collections cannot be used.
            started: called with the served APIs, so that their watches start.
            changes: notes the changes that start a round immediately.
            listed: returns when all collections have been listed once.
            outages: the outages of the API server.
            past: see :class:`LedgerStore`.
        """
        self._settings = settings
        self.cluster = cluster
        self._call = call
        self._watched = watched
        self._started = started
        self.clock = clock
        self.ledger = ledger
        self._reports = reports
        self._outages = outages or Outages()
        self._changes = changes or ChangeSignal()
        self._listed = listed
        self._read: RoundValues | None = None
        self._choice = MethodChoice(None, "discovery has not run yet")
        self.writer = Writer(call, may_write)
        self.values = MetricValues(call)
        self._scales = Scales(call)
        self.lifelines = Lifelines(self.writer, settings.lifeline, settings.placeholder.image)
        self._probe = Probe(self.writer, settings, home.namespace)
        self._orders = Orders(self.writer, self.lifelines, home, settings)
        self._events = Events(self.writer)
        self._store = LedgerStore(self.writer, ledger, home.namespace, settings.history, past)
        self.utilization = Utilization(self.values)
        self.deletion_costs = DeletionCosts(self.writer)
        self.state = ControllerState(clock(), settings.apply)
        self.served = ServedApis()
        self._discovered = 0.0

    @property
    def settings(self) -> NodepoolSettings:
        """The current settings."""
        return self._settings

    @property
    def discovered(self) -> bool:
        """Whether the discovery of the served APIs has succeeded."""
        return self._discovered > 0

    @property
    def history_problem(self) -> str:
        """Why the ledger is not stored; empty if it is."""
        return self._store.problem

    def use(self, settings: NodepoolSettings) -> None:
        """Use the kill switch and the limits from a changed file."""
        taken = {"stop": settings.stop, "limits": settings.limits}
        self._settings = self._settings.model_copy(update=taken)
        if settings != self._settings:
            log.warning("changes in section nodepool need a restart, except stop and limits")
        self._changes.note()

    async def lead(self) -> None:
        """Plan and act every interval until cancelled."""
        self.lifelines.forget()
        self._store.forget()
        self._probe.forget()
        self._read = None
        # Liveness starts here: a follower has no rounds.
        self.state.ended_at = self.clock()
        interval = self._settings.interval
        await loop.run(self, self._changes, self._wait_for_lists, interval, self.clock)

    async def _wait_for_lists(self) -> None:
        await self.look(self.clock())
        await self._listed()

    def freeze(self, problem: str) -> None:
        """Do not plan for now. Log a new reason."""
        if problem != self.state.frozen:
            # If a watch has logged that the API server is unavailable, do not repeat it.
            first = self._outages.begins(self, problem.partition(": ")[2] or problem)
            say = log.warning if first else log.info
            say("planning is paused, headroom is kept", problem=problem)
        self.state.frozen, self._read = problem, None

    def record_failure(self, error: Exception) -> None:
        """Log that a round failed with an unexpected error."""
        self.state.broken += 1
        self.freeze(f"the round failed: {type(error).__name__}: {error}")
        log.error("round failed", error=str(error), exc_info=error)

    def record_end(self, took: float) -> None:
        """Record the duration of a round in seconds."""
        self.state.round_seconds, self.state.ended_at = took, self.clock()

    async def round(self, now: float, *, again: bool = False) -> Plan | None:
        """Read the cluster and plan once. Apply the plan unless this is a dry run.

        Args:
            again: use the metrics of the last full round, if there was one.

        Returns:
            The plan; None if the cluster could not be read.
        """
        read = self._read if again else None
        if read is None:
            await self.look(now)
        problem = self._watched(now)
        if problem:
            self.freeze(problem)
            return None
        if self.state.frozen:
            log.info("planning again", was=self.state.frozen)
            self.state.frozen = ""
            self._outages.ends(self)
        if read is None:
            method = await self._probe.method(self.served, self.cluster.buffers, now)
            self._choice = with_wait(method, cluster_autoscaler=self.cluster.autoscaler is not None)
            await self._store.read(now)
        pods_of = pods_by_workload(self.cluster.pods)
        if read is None:
            of = unwatched_autoscalers(self.cluster, pods_of, self._settings.namespaces)
            self.cluster.scales.replace(await self._scales.read(of, _VALUES))
        scale_targets = targets(self.cluster, pods_of, self._settings.namespaces)
        if read is None:
            values = await self.values.read(scale_targets.targets, _VALUES)
        else:
            values = read.unchanged_values(scale_targets.targets)
        plan_input = self._observe(scale_targets, values, pods_of, now)
        if read is None:
            await self._use(scale_targets.targets, values, now)
            self._read = RoundValues.of(scale_targets.targets, values)
        objects = [*self.cluster.buffers, *self.cluster.placeholders]
        self.ledger.learn(plan_input.demand, now)
        ordered = self.state.plan.orders if self.state.plan else ()
        most = self._settings.limits.max_gpus_per_pool
        self.ledger.spend(plan_input.capacity.headroom, pools_of(ordered, objects), most, now)
        buffers = self._choice.method is not ProvisioningMethod.PLACEHOLDER
        limits = limits_of(self._settings, buffers=buffers)
        decided = plan(plan_input.demand, plan_input.capacity, limits, now)
        self._reports.note(decided, plan_input, self._choice, self.cluster, self.state, now)
        if self._settings.apply:
            await self._act(decided, objects, self._choice, now)
            if read is None:
                await self._store.write(now)
        return decided

    async def look(self, now: float) -> None:
        """Discover the served APIs from time to time."""
        if self._discovered and now - self._discovered < _DISCOVERY:
            return
        served = await discover(self._call)
        self._discovered = now
        if served != self.served:
            log.info("served", **{name: getattr(served, name) for name in served.__slots__})
        self.served = served
        self.values.version = served.custom_metrics or self.values.version
        self._started(served)

    def _observe(
        self,
        scale_targets: ScaleTargets,
        values: Mapping[WorkloadRef, tuple[Values, ...]],
        pods_of: PodsOf,
        now: float,
    ) -> PlanInput:
        cluster, settings = self.cluster, self._settings
        self.ledger.boots = boots.watch(self.ledger.boots, cluster, settings.pool_labels, now)
        plan_input = observe(
            cluster,
            scale_targets.targets,
            values,
            pods_of,
            self.ledger,
            settings.pool_labels,
            now,
            jobs=settings.jobs,
            within=settings.namespaces,
        )
        self.state.left_out = scale_targets.left_out + plan_input.left_out
        return plan_input if settings.apply else self._reports.as_if_applied(plan_input)

    async def _use(
        self,
        scale_targets: Sequence[ScaleTarget],
        values: Mapping[WorkloadRef, tuple[Values, ...]],
        now: float,
    ) -> None:
        """Read the utilisation of GPUs. Write deletion costs if configured."""
        settings = self._settings
        fresh = await self.utilization.look(
            self.cluster, limits_of(settings).price, settings.pool_labels, now
        )
        self.state.idle = self.utilization.idle
        if fresh and settings.apply and settings.deletion_cost:
            await self.deletion_costs.write(
                self.cluster, scale_targets, values, self.utilization.smoothed
            )

    async def _act(
        self, decided: Plan, objects: list[HeadroomObject], choice: MethodChoice, now: float
    ) -> None:
        classes = {row.name: row for row in self.cluster.classes}
        outcomes = await self._orders.carry_out(
            decided.orders, objects, choice, self.served, classes, now
        )
        self.state.outcomes = tuple(outcomes)
        await self._events.announce(outcomes, choice.method, now)
