"""The metrics that ``nodepool`` exposes about itself, collected from its parts at each scrape.

Labels are the namespaces, workloads and node pools of the plan, at most :data:`MOST`, and fixed
sets of reasons. Pods and nodes are not labels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from adapter import __version__
from adapter.nodepool.act.serverside import KINDS as APPLIED_KINDS
from adapter.nodepool.act.serverside import WriteFailure
from adapter.nodepool.model.reason import CODES
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.plan.order import Plan
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.leader import Election
from adapter.nodepool.run.watches import Watches
from apiservice.runtime.background import Background
from apiservice.selfmetrics.families import OTHER, Row, counter, gauge

MOST: Final = 500
"""Series of one metric that has a label for each workload, node pool or namespace. Further series
are left out; orders that are left out are counted."""
KINDS: Final = (*APPLIED_KINDS, "Event")
"""Kinds of the objects that the controller writes."""
_ORDER: Final = ("namespace", "workload", "pool")

BUILD: Final = gauge(
    "gma_build_info", "1, labeled with the version of this process.", "version", "component"
)
LEADING: Final = gauge("gma_nodepool_leading", "1 while this replica is the leader and plans.")
APPLY: Final = gauge(
    "gma_nodepool_apply", "1 while the controller writes to the cluster, 0 in a dry run."
)
FROZEN: Final = gauge(
    "gma_nodepool_frozen",
    "1 while the controller does not plan because it cannot read the cluster.",
)
ROUNDS: Final = counter("gma_nodepool_rounds_total", "Rounds of planning.")
BROKEN: Final = counter(
    "gma_nodepool_rounds_broken_total", "Rounds that ended with an error in the controller."
)
BACKGROUND: Final = counter(
    "gma_background_failures_total",
    "Unexpected failures of background tasks. The task runs again after a pause.",
    "task",
    known=("controller", "configuration", "discovery"),
)
ROUND_SECONDS: Final = gauge("gma_nodepool_round_seconds", "Duration of the last round.")
PLANNED: Final = gauge(
    "gma_nodepool_last_plan_timestamp_seconds",
    "Time of the last plan, in epoch seconds. Absent before the first.",
)
METHOD: Final = gauge(
    "gma_nodepool_provisioning_method",
    "1 for the method that nodepool uses to ask for nodes.",
    "method",
    known=("CapacityBuffer", "Placeholder"),
)
HISTORY: Final = gauge("gma_nodepool_history_ok", "0 while the history cannot be read or written.")
HEADROOM: Final = gauge("gma_nodepool_headroom_pods", "Desired headroom in pods.", *_ORDER)
READY: Final = gauge(
    "gma_nodepool_headroom_ready_pods",
    "Desired headroom in pods for which Ready nodes have free capacity now.",
    *_ORDER,
)
GPUS: Final = gauge("gma_nodepool_headroom_gpus", "GPUs of all desired headroom.")
UNLISTED: Final = gauge(
    "gma_nodepool_orders_unlisted",
    "Orders that have no series of their own, because there are too many.",
)
BY_REASON: Final = gauge(
    "gma_nodepool_orders_by_reason",
    "Orders by the reason for their size.",
    "reason",
    known=tuple(CODES),
)
WANTED: Final = gauge(
    "gma_nodepool_wanted_pods",
    "Pods that the metrics of a workload call for, before limits, tolerance and rounding.",
    *("namespace", "kind", "name"),
)
BOOT: Final = gauge(
    "gma_nodepool_boot_seconds",
    "90th percentile of the time from the order to allocatable GPUs.",
    "pool",
)
BACKOFF: Final = gauge(
    "gma_nodepool_pool_backoff", "1 while the node autoscaler backs off from the node pool.", "pool"
)
TRAP: Final = gauge(
    "gma_nodepool_pool_trap",
    "1 if the node pool has a property that confuses node autoscalers.",
    *("pool", "trap"),
)
SPENT: Final = gauge(
    "gma_nodepool_headroom_gpu_seconds_today", "GPU-seconds of headroom in this UTC day.", "pool"
)
IDLE: Final = gauge(
    "gma_nodepool_idle_gpus",
    "GPUs that are allocated to pods and have been idle for some time.",
    "namespace",
)
STATUS_AGE: Final = gauge(
    "gma_nodepool_autoscaler_status_age_seconds",
    "Age of the cluster-autoscaler's status: time since it last checked its node groups.",
)
APPLIED: Final = counter(
    "gma_nodepool_applied_total", "Writes to the API server that succeeded.", "kind", known=KINDS
)
FAILED: Final = counter(
    "gma_nodepool_failed_total",
    "Writes to the API server that failed.",
    *("kind", "reason"),
    known=tuple(map(str, WriteFailure)),
)
REFUSED: Final = gauge(
    "gma_nodepool_orders_refused",
    "Orders that the controller cannot carry out now.",
    "reason",
    known=(*map(str, WriteFailure), "lifeline", "priority", "method", "error"),
)
SHORT: Final = gauge(
    "gma_nodepool_headroom_short",
    "CapacityBuffers that the node autoscaler reports it cannot fill.",
)
LEFT_OUT: Final = gauge(
    "gma_nodepool_left_out",
    "HPAs, Jobs and headroom objects that the plan leaves out.",
    "reason",
    known=(
        *("target_unknown", "no_metric", "annotation", "second_hpa", "job_suspended"),
        "exclusive_topology",
        "headroom_foreign",
    ),
)
MISSING: Final = counter(
    "gma_nodepool_values_missing_total",
    "Metric requests that got no value, by HTTP status or error.",
    "reason",
    known=(
        *("late", "selector", "unreachable", "garbled"),
        *("400", "401", "403", "404", "429", "500", "502", "503", "504"),
    ),
)
SYNCED: Final = gauge(
    "gma_nodepool_watch_synced", "1 after the first complete list of the collection.", "collection"
)
UNDECODED: Final = counter(
    "gma_nodepool_objects_rejected_total",
    "Objects that the controller could not decode.",
    "collection",
)
FAMILIES: Final = (
    *(BUILD, LEADING, APPLY, FROZEN, ROUNDS, BROKEN, BACKGROUND, ROUND_SECONDS, PLANNED),
    *(METHOD, HISTORY, HEADROOM, READY, GPUS, UNLISTED, BY_REASON, WANTED),
    *(BOOT, BACKOFF, TRAP, SPENT, IDLE, STATUS_AGE),
    *(APPLIED, FAILED, REFUSED, SHORT, LEFT_OUT, MISSING, SYNCED, UNDECODED),
)
"""All metrics of ``nodepool``, except the ``process_…`` metrics."""


class NodepoolMetrics(Collector):
    """Collects the metrics of a controller."""

    def __init__(
        self,
        controller: NodepoolController,
        watches: Watches,
        election: Election | None,
        clock: Callable[[], float] = time.time,
        background: Background | None = None,
    ) -> None:
        self._controller = controller
        self._watches = watches
        self._election = election
        self._clock = clock
        self._background = background or Background()

    def describe(self) -> Iterator[Metric]:
        """Yield nothing at registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all current metrics."""
        now, state = self._clock(), self._controller.state
        leading = self._election is None or self._election.leading
        yield BUILD.rows([((__version__, "nodepool"), 1)])
        yield LEADING.one(leading)
        yield APPLY.one(state.apply)
        yield FROZEN.one(bool(state.frozen))
        yield ROUNDS.one(state.rounds)
        yield BROKEN.one(state.broken)
        yield BACKGROUND.by(self._background.failures)
        yield ROUND_SECONDS.one(state.round_seconds)
        yield METHOD.by({state.method: 1} if state.method else {})
        # A replica that is not the leader has no current plan.
        if leading:
            if state.planned_at is not None:
                yield PLANNED.one(state.planned_at)
            if state.plan is not None:
                yield from self._plan_metrics(state.plan)
            yield from self._pool_metrics()
            if state.apply:
                yield HISTORY.one(not self._controller.history_problem)
        status = self._controller.cluster.autoscaler
        if status is not None and status.written is not None:
            yield STATUS_AGE.one(max(0.0, now - status.written))
        yield from self._write_metrics()
        yield from self._watch_metrics()

    def _plan_metrics(self, plan: Plan) -> Iterator[Metric]:
        headroom: list[Row] = []
        ready: list[Row] = []
        for order in plan.orders[:MOST]:
            first = order.workloads[0] if order.workloads else None
            # Shapes without a workload may share these labels.
            labels = order.namespace, f"{first.kind}/{first.name}" if first else "", order.pool
            headroom.append((labels, order.replicas))
            if order.ready is not None:
                ready.append((labels, order.ready))
        yield HEADROOM.rows(headroom)
        yield READY.rows(ready)
        yield GPUS.one(sum(order.replicas * (gpus(order.shape) or 0) for order in plan.orders))
        yield UNLISTED.one(max(0, len(plan.orders) - MOST))
        reasons: Counter[str] = Counter()
        for order in plan.orders:
            reasons.update({reason.code for reason in order.reasons})
        yield BY_REASON.by(reasons)
        recent = list(self._controller.ledger.histories.items())[-MOST:]
        yield WANTED.rows(
            ((*ref,), history.recent[-1].pods) for ref, history in recent if history.recent
        )

    def _pool_metrics(self) -> Iterator[Metric]:
        state, ledger = self._controller.state, self._controller.ledger
        boots: list[Row] = []
        backoffs: list[Row] = []
        traps: list[Row] = []
        for name, pool in islice(state.pools.items(), MOST):
            if pool.boot_seconds is not None:
                boots.append(((name,), pool.boot_seconds))
            backoffs.append(((name,), pool.backoff_until is not None))
            traps.extend(((name, str(trap)), 1.0) for trap in sorted(pool.traps))
        yield BOOT.rows(boots)
        yield BACKOFF.rows(backoffs)
        yield TRAP.rows(traps)
        spent = islice(sorted(ledger.gpu_hours.items()), MOST)
        yield SPENT.rows(((name,), hours * 3600) for name, hours in spent)
        idle: Counter[str] = Counter()
        for row in state.idle:
            idle[row.pod.namespace] += row.pod.gpus
        yield IDLE.rows(((namespace,), count) for namespace, count in idle.most_common(MOST))

    def _write_metrics(self) -> Iterator[Metric]:
        writer, state = self._controller.writer, self._controller.state
        yield APPLIED.by(writer.done)
        failed: Counter[tuple[str, str]] = Counter()
        for (kind, why), count in writer.failed.items():
            failed[kind if kind in KINDS else OTHER, why] += count
        yield FAILED.pairs(failed, (*KINDS, OTHER))
        yield REFUSED.by(Counter(row.failure for row in state.outcomes if row.failure))
        yield SHORT.one(len(state.shortfalls))
        yield LEFT_OUT.by(state.left_out)
        yield MISSING.by(self._controller.values.failures)

    def _watch_metrics(self) -> Iterator[Metric]:
        reflectors = list(self._watches.reflectors())
        yield SYNCED.rows(((name,), reflector.synced) for name, reflector in reflectors)
        yield UNDECODED.rows(((name,), reflector.rejected) for name, reflector in reflectors)
