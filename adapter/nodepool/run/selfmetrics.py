"""The metrics that ``nodepool`` exposes about itself, collected from its parts at each scrape.

Labels are the namespaces, workloads and node pools of the plan, at most :data:`MOST`, and fixed
sets of reasons. Pods and nodes are not labels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from adapter import __version__
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.plan.order import Plan
from adapter.nodepool.run import selffamilies as families
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.leader import Election
from adapter.nodepool.run.selffamilies import MOST
from adapter.nodepool.run.watches import Watches
from apiservice.runtime.background import Background
from apiservice.selfmetrics.families import Row


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
        yield families.BUILD.rows([((__version__, "nodepool"), 1)])
        yield families.LEADING.one(leading)
        yield families.APPLY.one(state.apply)
        yield families.FROZEN.one(bool(state.frozen))
        yield families.ROUNDS.one(state.rounds)
        yield families.BROKEN.one(state.broken)
        yield families.BACKGROUND.by(self._background.failures)
        yield families.ROUND_SECONDS.one(state.round_seconds)
        yield families.METHOD.by({state.method: 1} if state.method else {})
        # A replica that is not the leader has no current plan.
        if leading:
            if state.planned_at is not None:
                yield families.PLANNED.one(state.planned_at)
            if state.plan is not None:
                yield from self._planned(state.plan)
            yield from self._pools()
            if state.apply:
                yield families.HISTORY.one(not self._controller.history_problem)
        status = self._controller.cluster.autoscaler
        if status is not None and status.written is not None:
            yield families.STATUS_AGE.one(max(0.0, now - status.written))
        yield from self._writes()
        yield from self._watched()

    def _planned(self, plan: Plan) -> Iterator[Metric]:
        headroom: list[Row] = []
        ready: list[Row] = []
        for order in plan.orders[:MOST]:
            first = order.workloads[0] if order.workloads else None
            # Shapes without a workload may share these labels.
            labels = order.namespace, f"{first.kind}/{first.name}" if first else "", order.pool
            headroom.append((labels, order.replicas))
            if order.ready is not None:
                ready.append((labels, order.ready))
        yield families.HEADROOM.rows(headroom)
        yield families.READY.rows(ready)
        yield families.GPUS.one(
            sum(order.replicas * (gpus(order.shape) or 0) for order in plan.orders)
        )
        yield families.UNLISTED.one(max(0, len(plan.orders) - MOST))
        reasons: Counter[str] = Counter()
        for order in plan.orders:
            reasons.update({reason.code for reason in order.reasons})
        yield families.BY_REASON.by(reasons)
        recent = list(self._controller.ledger.histories.items())[-MOST:]
        yield families.WANTED.rows(
            ((*ref,), history.recent[-1].pods) for ref, history in recent if history.recent
        )

    def _pools(self) -> Iterator[Metric]:
        state, ledger = self._controller.state, self._controller.ledger
        boots: list[Row] = []
        backoffs: list[Row] = []
        traps: list[Row] = []
        for name, pool in islice(state.pools.items(), MOST):
            if pool.boot_seconds is not None:
                boots.append(((name,), pool.boot_seconds))
            backoffs.append(((name,), pool.backoff_until is not None))
            traps.extend(((name, str(trap)), 1.0) for trap in sorted(pool.traps))
        yield families.BOOT.rows(boots)
        yield families.BACKOFF.rows(backoffs)
        yield families.TRAP.rows(traps)
        spent = islice(sorted(ledger.gpu_hours.items()), MOST)
        yield families.SPENT.rows(((name,), hours * 3600) for name, hours in spent)
        idle: Counter[str] = Counter()
        for row in state.idle:
            idle[row.pod.namespace] += row.pod.gpus
        yield families.IDLE.rows(
            ((namespace,), count) for namespace, count in idle.most_common(MOST)
        )

    def _writes(self) -> Iterator[Metric]:
        writer, state = self._controller.writer, self._controller.state
        yield families.APPLIED.by(writer.done)
        failed: Counter[tuple[str, str]] = Counter()
        for (kind, why), count in writer.failed.items():
            failed[kind if kind in families.KINDS else families.OTHER, why] += count
        yield families.FAILED.pairs(failed, (*families.KINDS, families.OTHER))
        yield families.REFUSED.by(Counter(row.failure for row in state.outcomes if row.failure))
        yield families.SHORT.one(len(state.shortfalls))
        yield families.LEFT_OUT.by(state.left_out)
        yield families.MISSING.by(self._controller.values.failures)

    def _watched(self) -> Iterator[Metric]:
        reflectors = list(self._watches.reflectors())
        yield families.SYNCED.rows(((name,), each.synced) for name, each in reflectors)
        yield families.UNDECODED.rows(((name,), each.rejected) for name, each in reflectors)
