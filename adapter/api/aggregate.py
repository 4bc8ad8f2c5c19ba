"""One number about several pods, and when there is none.

Whoever asks for one is told a sum only when every pod that should have a value has one: a
sum that lacks a pod is too low, and too low scales in (docs/decisions/0003).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.attribution.pods import NOT_SELECTED
from adapter.attribution.reading import Absence, Reading
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Mismatch
from apiservice.runtime.steps import Steps, parts

_NOT_AWAITED: Final = frozenset(
    {Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY, NOT_SELECTED}
)
_STEP: Final = 64
"""Pods that are looked at in one step."""
_NAMED: Final = 3
"""Pods that a message names before it counts the rest."""


class Aggregate(StrEnum):
    """How the values of several pods become one."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    P95 = "p95"
    """The smallest value that at least 95 % of the pods do not exceed (nearest rank): a
    value that was measured; the largest, up to nineteen pods."""

    def of(self, values: Sequence[float]) -> float:
        """Combine values, of which there is at least one."""
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
        """Whether readings of ``have`` pods may stand for all ``expected``."""
        return enough(have, expected, summed=self is Aggregate.SUM)


class PodValue(NamedTuple):
    """A pod and what is known about it."""

    pod: Pod
    value: Reading | Absence


def missing(found: Sequence[PodValue], expected: Sequence[Pod]) -> Steps[list[PodValue]]:
    """Pods that ought to have a value and have none.

    Not waited for are pods that do not work yet or any more, and those whose devices the
    selector does not mean.

    Args:
        found: every pod that was selected.
        expected: those of them that ought to have one, working or not
            (:func:`adapter.api.expected.expected_pods`).
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
    """Whether readings of ``have`` pods may stand for all ``expected``.

    A sum that lacks a pod is too low, which would scale in; any other form may speak for pods
    that are like the others (the same bound as for the devices of one pod, gpu-telemetry 6).
    """
    return have == expected if summed else 2 * have >= expected


def told(lacking: Sequence[PodValue], of: int) -> str:
    """Which pods have no value and why: ``2 of 5 pods have no value: a (stale), b (no_rows)``."""
    named = ", ".join(
        f"{pod.ref.name} ({value.reason})"
        for pod, value in lacking[:_NAMED]
        if isinstance(value, Absence)
    )
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    return f"{len(lacking)} of {of} pods have no value: {named}{more}"
