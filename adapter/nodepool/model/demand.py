"""One workload: its pods, and how many it would have without limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.nodepool.model.history import EMPTY, DemandHistory
from adapter.nodepool.model.shape import Shape

JOB_QUEUE: Final = "Job"
"""``WorkloadRef.kind`` of a queue of Jobs; its name is the shape's key."""


class WorkloadRef(NamedTuple):
    """Who owns the pods: a HorizontalPodAutoscaler's target, or a queue of Jobs."""

    namespace: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Demand:
    """One workload now."""

    workload: WorkloadRef
    shape: Shape
    bound: int
    """Its pods that have a node and have not ended."""
    pending: int
    """Its pods without a node: they drive the autoscaler already."""
    wanted: int | None
    """``ceil(current x value / target)``, the largest over its metrics, not clamped; for
    Jobs, the pods that are there. None where no metric could be read."""
    max_replicas: int | None
    """None where nothing limits it (queues of Jobs)."""
    history: DemandHistory = EMPTY
    """What was learned of it."""
    known_at: float | None = None
    """When ``wanted`` was last known; None never."""
    floor: int = 0
    """Fewest pods of headroom for it, while its demand is known."""
    parked: bool = False
    """Its target is scaled to 0 on purpose: nothing follows of its past, and of the least
    headroom only its own ``floor`` holds."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """Its bound pods by the pool they are on."""
    asked: int = 0
    """``spec.replicas`` of the workload: pods that are created at once where they are missing."""
    coming: int = 0
    """Pods that its HPA will have created at its next sync. They drive the
    autoscaler themselves: no headroom is ordered for them."""
    about: str = ""
    """The workload in words, where its name says nothing (a queue of Jobs)."""

    @property
    def real(self) -> int:
        """Pods that are there: they have capacity, or drive the autoscaler for it."""
        return self.bound + self.pending

    @property
    def present(self) -> int:
        """Pods that are there or are being created right now."""
        return max(self.real, self.asked)

    @property
    def expected(self) -> int:
        """Pods that will soon exist without headroom."""
        most = self.coming if self.max_replicas is None else min(self.coming, self.max_replicas)
        return max(self.present, most)

    @property
    def spare(self) -> int | None:
        """Pods that it may get beyond those expected; None where nothing limits it."""
        return None if self.max_replicas is None else max(0, self.max_replicas - self.expected)

    @property
    def name(self) -> str:
        """The workload for people."""
        return self.about or f"{self.workload.kind}/{self.workload.name}"
