"""A history as text for a ConfigMap: versioned, less than 4 kB, and validated when it is read.

The text is ``1:`` and the base64 of deflated JSON
``[first, [pods, ...], [[day, [peak, ...]], ...]]``: the first recent minute since the epoch, the
pods of each minute from there on (null without an observation), and the days. Others may have
written or truncated the text. If it cannot be read, the workload starts without a history.
"""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from typing import Any, Final, NamedTuple

from adapter.nodepool.model.history import (
    DAYS,
    EMPTY,
    MINUTE,
    RECENT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)

_VERSION: Final = "1"
_LARGEST: Final = 64 * 1024
"""Maximum bytes of JSON: several times the largest history."""
_MOST_PODS: Final = 2**31 - 1
"""Maximum of ``spec.replicas``."""


class DecodedHistory(NamedTuple):
    """The content of a text."""

    history: DemandHistory
    problem: str | None
    """Why the text cannot be read; None if it can."""


def encode(history: DemandHistory) -> str:
    """Return the history as ASCII. :func:`decode` is the inverse."""
    recent = history.recent
    first = int(recent[0].time) // MINUTE if recent else 0
    pods: list[int | None] = []
    for point in recent:
        index = int(point.time) // MINUTE - first
        pods += [None] * (index - len(pods))
        pods.append(point.pods)
    document = [first, pods, [[day.number, day.peaks] for day in history.days]]
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    return f"{_VERSION}:{base64.b64encode(packed).decode()}"


def decode(text: str) -> DecodedHistory:
    """Read the text of :func:`encode`. For any other text, return an empty history and a reason."""
    version, _, body = text.partition(":")
    if version != _VERSION:
        return DecodedHistory(EMPTY, f"the history is of version {version[:20]!r}, not {_VERSION}")
    try:
        return DecodedHistory(_history(json.loads(_inflate(body))), None)
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        return DecodedHistory(EMPTY, f"the history cannot be read: {error}")


def _inflate(body: str) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(base64.b64decode(body, validate=True), _LARGEST)
    if not inflater.eof:
        raise ValueError(f"it is cut short, or longer than {_LARGEST} bytes")
    return data


def _history(document: Any) -> DemandHistory:
    first, pods, days = document
    if len(pods) > RECENT or len(days) > DAYS + 1:
        raise ValueError(f"{len(pods)} minutes and {len(days)} days are more than are ever kept")
    start = _whole(first)
    recent = tuple(
        DemandPoint(float((start + index) * MINUTE), _whole(each))
        for index, each in enumerate(pods)
        if each is not None
    )
    known = tuple(_day(*day) for day in days)
    if any(left.number >= right.number for left, right in pairwise(known)):
        raise ValueError("its days are not in order")
    return DemandHistory(recent, known)


def _day(number: Any, peaks: Any) -> DemandDay:
    if len(peaks) != SLOTS:
        raise ValueError(f"a day has {len(peaks)} slots, not {SLOTS}")
    return DemandDay(
        _whole(number), tuple(None if each is None else _whole(each) for each in peaks)
    )


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_PODS:
        raise ValueError(f"{str(value)[:20]!r} is not a whole number from 0 to {_MOST_PODS}")
    return value
