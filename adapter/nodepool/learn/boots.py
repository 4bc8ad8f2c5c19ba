"""Boot times: how long the nodes of a pool take from the order to an allocatable GPU. Pure.

The order is the creation of a NodeClaim (Karpenter), or the time when the cluster-autoscaler's
status raised a group's target. Without either, nothing is learned, because a node is created long
after its order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.status import groups_of

KEPT: Final = 32
"""Boots remembered for each pool."""
LONGEST: Final = 3600.0
"""Seconds after which an order without a node has failed, and a start is none."""


class Boot(NamedTuple):
    """A node that has booted, regardless of what ordered it."""

    pool: str
    name: str
    ordered: float
    """Epoch seconds."""
    ready: float


class PoolTarget(NamedTuple):
    """The number of nodes that a pool's groups have as their target, and since when."""

    nodes: int
    since: float


@dataclass(frozen=True, slots=True)
class BootTimes:
    """The boot times of all pools. Immutable."""

    seconds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pool -> its newest boots, oldest first."""
    known: frozenset[str] = frozenset()
    """Nodes and claims that were counted, or that existed before this process."""
    targets: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pool -> times at which the nodes that it waits for were ordered."""
    begun: bool = False

    def p90(self, pool: str) -> float | None:
        """Return the 90th percentile of a pool's boot times; None before the first boot."""
        return p90(self.seconds.get(pool, ()))


def p90(seconds: Iterable[float]) -> float | None:
    """Return the 90th percentile (nearest rank); None of nothing."""
    ordered = sorted(seconds)
    return ordered[math.ceil(0.9 * len(ordered)) - 1] if ordered else None


def watch_claims(boots: BootTimes, ready: Iterable[Boot], present: Iterable[str]) -> BootTimes:
    """Count each claim that has become ready once.

    Claims that exist in the first round count only for pools without boot times: before a restart,
    they have been counted already.

    Args:
        ready: the ready claims.
        present: names of all existing claims; other names are forgotten.
    """
    new = {boot.name: boot for boot in ready if f"claim/{boot.name}" not in boots.known}
    counted = {f"claim/{name}" for name in present} & (
        boots.known | {f"claim/{name}" for name in new}
    )
    fresh = [boot for boot in new.values() if boots.begun or boot.pool not in boots.seconds]
    nodes = {name for name in boots.known if name.startswith("node/")}
    return replace(
        boots, seconds=_add_boots(boots.seconds, fresh), known=frozenset(counted | nodes)
    )


def watch_targets(
    boots: BootTimes,
    targets: Mapping[str, PoolTarget],
    ready: Mapping[str, tuple[str, ...]],
    now: float,
) -> BootTimes:
    """Match nodes that became usable with the orders before them, oldest first.

    Args:
        targets: pool -> target of its groups, without Karpenter's pools.
        ready: pool -> names of its nodes with usable GPUs.
    """
    waiting: dict[str, tuple[float, ...]] = {}
    booted: list[Boot] = []
    for pool, target in targets.items():
        usable = ready.get(pool, ())
        orders = [order for order in boots.waiting.get(pool, ()) if now - order < LONGEST]
        raised = target.nodes - boots.targets.get(pool, target.nodes)
        orders += [min(target.since, now)] * max(0, raised)
        new = [name for name in usable if f"node/{name}" not in boots.known] if boots.begun else []
        booted += [Boot(pool, name, order, now) for name, order in zip(new, orders, strict=False)]
        # Drop orders that were withdrawn: a pool waits for at most the missing nodes.
        left = orders[len(new) :][: max(0, target.nodes - len(usable))]
        if left:
            waiting[pool] = tuple(left)
    names = {f"node/{name}" for nodes in ready.values() for name in nodes}
    claims = {name for name in boots.known if name.startswith("claim/")}
    return BootTimes(
        seconds=_add_boots(boots.seconds, booted),
        known=frozenset(names | claims),
        targets={pool: target.nodes for pool, target in targets.items()},
        waiting=waiting,
        begun=True,
    )


def _add_boots(
    seconds: Mapping[str, tuple[float, ...]], booted: Iterable[Boot]
) -> Mapping[str, tuple[float, ...]]:
    grown = dict(seconds)
    for boot in booted:
        took = boot.ready - boot.ordered
        if 0 < took <= LONGEST:
            grown[boot.pool] = (*grown.get(boot.pool, ()), took)[-KEPT:]
    return grown


def watch(boots: BootTimes, cluster: ClusterTables, labels: Sequence[str], now: float) -> BootTimes:
    """Learn from the nodes that have booted since the last round.

    Args:
        labels: node labels that name a pool. They precede the clouds' own labels.
    """
    claims = list(cluster.node_claims)
    up = [
        Boot(claim.pool, claim.name, claim.ordered, claim.ready)
        for claim in claims
        if claim.ready is not None
    ]
    learned = watch_claims(boots, up, (claim.name for claim in claims))
    status = cluster.autoscaler
    names: dict[str, list[str]] = {}
    ready: dict[str, tuple[str, ...]] = {}
    for node in cluster.nodes:
        pool = node.pool(labels)
        names.setdefault(pool, []).append(node.name)
        if node.healthy and node.devices:
            ready[pool] = (*ready.get(pool, ()), node.name)
    targets = {}
    for pool, node_names in names.items():
        groups = groups_of(pool, node_names, status.groups) if status else []
        if groups:
            since = max((group.since or now for group in groups), default=now)
            targets[pool] = PoolTarget(sum(group.target for group in groups), since)
    return watch_targets(learned, targets, ready, now)
