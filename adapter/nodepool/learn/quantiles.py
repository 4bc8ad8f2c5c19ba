"""The fitted table: quantiles of the highest demand within a lead time. Pure.

``quantiles.json`` has, for some lead times, one row of coefficients for each quantile. A row is
linear in the inputs of a situation; each coefficient is piecewise linear in the logarithm of the
level. ``python -m load.nodepoolfit`` writes the file from recorded load.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from operator import mul
from typing import Final

import msgspec

from adapter.nodepool.learn.situation import Situation
from adapter.nodepool.model.history import MINUTE

_FILE: Final = "quantiles.json"
_CROSSING: Final = 1
"""Quantiles by which rows that are fitted one by one may be out of order."""
MOST: Final = 0.999
"""Largest quantile. Beyond the table, a tail is exponential."""


class QuantileTable(msgspec.Struct, frozen=True):
    """What was fitted."""

    knots: tuple[float, ...]
    """Levels in pods, rising, between which coefficients are interpolated."""
    quantiles: tuple[float, ...]
    """Rising."""
    minutes: tuple[float, ...]
    """Lead times plus the minute until the next decision, rising."""
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    """By minutes, then by quantile: for each input a coefficient at each knot."""


@cache
def table() -> QuantileTable:
    """Return the table of this version."""
    text = files("adapter.nodepool.learn").joinpath(_FILE).read_bytes()
    return msgspec.json.decode(text, type=QuantileTable)


class Distribution:
    """The distribution of the highest demand within a lead time, in pods."""

    def __init__(self, level: float, unit: float, changes: Sequence[float]) -> None:
        """Take the change from the level at each quantile of the table, in any order."""
        # Quantiles are fitted one by one, so they may cross.
        self._changes = sorted(changes)
        self._level = level
        self._unit = unit

    def quantile(self, probability: float) -> float:
        """Return the number of pods that demand does not exceed with this probability."""
        after, share = _place(probability)
        before = self._changes[after - 1]
        change = before + share * (self._changes[after] - before)
        return max(0.0, self._level + self._unit * change)


def distribution(situation: Situation, lead: float) -> Distribution:
    """Return the distribution for a situation.

    Args:
        lead: seconds from the order of a node until it is usable.
    """
    return Distribution(situation.level, situation.unit, _changes(situation, lead, slice(None)))


def one_quantile(situation: Situation, lead: float, probability: float) -> float:
    """Return a quantile of :func:`distribution`, faster.

    Only the rows of the next quantiles are read: those farther away seldom cross them.
    """
    after, share = _place(probability)
    first = max(0, after - 1 - _CROSSING)
    low, high = sorted(_changes(situation, lead, slice(first, after + 1 + _CROSSING)))[
        after - 1 - first : after + 1 - first
    ]
    return max(0.0, situation.level + situation.unit * (low + share * (high - low)))


def _changes(situation: Situation, lead: float, rows: slice) -> list[float]:
    after, share = _weights(situation.level)
    low = [each * (1 - share) for each in situation.inputs]
    high = [each * share for each in situation.inputs]
    inputs = (*low, *high)
    return [sum(map(mul, row, inputs)) for row in _rows(lead)[after - 1][rows]]


@lru_cache(maxsize=256)
def _place(probability: float) -> tuple[int, float]:
    """Return the quantile after a probability, and its share. More than 1 is beyond the table."""
    places = [-math.log1p(-each) for each in table().quantiles]
    place = -math.log1p(-min(probability, MOST))
    after = min(max(1, bisect_left(places, place)), len(places) - 1)
    low, high = places[after - 1], places[after]
    return after, max(0.0, (place - low) / (high - low))


def _weights(level: float) -> tuple[int, float]:
    """Return the knot after a level, and its share."""
    knots = _knots()
    place = math.log1p(level)
    after = min(max(1, bisect_left(knots, place)), len(knots) - 1)
    low, high = knots[after - 1], knots[after]
    return after, min(1.0, max(0.0, (place - low) / (high - low)))


@cache
def _knots() -> tuple[float, ...]:
    return tuple(math.log1p(each) for each in table().knots)


@lru_cache(maxsize=256)
def _rows(lead: float) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return the rows for a lead time, for each pair of knots: low, high."""
    fitted = table()
    minutes = min(max(lead / MINUTE + 1, fitted.minutes[0]), fitted.minutes[-1])
    after = min(max(1, bisect_left(fitted.minutes, minutes)), len(fitted.minutes) - 1)
    low, high = fitted.minutes[after - 1], fitted.minutes[after]
    share = math.log(minutes / low) / math.log(high / low)
    rows = [
        [first + share * (second - first) for first, second in zip(*pair, strict=True)]
        for pair in zip(fitted.rows[after - 1], fitted.rows[after], strict=True)
    ]
    count = len(fitted.knots)
    return tuple(
        tuple((*row[knot - 1 :: count], *row[knot::count]) for row in rows)
        for knot in range(1, count)
    )
