"""Taints of nodes and tolerations of pods, as the scheduler compares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

_BINDING: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that exclude a pod; ``PreferNoSchedule`` does not."""


class Taint(NamedTuple):
    """As in a node's spec."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """As kubectl writes it: ``dedicated=ml:NoSchedule``."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class Toleration(NamedTuple):
    """As in a pod's spec; an empty key with ``Exists`` tolerates everything."""

    key: str
    operator: str
    value: str
    effect: str


def is_binding(taint: Taint) -> bool:
    """Return whether a taint keeps a pod without a toleration from the node."""
    return taint.effect in _BINDING


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether the toleration tolerates the taint, as ``Toleration.ToleratesTaint`` does."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator == "Equal" and toleration.value == taint.value


def repels(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether a taint keeps a pod with these tolerations from the node."""
    return is_binding(taint) and not any(tolerates(toleration, taint) for toleration in tolerations)
