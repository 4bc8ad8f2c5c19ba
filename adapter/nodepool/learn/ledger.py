"""What is kept between rounds: histories, boot times, and the cost of headroom today.

Kept in memory, written to a ConfigMap now and then (:mod:`adapter.nodepool.act.ledgerstore`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from adapter.nodepool.learn.boots import BootTimes
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.pace import NEW, Pace, follow
from adapter.nodepool.model.capacity import Headroom
from adapter.nodepool.model.demand import JOB_QUEUE, Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.model.shape import Shape, gpus, key

_DAY = 86400
_MOST = 2000
"""Workloads remembered; beyond that those seen longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What is remembered of earlier rounds."""

    histories: Mapping[WorkloadRef, DemandHistory]
    known_at: Mapping[WorkloadRef, float]
    boots: Mapping[str, float]
    """Pool to its p90."""
    gpu_hours: Mapping[str, float]
    """Pool to GPU-hours of headroom spent in the running day."""
    queues: Mapping[tuple[str, str], Shape]
    """Shapes of Jobs that were seen before, by namespace and the shape's key."""
    paces: Mapping[WorkloadRef, Pace] = field(default_factory=dict)
    """How the targets of HPAs were scaled lately."""


@dataclass(slots=True)
class Ledger:
    """Only the loop changes it."""

    histories: dict[WorkloadRef, DemandHistory] = field(default_factory=dict)
    known_at: dict[WorkloadRef, float] = field(default_factory=dict)
    queues: dict[tuple[str, str], Shape] = field(default_factory=dict)
    paces: dict[WorkloadRef, Pace] = field(default_factory=dict)
    """Of the workloads that there are; not kept across restarts."""
    boots: BootTimes = field(default_factory=BootTimes)
    day: int = 0
    """Days since the epoch (UTC) that ``gpu_hours`` is of."""
    gpu_hours: dict[str, float] = field(default_factory=dict)
    counted_at: float | None = None

    def known(self) -> LedgerView:
        """What an observation needs of it."""
        pools = self.boots.seconds
        p90s = {pool: found for pool in pools if (found := self.boots.p90(pool)) is not None}
        return LedgerView(
            self.histories, self.known_at, p90s, self.gpu_hours, self.queues, self.paces
        )

    def learn(self, demand: Iterable[Demand], now: float) -> None:
        """Remember what was wanted, where it is known, and how HPAs have scaled."""
        paces = {}
        for row in demand:
            queue = row.workload.kind == JOB_QUEUE
            if not queue:
                pace = self.paces.get(row.workload, NEW)
                paces[row.workload] = follow(pace, row.asked, row.wanted, now)
            if row.wanted is None:
                continue
            past = self.histories.pop(row.workload, EMPTY)
            if queue and past == EMPTY and not row.wanted:
                continue
            # Popped and put back: the order of the dict is that of the last sight.
            self.histories[row.workload] = learn(past, DemandPoint(now, row.wanted))
            self.known_at[row.workload] = now
            if queue:
                self.queues[row.workload.namespace, key(row.shape)] = row.shape
        self.paces = paces
        for workload in list(self.histories)[: max(0, len(self.histories) - _MOST)]:
            self._forget(workload)

    def spend(
        self, headroom: Iterable[Headroom], pool_of: Mapping[str, str], most: int, now: float
    ) -> None:
        """Count what the headroom that is there has cost since the last time.

        Args:
            pool_of: the shape's key, with its namespace, to the pool it was ordered in.
            most: GPUs of headroom that a pool can have by the settings. What is there beyond was
                not ordered, and is not counted.
        """
        day = int(now) // _DAY
        if day != self.day:
            self.day, self.gpu_hours = day, {}
        since, self.counted_at = self.counted_at, now
        if since is None or now <= since:
            return
        there: Counter[str] = Counter()
        for row in headroom:
            pool = pool_of.get(f"{row.namespace}/{key(row.shape)}", "")
            there[pool] += row.replicas * (gpus(row.shape) or 0)
        for pool, count in there.items():
            hours = min(count, most) * (now - since) / 3600
            self.gpu_hours[pool] = self.gpu_hours.get(pool, 0.0) + hours

    def _forget(self, workload: WorkloadRef) -> None:
        self.histories.pop(workload, None)
        self.known_at.pop(workload, None)
        if workload.kind == JOB_QUEUE:
            self.queues.pop((workload.namespace, workload.name), None)
