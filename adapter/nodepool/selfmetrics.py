"""What ``/metrics`` of the controller says, read from its parts when asked.

Labels are namespaces, workloads and pools that headroom is planned for, bounded by
:data:`MOST`, and fixed sets of reasons; no pod and no node is ever a label.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapter.nodepool.controller import Controller
from adapter.nodepool.leader import Election
from adapter.nodepool.plan import Plan
from adapter.nodepool.shape import gpus
from adapter.nodepool.watches import Watches

MOST: Final = 500
"""Series of a kind that has a label for each workload; further ones are counted."""

_ORDER = ("namespace", "workload", "pool")


class NodepoolMetrics(Collector):
    """Collects from a controller."""

    def __init__(
        self,
        controller: Controller,
        watches: Watches,
        election: Election | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._controller = controller
        self._watches = watches
        self._election = election
        self._clock = clock

    def describe(self) -> Iterator[Metric]:
        """Nothing is collected while registering."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All metrics as of now."""
        now, state = self._clock(), self._controller.state
        leading = self._election is None or self._election.leading
        yield _gauge("gma_nodepool_leading", "1 while this replica plans.", leading)
        yield _gauge("gma_nodepool_apply", "0 in a dry run.", state.apply)
        yield _gauge(
            "gma_nodepool_frozen",
            "1 while nothing is planned because the cluster cannot be seen.",
            bool(state.frozen),
        )
        yield CounterMetricFamily("gma_nodepool_rounds", "Plans made.", value=state.rounds)
        yield _gauge("gma_nodepool_round_seconds", "What the last took.", state.round_seconds)
        way = GaugeMetricFamily(
            "gma_nodepool_way", "1 for the way that headroom is ordered by.", labels=["way"]
        )
        for name in ("CapacityBuffer", "Placeholder"):
            way.add_metric([name], float(state.way == name))
        yield way
        # Who led before knows only what was.
        if leading:
            if state.plan is not None:
                yield from self._planned(state.plan)
            yield from self._pools()
        status = self._controller.autoscaler_status
        if status is not None and status.written is not None:
            yield _gauge(
                "gma_nodepool_autoscaler_status_age_seconds",
                "Since the cluster-autoscaler last looked at its groups, by its status.",
                max(0.0, now - status.written),
            )
        yield from self._writes()
        yield from self._watched(now)

    def _planned(self, plan: Plan) -> Iterator[Metric]:
        headroom = GaugeMetricFamily(
            "gma_nodepool_headroom_pods", "Headroom as it shall be.", labels=_ORDER
        )
        ready = GaugeMetricFamily(
            "gma_nodepool_headroom_ready_pods",
            "Of it, what free room on Ready nodes holds now.",
            labels=_ORDER,
        )
        reasons: Counter[str] = Counter()
        for order in plan.orders:
            reasons.update({reason.code for reason in order.reasons})
        pods: Counter[tuple[str, str, str]] = Counter()
        room: Counter[tuple[str, str, str]] = Counter()
        for order in plan.orders[:MOST]:
            first = order.workloads[0] if order.workloads else None
            # Shapes that nothing has any more may share these labels.
            labels = order.namespace, f"{first.kind}/{first.name}" if first else "", order.pool
            pods[labels] += order.replicas
            if order.ready is not None:
                room[labels] += order.ready
        for labels, count in pods.items():
            headroom.add_metric(labels, float(count))
        for labels, count in room.items():
            ready.add_metric(labels, float(count))
        yield headroom
        yield ready
        yield _gauge(
            "gma_nodepool_headroom_gpus",
            "GPUs of all headroom as it shall be.",
            sum(order.replicas * (gpus(order.shape) or 0) for order in plan.orders),
        )
        yield _gauge(
            "gma_nodepool_orders_unlisted",
            "Orders beyond those that have series of their own.",
            max(0, len(plan.orders) - MOST),
        )
        family = GaugeMetricFamily(
            "gma_nodepool_orders_by_reason", "Orders, by what decided them.", labels=["reason"]
        )
        for code, count in sorted(reasons.items()):
            family.add_metric([code], count)
        yield family
        wanted = GaugeMetricFamily(
            "gma_nodepool_wanted_pods",
            "Pods that a workload's metrics ask for, before any limit.",
            labels=("namespace", "kind", "name"),
        )
        for ref, history in list(self._controller.ledger.histories.items())[-MOST:]:
            if history.recent:
                wanted.add_metric([*ref], float(history.recent[-1].pods))
        yield wanted

    def _pools(self) -> Iterator[Metric]:
        state, ledger = self._controller.state, self._controller.ledger
        boot = GaugeMetricFamily(
            "gma_nodepool_boot_seconds",
            "90th percentile from order to GPU allocatable.",
            labels=["pool"],
        )
        refused = GaugeMetricFamily(
            "gma_nodepool_pool_backoff", "1 while its autoscaler backs off.", labels=["pool"]
        )
        trapped = GaugeMetricFamily(
            "gma_nodepool_pool_trap", "1 where it confuses autoscalers.", labels=["pool", "trap"]
        )
        for name, pool in state.pools.items():
            if pool.boot_seconds is not None:
                boot.add_metric([name], pool.boot_seconds)
            refused.add_metric([name], float(pool.backoff_until is not None))
            for trap in sorted(pool.traps):
                trapped.add_metric([name, trap], 1.0)
        spent = GaugeMetricFamily(
            "gma_nodepool_headroom_gpu_hours_today",
            "GPU-hours of headroom in the UTC day.",
            labels=["pool"],
        )
        for name, hours in sorted(ledger.gpu_hours.items()):
            spent.add_metric([name], hours)
        idle: Counter[str] = Counter()
        for row in state.idle:
            idle[row.pod.namespace] += row.pod.gpus
        family = GaugeMetricFamily(
            "gma_nodepool_idle_gpus",
            "GPUs that pods hold and have not used for a while.",
            labels=["namespace"],
        )
        for namespace, count in idle.most_common(MOST):
            family.add_metric([namespace], count)
        yield from (boot, refused, trapped, spent, family)

    def _writes(self) -> Iterator[Metric]:
        writer, state = self._controller.writer, self._controller.state
        done = CounterMetricFamily(
            "gma_nodepool_applied", "Writes that succeeded.", labels=["kind"]
        )
        for kind, count in sorted(writer.done.items()):
            done.add_metric([kind], count)
        failed = CounterMetricFamily(
            "gma_nodepool_failed", "Writes that did not happen.", labels=["kind", "reason"]
        )
        for (kind, reason), count in sorted(writer.failed.items()):
            failed.add_metric([kind, reason], count)
        refused = GaugeMetricFamily(
            "gma_nodepool_orders_refused", "Orders not carried out now.", labels=["reason"]
        )
        reasons = Counter(row.failure for row in state.outcomes if row.failure)
        for reason, count in sorted(reasons.items()):
            refused.add_metric([reason], count)
        yield from (done, failed, refused)
        yield _gauge(
            "gma_nodepool_headroom_short",
            "Buffers that the autoscaler says it cannot fill.",
            len(state.shortfalls),
        )
        left = GaugeMetricFamily(
            "gma_nodepool_left_out", "HPAs and Jobs that nothing is planned for.", labels=["reason"]
        )
        for reason, count in sorted(state.left_out.items()):
            left.add_metric([reason], count)
        yield left
        misses = CounterMetricFamily(
            "gma_nodepool_values_missing", "Metric requests without a value.", labels=["reason"]
        )
        for reason, count in sorted(self._controller.values.failures.items()):
            misses.add_metric([reason], count)
        yield misses

    def _watched(self, now: float) -> Iterator[Metric]:
        synced = GaugeMetricFamily(
            "gma_nodepool_watch_synced", "1 once it was listed wholly.", labels=["collection"]
        )
        left = CounterMetricFamily(
            "gma_nodepool_objects_rejected",
            "Objects that could not be decoded.",
            labels=["collection"],
        )
        for name, reflector in self._watches.reflectors():
            synced.add_metric([name], float(reflector.synced))
            left.add_metric([name], reflector.rejected)
        yield synced
        yield left


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))
