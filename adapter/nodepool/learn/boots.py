"""How long the nodes of a pool take, from the order to a GPU that can be used. Pure.

The order is the creation of a NodeClaim (Karpenter), or the time when the cluster-autoscaler's
status raised a group's target. Without either, nothing is learned: a node is created long after
its order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.nodes import UNLABELLED, devices
from adapter.nodepool.seen.status import groups_of

KEPT: Final = 32
"""Boots remembered for each pool."""
_LONGEST: Final = 3600.0
"""Seconds: an order without a node for so long came to nothing."""


class Boot(NamedTuple):
    """A node that has come up, regardless of what ordered it."""

    pool: str
    name: str
    ordered: float
    """Epoch seconds."""
    ready: float


class PoolTarget(NamedTuple):
    """How many nodes a pool's groups were asked for, and since when."""

    nodes: int
    since: float


@dataclass(frozen=True, slots=True)
class BootTimes:
    """What is known of all pools. Replaced, never edited."""

    seconds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pool to its newest boots, oldest first."""
    known: frozenset[str] = frozenset()
    """Nodes and claims that were counted, or were there before we were."""
    targets: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pool to when the nodes that it still waits for were ordered."""
    begun: bool = False

    def p90(self, pool: str) -> float | None:
        """The boot time that 9 of 10 nodes of a pool keep; None until one was seen."""
        seen = sorted(self.seconds.get(pool, ()))
        return seen[math.ceil(0.9 * len(seen)) - 1] if seen else None


def watch_claims(boots: BootTimes, ready: Iterable[Boot], present: Iterable[str]) -> BootTimes:
    """Count claims that have become ready, each once. Those that are there at the first look
    count only for pools that nothing is known of: a restart has counted them before.

    Args:
        ready: those that are.
        present: the names of all claims there are; others are forgotten.
    """
    new = {boot.name: boot for boot in ready if f"claim/{boot.name}" not in boots.known}
    counted = {f"claim/{name}" for name in present} & (
        boots.known | {f"claim/{name}" for name in new}
    )
    fresh = [boot for boot in new.values() if boots.begun or boot.pool not in boots.seconds]
    nodes = {name for name in boots.known if name.startswith("node/")}
    return replace(boots, seconds=_with(boots.seconds, fresh), known=frozenset(counted | nodes))


def watch_targets(
    boots: BootTimes,
    targets: Mapping[str, PoolTarget],
    ready: Mapping[str, tuple[str, ...]],
    now: float,
) -> BootTimes:
    """Relate nodes that became usable to the orders before them, oldest first.

    Args:
        targets: pool to what its groups were asked for; pools of Karpenter are left out.
        ready: pool to the names of its nodes with usable GPUs.
    """
    waiting: dict[str, tuple[float, ...]] = {}
    found: list[Boot] = []
    for pool, target in targets.items():
        there = ready.get(pool, ())
        orders = [at for at in boots.waiting.get(pool, ()) if now - at < _LONGEST]
        raised = target.nodes - boots.targets.get(pool, target.nodes)
        orders += [min(target.since, now)] * max(0, raised)
        new = [name for name in there if f"node/{name}" not in boots.known] if boots.begun else []
        found += [Boot(pool, name, at, now) for name, at in zip(new, orders, strict=False)]
        # Orders that were taken back: no more can be waited for than is missing.
        left = orders[len(new) :][: max(0, target.nodes - len(there))]
        if left:
            waiting[pool] = tuple(left)
    names = {f"node/{name}" for own in ready.values() for name in own}
    claims = {name for name in boots.known if name.startswith("claim/")}
    return BootTimes(
        seconds=_with(boots.seconds, found),
        known=frozenset(names | claims),
        targets={pool: target.nodes for pool, target in targets.items()},
        waiting=waiting,
        begun=True,
    )


def _with(
    seconds: Mapping[str, tuple[float, ...]], found: Iterable[Boot]
) -> Mapping[str, tuple[float, ...]]:
    grown = dict(seconds)
    for boot in found:
        took = boot.ready - boot.ordered
        if 0 < took <= _LONGEST:
            grown[boot.pool] = (*grown.get(boot.pool, ()), took)[-KEPT:]
    return grown


def watch(boots: BootTimes, cluster: ClusterTables, labels: Sequence[str], now: float) -> BootTimes:
    """Learn from the nodes that have come up since the last round.

    Args:
        labels: node labels that name a pool, before the clouds' own.
    """
    claims = list(cluster.node_claims)
    up = [
        Boot(claim.pool, claim.name, claim.ordered, claim.ready)
        for claim in claims
        if claim.ready is not None
    ]
    found = watch_claims(boots, up, (claim.name for claim in claims))
    status = next(iter(cluster.status), None)
    names: dict[str, list[str]] = {}
    ready: dict[str, tuple[str, ...]] = {}
    for node in cluster.nodes:
        pool = node.pool(labels) or UNLABELLED
        names.setdefault(pool, []).append(node.name)
        if node.healthy and devices(node):
            ready[pool] = (*ready.get(pool, ()), node.name)
    targets = {}
    for pool, own in names.items():
        groups = groups_of(pool, own, status.groups) if status else []
        if groups:
            since = max((group.since or now for group in groups), default=now)
            targets[pool] = PoolTarget(sum(group.target for group in groups), since)
    return watch_targets(found, targets, ready, now)
