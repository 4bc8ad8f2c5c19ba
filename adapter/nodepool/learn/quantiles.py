"""The fitted tables: quantiles of the highest demand within a lead time. Pure.

``quantiles.json`` has one table for each kind of service. A table has, for some lead times, one row
of coefficients for each quantile. A row is linear in the inputs of a situation; each coefficient
is piecewise linear in the logarithm of the level. Which table describes a workload is learned from
its own past (:mod:`adapter.nodepool.learn.record`). ``python -m research.fit`` writes the file
from recorded load.
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
MOST: Final = 0.999
"""Largest quantile. Beyond the tables, a tail is exponential."""


class QuantileTable(msgspec.Struct, frozen=True):
    """What was fitted to one kind of service."""

    knots: tuple[float, ...]
    """Levels in pods, rising, between which coefficients are interpolated."""
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    """By minutes, then by quantile: for each input a coefficient at each knot."""


class FittedTables(msgspec.Struct, frozen=True):
    """What was fitted."""

    quantiles: tuple[float, ...]
    """Rising."""
    minutes: tuple[float, ...]
    """Lead times plus the minute until the next decision, rising."""
    tables: tuple[QuantileTable, ...]
    """Of a service whose load follows the day, and of small services that rise at any hour."""


@cache
def fitted_tables() -> FittedTables:
    """Return the tables of this version."""
    text = files("adapter.nodepool.learn").joinpath(_FILE).read_bytes()
    return msgspec.json.decode(text, type=FittedTables)


class Distribution:
    """The distribution of the highest demand within a lead time, in pods.

    Each of its quantiles is the weighted mean of those that the tables give.
    """

    def __init__(self, situation: Situation, lead: float, weights: Sequence[float]) -> None:
        """Take the weight of each table, in their order.

        Args:
            lead: seconds from the order of a node until it is usable.
            weights: their sum is 1.
        """
        level, unit, _ = situation
        # Quantiles are fitted one by one, so they may cross.
        tables = [
            [max(0.0, level + unit * rise) for rise in sorted(_changes(situation, lead, table))]
            for table in range(len(fitted_tables().tables))
        ]
        self._pods: list[float] = [
            sum(weight * pods for weight, pods in zip(weights, quantile, strict=True))
            for quantile in zip(*tables, strict=True)
        ]

    def quantile(self, probability: float) -> float:
        """Return the number of pods that demand does not exceed with this probability."""
        after, share = _place(probability)
        low, high = self._pods[after - 1 : after + 1]
        return low + share * (high - low)


def quantile_of_each(situation: Situation, lead: float, probability: float) -> tuple[float, ...]:
    """Return a quantile by each table alone, much faster than from a :class:`Distribution`.

    Quantiles that cross are not put in order: they do so in few minutes of the recorded traces.

    Args:
        lead: seconds from the order of a node until it is usable.

    Returns:
        Pods, in the order of the tables.
    """
    level, unit, inputs = situation
    quantiles = []
    for table in range(len(fitted_tables().tables)):
        after, share = _place_of_level(level, table)
        row = _quantile_row(lead, probability, table)
        low = sum(map(mul, row[after - 1], inputs))
        high = sum(map(mul, row[after], inputs))
        quantiles.append(max(0.0, level + unit * (low + share * (high - low))))
    return tuple(quantiles)


def _changes(situation: Situation, lead: float, table: int) -> list[float]:
    """Return the change from the level, in units, at the quantiles of one table."""
    after, share = _place_of_level(situation.level, table)
    rows = _rows(lead, table)
    pairs = zip(rows[after - 1], rows[after], strict=True)
    dots = ([sum(map(mul, row, situation.inputs)) for row in pair] for pair in pairs)
    return [low + share * (high - low) for low, high in dots]


@lru_cache(maxsize=256)
def _place(probability: float) -> tuple[int, float]:
    """Return the quantile after a probability, and its share. More than 1 is beyond the tables."""
    places = [-math.log1p(-quantile) for quantile in fitted_tables().quantiles]
    place = -math.log1p(-min(probability, MOST))
    after = min(max(1, bisect_left(places, place)), len(places) - 1)
    low, high = places[after - 1], places[after]
    return after, max(0.0, (place - low) / (high - low))


def _place_of_level(level: float, table: int) -> tuple[int, float]:
    """Return the knot of a table after a level, and its share."""
    knots = _knots(table)
    place = math.log1p(level)
    after = min(max(1, bisect_left(knots, place)), len(knots) - 1)
    low, high = knots[after - 1], knots[after]
    return after, min(1.0, max(0.0, (place - low) / (high - low)))


@cache
def _knots(table: int) -> tuple[float, ...]:
    return tuple(math.log1p(knot) for knot in fitted_tables().tables[table].knots)


_Row = tuple[float, ...]
"""One coefficient for each input."""


@lru_cache(maxsize=512)
def _rows(lead: float, table: int) -> tuple[tuple[_Row, ...], ...]:
    """Return the rows of a table for a lead time: by knot, then by quantile."""
    ahead, fit = fitted_tables().minutes, fitted_tables().tables[table]
    minutes = min(max(lead / MINUTE + 1, ahead[0]), ahead[-1])
    after = min(max(1, bisect_left(ahead, minutes)), len(ahead) - 1)
    low, high = ahead[after - 1], ahead[after]
    share = math.log(minutes / low) / math.log(high / low)
    shorter, longer = fit.rows[after - 1 : after + 1]
    rows = [_between(*pair, share) for pair in zip(shorter, longer, strict=True)]
    count = len(fit.knots)
    return tuple(tuple(row[knot::count] for row in rows) for knot in range(count))


@lru_cache(maxsize=512)
def _quantile_row(lead: float, probability: float, table: int) -> tuple[_Row, ...]:
    """Return the row of one quantile of a table for a lead time, by knot."""
    after, share = _place(probability)
    return tuple(_between(rows[after - 1], rows[after], share) for rows in _rows(lead, table))


def _between(low: Sequence[float], high: Sequence[float], share: float) -> tuple[float, ...]:
    return tuple(first + share * (second - first) for first, second in zip(low, high, strict=True))
