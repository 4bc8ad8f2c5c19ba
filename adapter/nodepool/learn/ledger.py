"""The ledger: histories, boot times, and the cost of headroom today.

It is kept in memory and stored in a ConfigMap (:mod:`adapter.nodepool.act.ledgerstore`).
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
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources

_DAY = 86400
_MOST = 2000
"""Maximum number of workloads. Beyond that, the least recently seen are dropped."""


@dataclass(slots=True)
class Ledger:
    """Data that is kept between rounds. Only the loop changes it."""

    histories: dict[WorkloadRef, DemandHistory] = field(default_factory=dict)
    known_at: dict[WorkloadRef, float] = field(default_factory=dict)
    """Epoch seconds when a workload's demand was last known."""
    queues: dict[tuple[str, str], Shape] = field(default_factory=dict)
    """Shapes of Jobs that were seen before, by namespace and the shape's key."""
    paces: dict[WorkloadRef, Pace] = field(default_factory=dict)
    """Recent scaling of the targets of HPAs; not kept across restarts."""
    boots: BootTimes = field(default_factory=BootTimes)
    day: int = 0
    """The day of ``gpu_hours``, in days since the epoch (UTC)."""
    gpu_hours: dict[str, float] = field(default_factory=dict)
    """Pool to GPU-hours of headroom spent in that day."""
    counted_at: float | None = None
    resources: GpuResources = STANDARD
    """Those that stand for a GPU: stored shapes are counted by them again."""

    def learn(self, demand: Iterable[Demand], now: float) -> None:
        """Record the known demand, and how HPAs have scaled."""
        paces = {}
        for row in demand:
            queue = row.workload.kind == JOB_QUEUE
            if not queue:
                pace = self.paces.get(row.workload, NEW)
                paces[row.workload] = follow(pace, row.asked, row.wanted, now)
            if row.wanted is None or row.observed is None:
                continue
            past = self.histories.pop(row.workload, EMPTY)
            if queue and past == EMPTY and not row.wanted:
                continue
            # Remove and insert: the dict is ordered by the time when a workload was last seen.
            self.histories[row.workload] = learn(past, DemandPoint(now, row.observed))
            self.known_at[row.workload] = now
            if queue:
                self.queues[row.workload.namespace, key(row.shape)] = row.shape
        self.paces = paces
        for workload in list(self.histories)[: max(0, len(self.histories) - _MOST)]:
            self._forget(workload)

    def spend(
        self, headroom: Iterable[Headroom], pool_of: Mapping[str, str], most: int, now: float
    ) -> None:
        """Count the GPU-hours of the existing headroom since the last call.

        Args:
            pool_of: namespace and shape key -> pool of the order.
            most: maximum GPUs of headroom in a pool by the settings. Headroom beyond it was not
                ordered and is not counted.
        """
        day = int(now) // _DAY
        if day != self.day:
            self.day, self.gpu_hours = day, {}
        since, self.counted_at = self.counted_at, now
        if since is None or now <= since:
            return
        pool_gpus: Counter[str] = Counter()
        for row in headroom:
            pool = pool_of.get(f"{row.namespace}/{key(row.shape)}", "")
            pool_gpus[pool] += row.replicas * (gpus(row.shape) or 0)
        for pool, count in pool_gpus.items():
            hours = min(count, most) * (now - since) / 3600
            self.gpu_hours[pool] = self.gpu_hours.get(pool, 0.0) + hours

    def _forget(self, workload: WorkloadRef) -> None:
        self.histories.pop(workload, None)
        self.known_at.pop(workload, None)
        if workload.kind == JOB_QUEUE:
            self.queues.pop((workload.namespace, workload.name), None)
