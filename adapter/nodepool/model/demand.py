"""Demand of one workload: its pods, and how many it would have without limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.nodepool.model.history import EMPTY, DemandHistory
from adapter.nodepool.model.shape import Shape

JOB_QUEUE: Final = "Job"
"""``WorkloadRef.kind`` of a queue of Jobs; its name is the shape's key."""


class WorkloadRef(NamedTuple):
    """The owner of the pods: a HorizontalPodAutoscaler's target, or a queue of Jobs."""

    namespace: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Demand:
    """The current demand of one workload."""

    workload: WorkloadRef
    shape: Shape
    bound: int
    """Its pods that are bound to a node and have not ended."""
    pending: int
    """Its pods without a node. They already trigger the autoscaler."""
    wanted: int | None
    """The largest ``ceil(current x value / target)`` of its metrics, not clamped. For Jobs, the
    existing pods. None if no metric could be read."""
    max_replicas: int | None
    """None without a limit (queues of Jobs)."""
    load: float | None = None
    """``wanted`` before the HPA's tolerance and rounding; None if it is ``wanted`` itself."""
    tolerance: float = 0.0
    """Fraction by which the load may exceed the pods before the HPA adds any."""
    history: DemandHistory = EMPTY
    """Its history."""
    known_at: float | None = None
    """When ``wanted`` was last known; None if never."""
    floor: int = 0
    """Minimum headroom in pods while its demand is known."""
    parked: bool = False
    """Its target was scaled to 0 on purpose: its history is ignored, and the only minimum is its
    own ``floor``."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """Pool -> its bound pods there."""
    asked: int = 0
    """``spec.replicas`` of the workload: missing pods are created immediately."""
    coming: int = 0
    """Pods after the next sync of its HPA. New ones trigger the autoscaler themselves, so no
    headroom is ordered for them."""
    unit: int = 1
    """Pods of this shape in one replica: headroom is ordered for whole groups."""
    about: str = ""
    """A description for workloads without a telling name (queues of Jobs)."""

    @property
    def observed(self) -> float | None:
        """What the history records: the load in pods; None if unknown."""
        return self.wanted if self.load is None else self.load

    @property
    def real(self) -> int:
        """Existing pods: they have capacity, or trigger the autoscaler."""
        return self.bound + self.pending

    @property
    def present(self) -> int:
        """Pods that exist or are being created."""
        return max(self.real, self.asked)

    @property
    def expected(self) -> int:
        """Pods that will soon exist without headroom."""
        most = self.coming if self.max_replicas is None else min(self.coming, self.max_replicas)
        return max(self.present, most)

    @property
    def spare(self) -> int | None:
        """Maximum pods beyond those expected; None without a limit."""
        return None if self.max_replicas is None else max(0, self.max_replicas - self.expected)

    @property
    def name(self) -> str:
        """The workload's name for people."""
        return self.about or f"{self.workload.kind}/{self.workload.name}"
