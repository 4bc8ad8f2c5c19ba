"""How many pods of some shapes fit into a pool: first-fit-decreasing, larger shapes first.

Pods are placed first on Ready nodes, then on nodes that are booting, then on new nodes like the
pool's example, up to the pool's limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from adapter.nodepool.model.capacity import Pool, PoolNode
from adapter.nodepool.model.shape import Amounts, Shape, gpus, key
from adapter.pipeline.cluster.nodeaffinity import matches_terms
from adapter.pipeline.cluster.taints import Taint, repels

_HOSTNAME = "kubernetes.io/hostname"


def admits(
    shape: Shape, labels: Mapping[str, str], taints: Sequence[Taint], name: str = ""
) -> bool:
    """Return whether labels and taints of a node admit the shape, regardless of free resources.

    Args:
        name: name of the node, for ``matchFields``; empty for a node that does not exist yet.
    """
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    if shape.node_affinity and not matches_terms(_terms(shape.node_affinity), labels, name):
        return False
    return not any(repels(taint, shape.tolerations) for taint in taints)


def room(node: PoolNode) -> dict[str, int]:
    """Return the free resources of a node in thousandths; negative if it is overcommitted."""
    used = node.used
    return {name: milli - used.get(name, 0) for name, milli in node.allocatable.items()}


def count_fitting_pods(shape: Shape, free: Amounts) -> int:
    """Return how many pods of a shape fit into free resources; a missing resource fits none."""
    return max(0, min(free.get(name, 0) // milli for name, milli in shape.requests))


@lru_cache(maxsize=1024)
def _terms(affinity: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(affinity)["nodeSelectorTerms"])


class Lot(NamedTuple):
    """A number of pods of one shape."""

    shape: Shape
    pods: int


class Placement(NamedTuple):
    """The placement of the pods of a lot."""

    ready: int
    """Pods on Ready nodes."""
    later: int
    """Pods on booting or new nodes."""
    nodes: int
    """New nodes for them."""
    left: int
    """Pods that do not fit into the pool."""
    on: tuple[str, ...] = ()
    """Names of the Ready nodes."""


NOWHERE: Final = Placement(0, 0, 0, 0)
"""The placement of no pods."""


class _Readiness(Enum):
    READY = auto()
    BOOTING = auto()
    NEW = auto()


@dataclass(slots=True)
class _Bin:
    node: PoolNode
    state: _Readiness
    free: dict[str, int] | None = None
    """Thousandths; None before the first pod is placed here: most bins of a large pool are full."""


class PoolRoom:
    """One pool while pods are placed in it."""

    def __init__(self, pool: Pool, nodes: Iterable[PoolNode]) -> None:
        self._pool = pool
        self._example = _next_node(pool.example) if pool.example is not None else None
        pool_nodes = sorted(nodes, key=lambda node: (not node.ready, node.name))
        self._bins = [self._bin(node) for node in pool_nodes]
        if self._example is not None:
            ordered = replace(self._example, name="")
            self._bins += [_Bin(ordered, _Readiness.BOOTING) for _ in range(pool.coming)]
        self._count = len(pool_nodes) + pool.coming
        self._full: dict[Shape, int] = {}
        """Shape -> number of first bins that cannot take more of it. Pods never leave a bin."""
        self._total = {
            name: sum(node_bin.node.allocatable.get(name, 0) for node_bin in self._bins)
            for name in pool.limits
        }

    def put(self, shape: Shape, pods: int, *, grow: bool = True) -> Placement:
        """Place identical pods in the first bins that fit; add new nodes for the rest.

        Args:
            grow: False to place pods only on nodes that exist.
        """
        ready = later = nodes = 0
        left = pods
        on: list[str] = []
        full = self._full.get(shape, 0)
        for node_bin in islice(self._bins, full, None):
            if left <= 0 or (node_bin.state is _Readiness.NEW and not grow):
                break
            taken = _take(node_bin, shape, left)
            left -= taken
            full += left > 0
            if node_bin.state is _Readiness.READY:
                ready += taken
                on += [node_bin.node.name] if taken else []
            else:
                later += taken
        self._full[shape] = full
        while grow and left > 0 and (new := self._open(shape)) is not None:
            taken = _take(new, shape, left)
            left -= taken
            later += taken
            nodes += 1
        return Placement(ready, later, nodes, max(0, left), tuple(on))

    def _bin(self, node: PoolNode) -> _Bin:
        if node.ready:
            return _Bin(node, _Readiness.READY)
        if self._example is None:
            return _Bin(node, _Readiness.BOOTING)
        # A booting node shows no devices yet. It will be like the others.
        return _Bin(replace(self._example, name=node.name, used=node.used), _Readiness.BOOTING)

    def _open(self, shape: Shape) -> _Bin | None:
        example = self._example
        if example is None or not fits_empty_node(shape, example):
            return None
        if self._pool.high is not None and self._count >= self._pool.high:
            return None
        grown = {
            name: have + example.allocatable.get(name, 0) for name, have in self._total.items()
        }
        if any(grown[name] > most for name, most in self._pool.limits.items()):
            return None
        self._total = grown
        self._count += 1
        new = _Bin(example, _Readiness.NEW)
        self._bins.append(new)
        return new


def fits_empty_node(shape: Shape, example: PoolNode) -> bool:
    """Return whether an empty node of the pool can run the shape."""
    new = _next_node(example)
    return count_fitting_pods(shape, new.allocatable) > 0 and admits(shape, new.labels, new.taints)


def pack(lots: Sequence[Lot], space: PoolRoom, *, grow: bool = True) -> dict[str, Placement]:
    """Place lots in a pool, larger shapes first.

    Args:
        grow: False to place pods only on nodes that exist.

    Returns:
        Shape key -> placement; lots of one shape are added up.
    """
    wanted: dict[str, Lot] = {}
    for lot in lots:
        name = key(lot.shape)
        earlier = wanted.get(name)
        wanted[name] = Lot(lot.shape, lot.pods + (earlier.pods if earlier else 0))
    order = sorted(wanted, key=lambda name: (*largest_first(wanted[name].shape), name))
    return {name: space.put(*wanted[name], grow=grow) for name in order}


def largest_first(shape: Shape) -> tuple[int, int, int]:
    """Return the sort key: devices, then cores, then memory."""
    amounts = dict(shape.requests)
    return (-(gpus(shape) or 0), -amounts.get("cpu", 0), -amounts.get("memory", 0))


def _take(target: _Bin, shape: Shape, most: int) -> int:
    node, free = target.node, target.free
    if free is None:
        have, used = node.allocatable, node.used
        if any(have.get(name, 0) - used.get(name, 0) < milli for name, milli in shape.requests):
            return 0
        free = room(node)
    count = min(most, count_fitting_pods(shape, free))
    name = "" if target.state is _Readiness.NEW else node.name
    if not count or not admits(shape, node.labels, node.taints, name):
        return 0
    for resource, milli in shape.requests:
        free[resource] -= milli * count
    target.free = free
    return count


def _next_node(example: PoolNode) -> PoolNode:
    """Return a node like the example: empty, and with another name."""
    if not example.used and _HOSTNAME not in example.labels:
        return example
    labels = {name: text for name, text in example.labels.items() if name != _HOSTNAME}
    return replace(example, labels=labels, used={})
