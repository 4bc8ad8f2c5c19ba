"""The answers of ``/api/v1/query`` to the queries of rules: a value for each set of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Final, NamedTuple

import msgspec

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import result_of, sample_number
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.runtime.steps import Steps
from apiservice.wire.quantity import to_milli

MAX_VALUES: Final = 50_000
"""Series of one answer that are read."""
MAX_PARTS: Final = 1_000_000
"""Commas of one answer: each takes up to 80 bytes of memory while the answer is decoded."""
_STEP: Final = 128

NAN: Final = "nan"
TOO_LARGE: Final = "too_large"
BAD_VALUE: Final = "bad_value"
TOO_MANY: Final = "too_many"
NEGATIVE: Final = "negative"
INCOMPLETE: Final = "incomplete"
BAD_NAME: Final = "bad_name"
LEFT_OUT: Final = (NAN, TOO_LARGE, BAD_VALUE, TOO_MANY, NEGATIVE, INCOMPLETE, BAD_NAME)
"""Why a value of an answer is left out."""


class Value(NamedTuple):
    """A value that the API can express."""

    labels: Mapping[str, str]
    milli: int
    """Thousandths."""
    time: float
    """Epoch seconds by the local clock at which the engine evaluated the query."""


@dataclass(slots=True)
class Vector:
    """An answer."""

    values: list[Value] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Values that are left out, by reason."""
    not_expressed: list[tuple[Mapping[str, str], str]] = field(default_factory=list)
    """The labels of values that the API cannot express, and the reason."""
    scalar: bool = False


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


_samples = msgspec.json.Decoder(list[msgspec.Raw])
_sample = msgspec.json.Decoder(_Sample)
_scalar = msgspec.json.Decoder(tuple[float, str])


def decode(body: bytes, ahead: float) -> Steps[Vector]:
    """Read an answer in steps.

    Args:
        ahead: seconds by which the engine's clock is ahead of the local clock.

    Raises:
        SourceError: ``too_large`` for too many parts, ``not_json``, ``query`` for an error of the
            engine, ``result_type`` for a matrix or string, ``partial`` if existing series may be
            missing.
    """
    if body.count(b",") > MAX_PARTS:
        raise SourceError("too_large", f"the answer has more than {MAX_PARTS} labels and values")
    result = result_of(body)
    if result.partial:
        why = "; ".join(result.warnings[:2])[:300] or "reported by the engine"
        raise SourceError("partial", f"a partial answer ({why}): its values may be wrong")
    if result.type not in ("vector", "scalar"):
        raise SourceError(
            "result_type", f"metricsQuery returns a {result.type[:20]}; it must return a vector"
        )
    try:
        if result.type == "scalar":
            time, text = _scalar.decode(result.result)
            vector = Vector(scalar=True)
            _add(vector, {}, time - ahead, text)
            return vector
        raws = _samples.decode(result.result)
    except UNREADABLE as error:
        raise SourceError("not_json", f"the result is not a list: {error}") from None
    vector = Vector()
    vector.left_out[TOO_MANY] += max(0, len(raws) - MAX_VALUES)
    for place, raw in enumerate(raws[:MAX_VALUES]):
        if place % _STEP == 0:
            yield
        try:
            sample = _sample.decode(raw)
        except UNREADABLE:
            vector.left_out[BAD_VALUE] += 1
            continue
        _add(vector, sample.metric, sample.value[0] - ahead, sample.value[1])
    return vector


def _add(into: Vector, labels: Mapping[str, str], time: float, text: str) -> None:
    value = sample_number(time, text)
    if value is None:
        into.left_out[BAD_VALUE] += 1
        return
    if isnan(value):
        into.left_out[NAN] += 1
        into.not_expressed.append((labels, NAN))
        return
    try:
        into.values.append(Value(labels, to_milli(value), time))
    except ValueError:
        into.left_out[TOO_LARGE] += 1
        into.not_expressed.append((labels, TOO_LARGE))
