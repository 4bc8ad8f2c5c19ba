"""Pages with a native histogram, as a server writes them in protobuf, and as a store answers.

The fields are those of ``io/prometheus/client/metrics.proto`` in prometheus/client_model.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, log2

SCHEMA = 3
"""A bucket's upper bound is 2**(1/8) times the lower one."""
_HISTOGRAM = 4


def index_of(value: float) -> int:
    """The place of the bucket of a value."""
    return ceil(log2(value) * float(2**SCHEMA))


def bound(index: int) -> float:
    """The upper bound of a bucket."""
    return float(2 ** (index / 2**SCHEMA))


def protobuf(
    name: str, labels: Mapping[str, str], values: Sequence[float], bounds: Sequence[float] = ()
) -> bytes:
    """A page with one histogram of values, native, and classic too if it has bounds."""
    hits = Counter(index_of(value) for value in values)
    parts = [_number(1, len(values)), _double(2, sum(values))]
    for limit in (*bounds, float("inf")) if bounds else ():
        count = sum(value <= limit for value in values)
        parts.append(_message(3, _number(1, count) + _double(2, limit)))
    parts += [_signed(5, SCHEMA), _double(6, 2.0**-128), _number(7, 0)]
    places = sorted(hits)
    for before, at in pairwise((None, *places)):
        assert at is not None
        gap = at if before is None else at - before - 1
        parts.append(_message(12, _signed(1, gap) + _number(2, 1)))
    for low, high in pairwise((0, *(hits[at] for at in places))):
        parts.append(_signed(13, high - low))
    pairs = b"".join(_message(1, _text(1, key) + _text(2, text)) for key, text in labels.items())
    metric = pairs + _message(7, b"".join(parts))
    family = _text(1, name) + _number(3, _HISTOGRAM) + _message(4, metric)
    return _varint(len(family)) + family


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _signed(field: int, number: int) -> bytes:
    return _number(field, number * 2 if number >= 0 else -number * 2 - 1)


def _double(field: int, number: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", number)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
