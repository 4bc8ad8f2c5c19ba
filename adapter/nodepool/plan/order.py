"""Orders of headroom, and the plan that contains them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from adapter.nodepool.model.capacity import Headroom
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.plan.poolchoice import PoolNote
from adapter.nodepool.seen.headroom import HeadroomObject


class Tie(NamedTuple):
    """The nodes that admit the pods of a CapacityBuffer."""

    only: bool
    """Whether only ``nodes`` admit them, or only nodes beside ``nodes``."""
    nodes: tuple[str, ...]
    """Names of Ready nodes."""
    pods: int
    """Replicas of the CapacityBuffer: those beside ``nodes`` if it is for them."""

    def __str__(self) -> str:
        return f"{'only' if self.only else 'beside'} {','.join(self.nodes)}"


@dataclass(frozen=True, slots=True)
class Order:
    """The desired headroom of one shape in one namespace: a total, not a change."""

    namespace: str
    shape: Shape
    pool: str
    """Empty if no pool can run the shape."""
    replicas: int
    """Pods of the shape. 0 deletes the headroom."""
    was: int
    pods: int
    """Current bound and pending pods of the shape."""
    reckoned: int
    """The next :attr:`Headroom.pods`."""
    needed_at: float
    """The next :attr:`Headroom.needed_at`."""
    workloads: tuple[WorkloadRef, ...]
    reasons: tuple[Reason, ...]
    """Why it was raised, held, cut or refused; never empty."""
    nudge: bool = False
    """Pods have consumed the buffer: change the object so that Karpenter refills it immediately."""
    ready: int | None = 0
    """Pods of ``replicas`` that fit on Ready nodes now; None with DRA claims, because nodes do not
    show their free devices."""
    nodes: int | None = 0
    """New nodes that it needs, without booting nodes; None as for ``ready``, and if the pool has
    never had a node."""
    tie: Tie | None = None
    """None if all nodes may take it."""
    about: tuple[str, ...] = ()
    """Names of the workloads for people, in the order of ``workloads``."""

    @property
    def headroom(self) -> Headroom:
        """The headroom that it becomes."""
        return Headroom(self.namespace, self.shape, self.replicas, self.reckoned, self.needed_at)

    @property
    def why(self) -> str:
        """All reasons as one text."""
        return "; ".join(reason.text for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired headroom after this round."""

    orders: tuple[Order, ...]
    """Orders, sorted by namespace and shape key."""
    notes: tuple[PoolNote, ...]
    """Notes, sorted by pool."""


def pools_of(planned: Iterable[Order], *objects: Iterable[HeadroomObject]) -> Mapping[str, str]:
    """Namespace and shape key -> pool of the existing headroom."""
    pools = {f"{row.namespace}/{key(row.shape)}": row.pool for row in planned}
    for rows in objects:
        pools |= {f"{row.serves}/{key(row.shape)}": row.pool for row in rows if row.shape}
    return pools
