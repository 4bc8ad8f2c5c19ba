"""Choose the pool for a shape's headroom, or the reason why no pool gets it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.nodepool.model.capacity import Pool, Trap
from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.packing import fits_empty_node

TRAPS: Mapping[Trap, str] = {
    Trap.MIG_MIXED: (
        "nodes labelled as GPU nodes have no whole allocatable GPU: the Cluster Autoscaler assumes "
        "that they are still starting and adds no node; use the MIG strategy 'single', or remove "
        "the accelerator label"
    ),
    Trap.RENAMED_SHARED: (
        "shared GPUs have a resource name that autoscalers do not know; set "
        "renameByDefault to false in the device plugin's time-slicing config"
    ),
    Trap.TIME_SLICED: (
        "more GPUs are allocatable than devices exist: limits and budgets count shares as GPUs"
    ),
}
"""The effect of each trap, and the fix."""

HARMFUL = frozenset({Trap.MIG_MIXED, Trap.RENAMED_SHARED})
"""Headroom in such a pool adds no node, and may prevent the autoscaler from adding any."""


class PoolNote(NamedTuple):
    """A warning about a pool."""

    pool: str
    reason: Reason


class PoolChoice(NamedTuple):
    """The pool of a shape."""

    pool: Pool | None
    refusal: Reason | None = None
    """Why headroom must not be ordered."""


def choose(
    shape: Shape, members: Sequence[Demand], pools: Mapping[str, Pool], now: float
) -> PoolChoice:
    """Return the pool with most pods of the workloads, or else the first that can run the shape.

    Pools that never had a node come last, because their nodes are unknown. Pools in a back-off or
    with a trap come after the other pools.
    """
    on: Counter[str] = Counter()
    for member in members:
        on.update(member.pools)
    fit = [
        pool
        for pool in pools.values()
        if pool.example is None or fits_empty_node(shape, pool.example)
    ]
    if not fit:
        return PoolChoice(
            None, Reason("no_pool", "no pool has a node that can run a pod of this shape")
        )
    label_values = {value for _, value in shape.node_selector}
    pool = min(
        fit,
        key=lambda pool: (
            -on[pool.name],
            bool(pool.traps & HARMFUL) or is_backed_off(pool, now),
            pool.example is None,
            pool.name not in label_values,
            pool.name,
        ),
    )
    harm = sorted(pool.traps & HARMFUL)
    if harm:
        return PoolChoice(pool, Reason("trap", f"pool {pool.name}: {TRAPS[harm[0]]}"))
    return PoolChoice(pool)


def is_backed_off(pool: Pool, now: float) -> bool:
    """Return whether the autoscaler does not add nodes to a pool because of a back-off."""
    return pool.backoff_until is not None and now < pool.backoff_until


def notes(pools: Mapping[str, Pool], now: float) -> tuple[PoolNote, ...]:
    """Return the warnings about the pools, by name."""
    pool_notes: list[PoolNote] = []
    for name in sorted(pools):
        pool = pools[name]
        pool_notes.extend(
            PoolNote(name, Reason("trap", TRAPS[trap])) for trap in sorted(pool.traps)
        )
        if pool.backoff_until is not None and now < pool.backoff_until:
            left = pool.backoff_until - now
            text = f"the autoscaler has backed off for {left:.0f} s more: headroom is not raised"
            pool_notes.append(PoolNote(name, Reason("backoff", text)))
    return tuple(pool_notes)
