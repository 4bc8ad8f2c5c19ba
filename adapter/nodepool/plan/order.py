"""Orders of headroom, and the plan that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.plan.poolchoice import PoolNote
from adapter.nodepool.seen.headroom import HeadroomObject


@dataclass(frozen=True, slots=True)
class Order:
    """The desired headroom of one shape in one namespace: a total, not a change."""

    namespace: str
    shape: Shape
    pool: str
    """Empty where no pool takes the shape."""
    replicas: int
    """Pods of the shape. 0 is an order too: it lets the headroom go."""
    was: int
    pods: int
    """Bound and pending pods of the shape now."""
    reckoned: int
    """What becomes :attr:`Headroom.pods`."""
    needed_at: float
    """What becomes :attr:`Headroom.needed_at`."""
    workloads: tuple[WorkloadRef, ...]
    reasons: tuple[Reason, ...]
    """What raised, held, cut or refused it; never empty."""
    nudge: bool = False
    """Pods have consumed the buffer: change the object so that Karpenter looks at once."""
    ready: int | None = 0
    """Pods of ``replicas`` that free room on Ready nodes holds now; None where the devices of
    DRA claims decide, which nodes do not show."""
    nodes: int | None = 0
    """New nodes that it still needs, nodes that boot not counted; None as for ``ready``, and
    where the pool has never had a node to be counted in."""
    about: tuple[str, ...] = ()
    """The workloads for people, in the order of ``workloads``."""

    @property
    def why(self) -> str:
        """All reasons, for people."""
        return "; ".join(reason.text for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that should be so after this round."""

    orders: tuple[Order, ...]
    """By namespace and the shape's key."""
    notes: tuple[PoolNote, ...]
    """By pool."""


def pools_of(planned: Iterable[Order], *found: Iterable[HeadroomObject]) -> Mapping[str, str]:
    """Each shape's key, with its namespace, to the pool that its headroom is in; what is there
    knows better than the last plan."""
    pools = {f"{row.namespace}/{key(row.shape)}": row.pool for row in planned}
    for rows in found:
        pools |= {f"{row.serves}/{key(row.shape)}": row.pool for row in rows if row.shape}
    return pools
