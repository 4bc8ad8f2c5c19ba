"""Aggregate the values of several pods into one number, if enough of them have a value.

A sum is served only if every pod that should have a value has one. A sum without a pod would
be too low, and a value that is too low scales in (docs/decisions/0003).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.values import NOT_SELECTED
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import Mismatch
from apiservice.runtime.steps import Steps, parts

_NOT_AWAITED: Final = frozenset(
    {Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY, NOT_SELECTED}
)
_STEP: Final = 64
"""Pods that one step processes."""
_NAMED: Final = 3
"""Pods that a message names; it only counts the others."""


class Aggregate(StrEnum):
    """How the values of several pods are combined."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    P95 = "p95"
    """The smallest value that at least 95 % of the pods do not exceed (nearest rank).

    It is always a measured value. With up to nineteen pods it is the largest.
    """

    def of(self, values: Sequence[float]) -> float:
        """Combine at least one value."""
        if self is Aggregate.SUM:
            return math.fsum(values)
        if self is Aggregate.MEAN:
            # Rounding must not raise a mean above the largest value.
            return min(math.fsum(values) / len(values), max(values))
        if self is Aggregate.MAX:
            return max(values)
        if self is Aggregate.MIN:
            return min(values)
        return sorted(values)[math.ceil(len(values) * 95 / 100) - 1]

    def speaks(self, have: int, expected: int) -> bool:
        """Return whether readings of ``have`` pods may represent all ``expected`` pods."""
        return enough(have, expected, summed=self is Aggregate.SUM)


class PodValue(NamedTuple):
    """A pod and its reading or absence."""

    pod: Pod
    value: Reading | Absence


def missing(found: Sequence[PodValue], expected: Sequence[Pod]) -> Steps[list[PodValue]]:
    """Return the pods that should have a value and have none.

    Pods that do not run yet or no longer run are not included, nor are pods whose devices the
    selector excludes.

    Args:
        found: every selected pod.
        expected: those of them that should have a value, running or not
            (:func:`adapter.answers.api.expected.expected_pods`).
    """
    without: list[PodValue] = []
    for some in parts(found, _STEP):
        without += [
            item
            for item in some
            if isinstance(item.value, Absence) and item.value.reason not in _NOT_AWAITED
        ]
        yield
    if not without:
        return without
    refs: set[PodRef] = set()
    for pods in parts(expected, _STEP):
        refs.update(pod.ref for pod in pods)
        yield
    return [item for item in without if item.pod.ref in refs]


def enough(have: int, expected: int, *, summed: bool) -> bool:
    """Return whether readings of ``have`` pods may represent all ``expected`` pods.

    A sum needs all pods, because a sum that is too low scales in. Other aggregates need half,
    which is also the default bound for the devices of one pod.
    """
    return have == expected if summed else 2 * have >= expected


def describe_missing(lacking: Sequence[PodValue], of: int) -> str:
    """Describe which pods lack a value: ``2 of 5 pods have no value: a (stale), b (stale)``."""
    named = ", ".join(
        f"{pod.ref.name} ({value.reason})"
        for pod, value in lacking[:_NAMED]
        if isinstance(value, Absence)
    )
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    return f"{len(lacking)} of {of} pods have no value: {named}{more}"
