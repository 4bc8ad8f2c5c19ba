"""The loop: look, plan, say what is new, and apply.

When the API server is away nothing is planned: headroom stays as it is, and ends by its
lifeline if that lasts. Every round is bounded in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from adapter.hpa import Values
from adapter.nodepool.capacity import Way
from adapter.nodepool.cluster import Cluster
from adapter.nodepool.demand import WorkloadRef
from adapter.nodepool.events import Events
from adapter.nodepool.ledger import Ledger, pools_of
from adapter.nodepool.ledgerstore import LedgerStore
from adapter.nodepool.lifeline import Lifelines
from adapter.nodepool.limits import Limits
from adapter.nodepool.metricvalues import MetricValues
from adapter.nodepool.observe import Seen, observe
from adapter.nodepool.orders import Orders
from adapter.nodepool.plan import Plan, plan
from adapter.nodepool.probe import Probe
from adapter.nodepool.reports import Reports
from adapter.nodepool.seen.status import Status
from adapter.nodepool.serverside import Call, Writer
from adapter.nodepool.state import State
from adapter.nodepool.targets import Target, by_workload, targets
from adapter.nodepool.utilization import Utilization
from adapter.nodepool.ways import capacitybuffer
from adapter.nodepool.ways.detect import Choice, Served, discover
from adapter.settings.nodepool import NodepoolSettings
from apiservice.kubeclient import ClusterAnswerError
from apiservice.outages import Outages

log = structlog.get_logger(__name__)

_VALUES: Final = 8.0
"""Seconds that all metrics of a round may take."""
_DISCOVERY: Final = 300.0
"""Seconds between looks at what the API server serves."""
_ROUND: Final = 120.0
"""Seconds after which a round is given up."""


class Controller:
    """One cluster's controller. ``lead`` runs while this process may act."""

    def __init__(
        self,
        settings: NodepoolSettings,
        namespace: str,
        cluster: Cluster,
        call: Call,
        may_write: Callable[[], bool],
        watched: Callable[[float], str],
        started: Callable[[Served], None],
        ledger: Ledger,
        reports: Reports,
        clock: Callable[[], float] = time.time,
        outages: Outages | None = None,
    ) -> None:
        """``watched`` says why the collections cannot be used; ``started`` is told what is
        served, so that it is watched."""
        self._settings = settings
        self._cluster = cluster
        self._call = call
        self._watched = watched
        self._started = started
        self.clock = clock
        self.ledger = ledger
        self._reports = reports
        self._outages = outages or Outages()
        self.writer = Writer(call, may_write)
        self.values = MetricValues(call)
        self.lifelines = Lifelines(self.writer, settings.lifeline, settings.placeholder.image)
        self._probe = Probe(self.writer, self.lifelines, settings, namespace)
        self._orders = Orders(self.writer, self.lifelines, settings)
        self._events = Events(self.writer)
        self._store = LedgerStore(self.writer, ledger, namespace, settings.history)
        self.utilization = Utilization(self.values, self.writer)
        self.state = State(clock(), settings.apply)
        self.served = Served()
        self._discovered = 0.0

    @property
    def settings(self) -> NodepoolSettings:
        """Those in force."""
        return self._settings

    @property
    def discovered(self) -> bool:
        """What the API server serves is known."""
        return self._discovered > 0

    @property
    def autoscaler_status(self) -> Status | None:
        """The cluster-autoscaler's word; None where there is none."""
        return next(iter(self._cluster.status), None)

    @property
    def history_problem(self) -> str:
        """Why what was learned would not outlive this process; empty while it would."""
        return self._store.problem

    def use(self, settings: NodepoolSettings) -> None:
        """Take up the kill switch and the limits from a changed file."""
        taken = {"stop": settings.stop, "limits": settings.limits}
        self._settings = self._settings.model_copy(update=taken)
        if settings != self._settings:
            log.warning("of section nodepool only stop and limits change without a restart")

    async def lead(self) -> None:
        """Plan and act every interval until cancelled."""
        self.lifelines.forget()
        self._store.forget()
        self._probe.forget()
        # Liveness counts from here: a follower has had no rounds.
        self.state.ended_at = self.clock()
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(_ROUND):
                    await self.round(self.clock())
            except TimeoutError:
                self._freeze(f"the last round took more than {_ROUND:.0f} s and was given up")
            except (ClusterAnswerError, msgspec.DecodeError) as error:
                self._freeze(str(error))
            except Exception as error:
                self.state.broken += 1
                self._freeze(f"the round failed: {type(error).__name__}: {error}")
                log.exception("round failed", error=str(error))
            took = asyncio.get_running_loop().time() - began
            self.state.round_seconds, self.state.ended_at = took, self.clock()
            await asyncio.sleep(max(0.0, self._settings.interval - took))

    async def round(self, now: float) -> Plan | None:
        """Look and plan once, and apply if this is no dry run.

        Returns:
            The plan; None where there is nothing to plan from.
        """
        await self.look(now)
        problem = self._watched(now)
        if problem:
            self._freeze(problem)
            return None
        if self.state.frozen:
            log.info("planning again", was=self.state.frozen)
            self.state.frozen = ""
            self._outages.ends(self)
        choice = await self._probe.way(self.served, self._cluster.buffers, now)
        await self._store.read(now)
        seen = await self._observe(now)
        decided = plan(seen.demand, seen.capacity, self._limits(), now)
        self._note(decided, seen, choice, now)
        if self._settings.apply:
            await self._act(decided, choice, now)
            await self._store.write(now)
        return decided

    async def look(self, now: float) -> None:
        """Ask what is served, now and then."""
        if self._discovered and now - self._discovered < _DISCOVERY:
            return
        served = await discover(self._call)
        self._discovered = now
        if served != self.served:
            log.info("served", **{name: getattr(served, name) for name in served.__slots__})
        self.served = served
        self.values.version = served.custom_metrics or self.values.version
        self._started(served)

    async def _observe(self, now: float) -> Seen:
        cluster, settings = self._cluster, self._settings
        pods_of = by_workload(cluster.pods)
        found = targets(cluster, pods_of, settings.namespaces)
        values = await self.values.read(found.targets, _VALUES)
        self._reports.boots(cluster, self.ledger, settings.pool_labels, now)
        seen = observe(
            cluster,
            found.targets,
            values,
            pods_of,
            self.ledger.known(),
            settings.pool_labels,
            now,
            jobs=settings.jobs,
            within=settings.namespaces,
        )
        if not settings.apply:
            seen = self._reports.as_if(seen)
        await self._use(found.targets, values, now)
        self.ledger.learn(seen.demand, now)
        planned = self.state.plan.orders if self.state.plan else ()
        self.ledger.spend(
            seen.capacity.headroom,
            pools_of(planned, cluster.buffers, cluster.placeholders),
            settings.limits.max_gpus_per_pool,
            now,
        )
        self.state.left_out = found.left_out + seen.left_out
        return seen

    async def _use(
        self,
        found: Sequence[Target],
        values: Mapping[WorkloadRef, tuple[Values, ...]],
        now: float,
    ) -> None:
        """Look at what GPUs are used for; write deletion costs where that is wished."""
        settings = self._settings
        fresh = await self.utilization.look(
            self._cluster, self._limits(), settings.pool_labels, now
        )
        self.state.idle = self.utilization.idle
        if fresh and settings.apply and settings.deletion_cost:
            await self.utilization.write_costs(self._cluster, found, values)

    def _limits(self) -> Limits:
        settings = self._settings
        return Limits(
            **settings.limits.model_dump(),
            deadman_seconds=settings.lifeline,
            enabled=not settings.stop,
        )

    async def _act(self, decided: Plan, choice: Choice, now: float) -> None:
        there = [*self._cluster.buffers, *self._cluster.placeholders]
        classes = {row.name: row for row in self._cluster.classes}
        outcomes = await self._orders.carry_out(
            decided.orders, there, choice, self.served, classes, now
        )
        self.state.outcomes = tuple(outcomes)
        await self._events.tell(outcomes, choice.way, now)

    def _note(self, decided: Plan, seen: Seen, choice: Choice, now: float) -> None:
        state = self.state
        way = choice.way.value if choice.way is not None else ""
        if (way, choice.reason) != (state.way, state.way_reason):
            log.info("way", way=way or "none yet", why=choice.reason)
        state.way, state.way_reason = way, choice.reason
        state.pools = seen.capacity.pools
        state.shortfalls = {
            row.key: text
            for row in self._cluster.buffers
            if row.way is Way.BUFFER and (text := capacitybuffer.shortfall(row))
        }
        self._reports.autoscalers(self._cluster)
        self._reports.foreign(self._cluster)
        self._reports.say(decided, state)
        state.plan, state.planned_at = decided, now
        state.rounds += 1

    def _freeze(self, problem: str) -> None:
        if problem != self.state.frozen:
            # Where a watch has said that the API server is away, this only follows from it.
            first = self._outages.begins(self, problem.partition(": ")[2] or problem)
            say = log.warning if first else log.info
            say("nothing is planned, headroom stays as it is", problem=problem)
        self.state.frozen = problem
