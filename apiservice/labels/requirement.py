"""One condition on labels, and its predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

Predicate = Callable[[Mapping[str, str]], bool]

EXISTS, ABSENT = "exists", "!"
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


class Requirement(NamedTuple):
    """One condition. ``op`` is one of ``= == != in notin exists ! > <``."""

    key: str
    op: str
    values: tuple[str, ...]
    """Sorted and distinct; empty for ``exists`` and ``!``."""

    def __str__(self) -> str:
        if self.op == EXISTS:
            return self.key
        if self.op == ABSENT:
            return f"!{self.key}"
        if self.op in ("in", "notin"):
            return f"{self.key} {self.op} ({','.join(self.values)})"
        return f"{self.key}{self.op}{self.values[0]}"


def integer(text: str) -> int | None:
    """The text as Go's ``strconv.ParseInt(text, 10, 64)`` reads it, None where that fails."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def predicate(requirement: Requirement) -> Predicate:
    """Whether labels satisfy the requirement."""
    key, op, values = requirement
    several = frozenset(values)
    if op in ("=", "==", "in") and len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    if op in ("=", "==", "in"):
        return lambda labels: labels.get(key) in several
    if op in ("!=", "notin"):
        return lambda labels: labels.get(key) not in several
    if op == EXISTS:
        return lambda labels: key in labels
    if op == ABSENT:
        return lambda labels: key not in labels
    return _ordering(key, op, int(values[0]))


def _ordering(key: str, op: str, bound: int) -> Predicate:
    def holds(labels: Mapping[str, str]) -> bool:
        number = integer(labels.get(key, ""))
        if number is None:
            return False
        return number > bound if op == ">" else number < bound

    return holds


def conjunction(predicates: list[Predicate]) -> Predicate:
    """Whether labels satisfy all of them."""
    if not predicates:
        return lambda labels: True
    if len(predicates) == 1:
        return predicates[0]

    def holds(labels: Mapping[str, str]) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator would double the cost
            if not predicate(labels):
                return False
        return True

    return holds
