"""A history as text for a ConfigMap: versioned, small, and validated when it is read.

The text is ``2:`` and the base64 of deflated JSON
``[first, [load, ...], [[day, [peak, ...]], ...]]``: the first recent minute since the epoch, the
load of each minute from there on in hundredths of a pod (null without an observation), and the
days. It takes less than 5 kB for a load of at most a thousand pods. A text of version 1 has whole
pods. Others may have written or truncated the text. If it cannot be read, the workload starts
without a history.
"""

from __future__ import annotations

import base64
import zlib
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

import msgspec

from adapter.nodepool.model.history import (
    DAYS,
    EMPTY,
    MINUTE,
    MOST_LOAD,
    PER_POD,
    RECENT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)

_VERSION: Final = "2"
_PER_POD: Final = {"1": 1, _VERSION: PER_POD}
"""Version -> units of a pod."""
_LARGEST: Final = 64 * 1024
"""Maximum bytes of JSON: several times the largest history."""
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Of a minute or a day since the epoch."""
_Load = Annotated[int, msgspec.Meta(ge=0, le=int(MOST_LOAD) * PER_POD)]
_Peaks = Annotated[list[_Load | None], msgspec.Meta(min_length=SLOTS, max_length=SLOTS)]
_Document = tuple[
    _Number,
    Annotated[list[_Load | None], msgspec.Meta(max_length=RECENT)],
    Annotated[list[tuple[_Number, _Peaks]], msgspec.Meta(max_length=DAYS + 1)],
]


class DecodedHistory(NamedTuple):
    """The content of a text."""

    history: DemandHistory
    problem: str | None
    """Why the text cannot be read; None if it can."""


def encode(history: DemandHistory) -> str:
    """Return the history as ASCII. :func:`decode` is the inverse."""
    recent = history.recent
    first = int(recent[0].time) // MINUTE if recent else 0
    loads: list[int | None] = []
    for point in recent:
        index = int(point.time) // MINUTE - first
        loads += [None] * (index - len(loads))
        loads.append(_units(point.pods))
    days = [
        (day.number, [None if peak is None else _units(peak) for peak in day.peaks])
        for day in history.days
    ]
    document = first, loads, days
    packed = zlib.compress(msgspec.json.encode(document), 9)
    return f"{_VERSION}:{base64.b64encode(packed).decode()}"


def decode(text: str) -> DecodedHistory:
    """Read the text of :func:`encode`. For any other text, return an empty history and a reason."""
    version, _, body = text.partition(":")
    per_pod = _PER_POD.get(version)
    if per_pod is None:
        return DecodedHistory(EMPTY, f"the history is of version {version[:20]!r}, not {_VERSION}")
    try:
        document = msgspec.json.decode(_inflate(body), type=_Document)
        return DecodedHistory(_history(document, per_pod), None)
    except (ValueError, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        return DecodedHistory(EMPTY, f"the history cannot be read: {error}")


def _inflate(body: str) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(base64.b64decode(body, validate=True), _LARGEST)
    if not inflater.eof:
        raise ValueError(f"it is cut short, or longer than {_LARGEST} bytes")
    return data


def _units(pods: float) -> int:
    whole = int(pods)
    return whole * PER_POD if whole == pods else round(pods * PER_POD)


def _history(document: _Document, per_pod: int) -> DemandHistory:
    first, loads, days = document
    recent = tuple(
        DemandPoint(float((first + index) * MINUTE), _pods(units, per_pod))
        for index, units in enumerate(loads)
        if units is not None
    )
    demand_days = tuple(
        DemandDay(number, tuple(None if peak is None else _pods(peak, per_pod) for peak in peaks))
        for number, peaks in days
    )
    if any(left.number >= right.number for left, right in pairwise(demand_days)):
        raise ValueError("its days are not in order")
    return DemandHistory(recent, demand_days)


def _pods(units: int, per_pod: int) -> float:
    pods = units / per_pod
    if pods > MOST_LOAD:
        raise ValueError(f"a load is larger than {MOST_LOAD:g}")
    return pods
