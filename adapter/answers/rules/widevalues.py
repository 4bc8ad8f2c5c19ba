"""The values of all objects in one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.answers.rules.promql import ObjectKey
from adapter.answers.rules.vector import TOO_MANY, Vector
from apiservice.runtime.steps import Steps

OBJECTS: Final = "objects"
SEVERAL: Final = "several_values"
_STEP: Final = 256
_OBJECT: Final = 150
"""Bytes of one object in an answer beside its name."""


class WideAnswer(NamedTuple):
    """The values of all objects at one time."""

    spaces: Mapping[str, Mapping[str, int]]
    """Namespace, empty for objects without one -> name -> thousandths."""
    left_out: Mapping[tuple[str, str], str]
    """Objects whose value the API cannot express, and the reason."""
    time: float
    """Epoch seconds by the local clock at which the engine evaluated the query."""
    at: float
    """Epoch seconds by the local clock at which it arrived."""
    expires: float
    size: int
    """Estimated bytes."""


class AmbiguousError(ValueError):
    """The answer does not give one value for each object; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def fold_vector(vector: Vector, key: ObjectKey, at: float, expires: float) -> Steps[WideAnswer]:
    """Return an answer by object.

    Raises:
        AmbiguousError: it is too large, or an object has several values.
    """
    if vector.left_out[TOO_MANY]:
        raise AmbiguousError(OBJECTS)
    space_label, label = key.namespace or "", key.label
    spaces: dict[str, dict[str, int]] = {}
    size = 0
    for place, value in enumerate(vector.values):
        if place % _STEP == 0:
            yield
        name = value.labels.get(label, "")
        space = spaces.setdefault(value.labels.get(space_label, ""), {})
        if name in space or value.time != vector.values[0].time:
            raise AmbiguousError(SEVERAL)
        space[name] = value.milli
        size += _OBJECT + len(name)
    left_out = {
        (labels.get(space_label, ""), labels.get(label, "")): reason
        for labels, reason in vector.not_expressed
    }
    time = vector.values[0].time if vector.values else at
    return WideAnswer(spaces, left_out, time, at, expires, size + _OBJECT * len(left_out))
