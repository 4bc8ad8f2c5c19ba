"""How many pods of some shapes a pool takes: first-fit-decreasing, larger shapes first.

First what really is free on Ready nodes, then what is on its way (nodes that boot), then new
nodes like the pool's example, up to the pool's own limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice
from typing import Final, NamedTuple

from adapter.nodepool.model.capacity import Pool, PoolNode
from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.plan.admission import admits, room, times

_HOSTNAME = "kubernetes.io/hostname"


class Lot(NamedTuple):
    """So many pods of one shape."""

    shape: Shape
    pods: int


class Placement(NamedTuple):
    """Where the pods of a lot went."""

    ready: int
    """Pods on what is free now."""
    later: int
    """Pods on nodes that boot, or on new ones."""
    nodes: int
    """New nodes that were opened for them."""
    left: int
    """Pods that the pool cannot take."""


NOWHERE: Final = Placement(0, 0, 0, 0)
"""Of no pods at all."""


class _Readiness(Enum):
    READY = auto()
    BOOTING = auto()
    NEW = auto()


@dataclass(slots=True)
class _Bin:
    node: PoolNode
    state: _Readiness
    free: dict[str, int] | None = None
    """Thousandths; None until a pod was put here: most bins of a large pool are full."""


class PoolRoom:
    """One pool while pods are put into it."""

    def __init__(self, pool: Pool, nodes: Iterable[PoolNode]) -> None:
        self._pool = pool
        self._example = _next(pool.example) if pool.example is not None else None
        own = sorted(nodes, key=lambda node: (not node.ready, node.name))
        self._bins = [self._bin(node) for node in own]
        self._count = len(own)
        self._full: dict[Shape, int] = {}
        """How many of the first bins take no more of a shape: what is in a bin stays there."""
        self._total = {
            name: sum(each.node.allocatable.get(name, 0) for each in self._bins)
            for name in pool.limits
        }

    def put(self, shape: Shape, pods: int) -> Placement:
        """Put identical pods into the first bins that take them; open new nodes for the rest."""
        ready = later = nodes = 0
        left = pods
        full = self._full.get(shape, 0)
        for each in islice(self._bins, full, None):
            if left <= 0:
                break
            taken = _take(each, shape, left)
            left -= taken
            full += left > 0
            if each.state is _Readiness.READY:
                ready += taken
            else:
                later += taken
        self._full[shape] = full
        while left > 0 and (new := self._open(shape)) is not None:
            taken = _take(new, shape, left)
            left -= taken
            later += taken
            nodes += 1
        return Placement(ready, later, nodes, max(0, left))

    def _bin(self, node: PoolNode) -> _Bin:
        if node.ready:
            return _Bin(node, _Readiness.READY)
        if self._example is None:
            return _Bin(node, _Readiness.BOOTING)
        # A node that boots shows no devices yet; it will be as the others are.
        return _Bin(replace(self._example, name=node.name, used=node.used), _Readiness.BOOTING)

    def _open(self, shape: Shape) -> _Bin | None:
        example = self._example
        if example is None or not ever(shape, example):
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


def ever(shape: Shape, example: PoolNode) -> bool:
    """Whether an empty node of a pool takes the shape at all."""
    new = _next(example)
    return times(shape, new.allocatable) > 0 and admits(shape, new.labels, new.taints)


def pack(lots: Sequence[Lot], space: PoolRoom) -> dict[str, Placement]:
    """Put lots into a pool, larger shapes first.

    Returns:
        The shape's key to where its pods went; lots of one shape are added up.
    """
    wanted: dict[str, Lot] = {}
    for lot in lots:
        name = key(lot.shape)
        known = wanted.get(name)
        wanted[name] = Lot(lot.shape, lot.pods + (known.pods if known else 0))
    order = sorted(wanted, key=lambda name: (*largest_first(wanted[name].shape), name))
    return {name: space.put(*wanted[name]) for name in order}


def largest_first(shape: Shape) -> tuple[int, int, int]:
    """For sorting: by devices, then cores, then memory."""
    amounts = dict(shape.requests)
    return (-(gpus(shape) or 0), -amounts.get("cpu", 0), -amounts.get("memory", 0))


def _take(target: _Bin, shape: Shape, most: int) -> int:
    node, free = target.node, target.free
    if free is None:
        have, used = node.allocatable, node.used
        if any(have.get(name, 0) - used.get(name, 0) < milli for name, milli in shape.requests):
            return 0
        free = room(node)
    count = min(most, times(shape, free))
    name = "" if target.state is _Readiness.NEW else node.name
    if not count or not admits(shape, node.labels, node.taints, name):
        return 0
    for resource, milli in shape.requests:
        free[resource] -= milli * count
    target.free = free
    return count


def _next(example: PoolNode) -> PoolNode:
    """A node like the example: empty, and of another name."""
    if not example.used and _HOSTNAME not in example.labels:
        return example
    labels = {name: text for name, text in example.labels.items() if name != _HOSTNAME}
    return replace(example, labels=labels, used={})
