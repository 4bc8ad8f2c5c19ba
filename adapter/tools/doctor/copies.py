"""One object in several files: a folder for each environment has a copy of it.

Objects of one kind, namespace and name are one object. Each copy is judged, and no copy is compared
with another one. What refers to such an object means the copy of its own environment: the one with
which its file has most folders in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Protocol, TypeVar


class _Copy(Protocol):
    @property
    def origin(self) -> str:
        """The file; empty for an object of a cluster, of which there is one."""


class _NamedCopy(_Copy, Protocol):
    @property
    def name(self) -> str:
        """The object's name."""


C = TypeVar("C", bound=_Copy)
N = TypeVar("N", bound=_NamedCopy)


def nearest_copies(origin: str, copies: Sequence[C]) -> list[C]:
    """Return the copies of an object whose files have most folders in common with a file.

    Args:
        origin: the file of what refers to the object.
        copies: of one object; there may be none.
    """
    if len(copies) < 2:
        return list(copies)
    depths = [_common_parts(origin, copy.origin) for copy in copies]
    deepest = max(depths)
    return [copy for copy, depth in zip(copies, depths, strict=True) if depth == deepest]


def copies_by_name(objects: Iterable[N]) -> list[list[N]]:
    """Return the copies of each object, of objects of one kind and namespace, ordered by name."""
    by_name: dict[str, list[N]] = defaultdict(list)
    for row in objects:
        by_name[row.name].append(row)
    return [by_name[name] for name in sorted(by_name)]


def with_others(objects: Sequence[Sequence[N]]) -> Iterator[tuple[N, list[N]]]:
    """Yield the copies of the first object that have copies of other objects beside them, each with
    one copy of each of these.

    Args:
        objects: the copies of each object.
    """
    first, *others = objects
    for copy in first:
        beside = [
            row
            for copies in others
            for row in nearest_copies(copy.origin, _meaning(copy, first, copies))[:1]
        ]
        if beside:
            yield copy, beside


def _meaning(copy: N, copies: Sequence[N], others: Sequence[N]) -> list[N]:
    """Return the others that mean this one of some copies, or also this one."""
    return [row for row in others if copy in nearest_copies(row.origin, copies)]


def _common_parts(first: str, second: str) -> int:
    """Return how many leading parts two paths have in common."""
    common = 0
    for one, other in zip(PurePath(first).parts, PurePath(second).parts, strict=False):
        if one != other:
            break
        common += 1
    return common
