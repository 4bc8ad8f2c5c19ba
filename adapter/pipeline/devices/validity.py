"""Check whether a number is usable for its field: finite, no sentinel, in range.

Every way in which pages are taken in asks here; whether a field is usable on MIG instances is in
its :class:`adapter.pipeline.catalog.field.Spelling`. An invalid number is a missing value. It is
never clamped: a false number scales a workload.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import isfinite
from typing import Final

from adapter.pipeline.exposition.samples import Decimals

SENTINELS: Final = frozenset(
    (
        *map(float, range(2147483632, 2147483636)),
        *map(float, range(9223372036854775792, 9223372036854775796)),
        *(140737488355328.0 + i for i in range(4)),
    )
)
"""DCGM's blank values: int32, int64 and double (``dcgm_structs.h``)."""
LEAST_SENTINEL: Final = min(SENTINELS)


class Invalid(StrEnum):
    """Why a sample's number is left out."""

    NOT_FINITE = "not_finite"
    SENTINEL = "sentinel"
    OUT_OF_RANGE = "out_of_range"
    AMBIGUOUS_SCALE = "ambiguous_scale"


class RatioScale(StrEnum):
    """The unit of samples whose name ends in ``_RATIO``."""

    AUTO = "auto"
    RATIO = "ratio"
    PERCENT = "percent"


def complaint(value: float, low: float, high: float) -> Invalid | None:
    """Return why a page's number is invalid, or None if it is valid."""
    if not isfinite(value):
        return Invalid.NOT_FINITE
    if value in SENTINELS:
        return Invalid.SENTINEL
    if not low <= value <= high:
        return Invalid.OUT_OF_RANGE
    return None


def scale_shown(values: Iterable[float], before: RatioScale) -> RatioScale:
    """Return the scale that an exporter's ``_RATIO`` samples show.

    DCGM 4.6 uses a name ending in ``_RATIO`` for an integer percentage, DCGM 4.7 for a float
    from 0 to 1. Only 1 can be either: a fraction shows a ratio, and a number above 1 a
    percentage. If one page shows both, each sample is read alone. A 1 that is written with
    decimals shows a ratio, unless the exporter or the page also shows a percentage: then the
    scale is unknown.
    """
    shown: set[RatioScale] = set()
    written_out = False
    for value in values:
        if value == 1:
            written_out = written_out or isinstance(value, Decimals)
        elif 0 < value <= 100:
            shown.add(RatioScale.PERCENT if value > 1 else RatioScale.RATIO)
    if written_out:
        shown.add(RatioScale.RATIO)
        if before is RatioScale.PERCENT:
            shown.add(before)
    if not shown:
        return before
    return shown.pop() if len(shown) == 1 else RatioScale.AUTO


def percent_of(value: float, scale: RatioScale) -> float | Invalid:
    """Return a ``_RATIO`` sample's number in percent, or why it is left out.

    Args:
        value: as on the page; finite and not a sentinel.
        scale: the exporter's scale, if known.
    """
    if not 0 <= value <= 100:
        return Invalid.OUT_OF_RANGE
    if value > 1:
        return value if scale is not RatioScale.RATIO else Invalid.OUT_OF_RANGE
    if value == 1 and scale is RatioScale.AUTO:
        return Invalid.AMBIGUOUS_SCALE
    return value if scale is RatioScale.PERCENT else value * 100
