"""Which pool a shape's headroom belongs to, and why a pool gets none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.nodepool.model.capacity import Pool, Trap
from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.packing import ever

TRAPS: Mapping[Trap, str] = {
    Trap.MIG_MIXED: (
        "nodes labelled as GPU nodes have no whole GPU to allocate: the Cluster Autoscaler takes "
        "them for nodes that still start and orders no more; use the MIG strategy 'single', or "
        "take the accelerator label off"
    ),
    Trap.RENAMED_SHARED: (
        "shared GPUs are allocated under a name that autoscalers do not know; set "
        "renameByDefault to false in the device plugin's time-slicing config"
    ),
    Trap.TIME_SLICED: (
        "more GPUs can be allocated than there are devices: caps and budgets count shares as GPUs"
    ),
}
"""What each trap does, and the fix."""

HARMFUL = frozenset({Trap.MIG_MIXED, Trap.RENAMED_SHARED})
"""Ordering into such a pool brings no node, and may keep the autoscaler from ordering any."""


class PoolNote(NamedTuple):
    """Something about a pool that people should know."""

    pool: str
    reason: Reason


class PoolChoice(NamedTuple):
    """A shape's pool."""

    pool: Pool | None
    refusal: Reason | None = None
    """Why nothing may be ordered."""


def choose(
    shape: Shape, members: Sequence[Demand], pools: Mapping[str, Pool], now: float
) -> PoolChoice:
    """The pool that most pods of the workloads are on, else the first that takes the shape.

    Pools that had no node yet are taken last, as their nodes are unknown; of
    the others, those in a back-off or a trap come after those that are well.
    """
    on: dict[str, int] = {}
    for each in members:
        for name, pods in each.pools.items():
            on[name] = on.get(name, 0) + pods
    fit = [pool for pool in pools.values() if pool.example is None or ever(shape, pool.example)]
    if not fit:
        return PoolChoice(
            None, Reason("no_pool", "no pool has a node that takes a pod of this shape")
        )
    named = {value for _, value in shape.node_selector}
    pool = min(
        fit,
        key=lambda pool: (
            -on.get(pool.name, 0),
            bool(pool.traps & HARMFUL) or backed_off(pool, now),
            pool.example is None,
            pool.name not in named,
            pool.name,
        ),
    )
    harm = sorted(pool.traps & HARMFUL)
    if harm:
        return PoolChoice(pool, Reason("trap", f"pool {pool.name}: {TRAPS[harm[0]]}"))
    return PoolChoice(pool)


def backed_off(pool: Pool, now: float) -> bool:
    """Whether the autoscaler refuses to add nodes to a pool."""
    return pool.backoff_until is not None and now < pool.backoff_until


def notes(pools: Mapping[str, Pool], now: float) -> tuple[PoolNote, ...]:
    """What people should know about the pools, by name."""
    found: list[PoolNote] = []
    for name in sorted(pools):
        pool = pools[name]
        found.extend(PoolNote(name, Reason("trap", TRAPS[trap])) for trap in sorted(pool.traps))
        if pool.backoff_until is not None and now < pool.backoff_until:
            left = pool.backoff_until - now
            text = f"the autoscaler has backed off for {left:.0f} s more: nothing is raised"
            found.append(PoolNote(name, Reason("backoff", text)))
    return tuple(found)
