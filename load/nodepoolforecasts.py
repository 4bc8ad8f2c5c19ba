"""Forecasts of every minute of a trace, as the controller would have them if no pod ever waited.

All policies and variants of the forecast share this demand, so each minute is prepared once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.quantiles import MOST, QuantileTable
from adapter.nodepool.learn.record import FULL
from adapter.nodepool.learn.situation import LEVEL, Series, Situation, earlier_days
from adapter.nodepool.model.history import EMPTY, MINUTE, RECENT, DemandPoint
from adapter.replay.nodeworld import NodePhysics
from load.nodepooltraces import STEP, TARGET, Part, Trace

LEAD: Final = NodePhysics().boot
AHEAD: Final = int(LEAD // STEP) + 1
"""Minutes that a forecast is about."""
Array = NDArray[np.float64]


class Minutes(NamedTuple):
    """What each minute of a trace from the tenth on shows, as arrays of one row a minute."""

    trace: Trace
    pods: Array
    """The load of every minute of the trace."""
    level: Array
    unit: Array
    inputs: Array
    """One column for each input of a situation."""
    most: Array
    """The bound by the largest rise that the workload has shown; infinity without one."""
    highest: Array
    """The highest load within a boot time and a minute; NaN at the end of the trace."""

    def within(self, part: Part) -> slice:
        """Return the rows of a part."""
        return slice(max(0, part.first - LEVEL), max(0, part.end - LEVEL))


def loads(trace: Trace) -> list[float]:
    """Return the load of each minute in pods."""
    return [work / TARGET for work in trace.work]


def minutes(trace: Trace) -> Minutes:
    """Prepare every minute of a trace."""
    pods = loads(trace)
    points = [DemandPoint(trace.begin + STEP * index, each) for index, each in enumerate(pods)]
    series = Series(points)
    history = EMPTY
    situations: list[Situation] = []
    for index, point in enumerate(points):
        history = learn(history, point)
        if index >= LEVEL:
            usual = earlier_days(history.days, LEAD, point.time).usual
            situations.append(series.situation(index).after(usual))
    level = np.array([each.level for each in situations])
    unit = np.array([each.unit for each in situations])
    highest = np.array(
        [
            max(pods[index + 1 : index + 1 + AHEAD]) if index + AHEAD < len(pods) else math.nan
            for index in range(LEVEL, len(pods))
        ]
    )
    return Minutes(
        trace,
        np.array(pods, dtype=np.float64),
        level,
        unit,
        np.array([each.inputs for each in situations]),
        level + unit * _largest((highest - level) / unit),
        highest,
    )


def _largest(rises: Array) -> Array:
    """Return the largest rise that each minute has seen; infinity before enough are known."""
    kept = RECENT - AHEAD
    found = np.full(len(rises), math.inf)
    for index in range(FULL + AHEAD, len(rises)):
        known = rises[max(0, index - kept) : index - AHEAD + 1]
        found[index] = max(0.0, float(known.max()))
    return found


def quantiles(
    table: QuantileTable, own: Minutes, asked: Sequence[float], *, bounded: bool = True
) -> Array:
    """Return pods that are not exceeded: one row for each quantile, not rounded."""
    changes = np.sort(features(table.knots, own.inputs, own.level) @ _rows(table).T)
    places = -np.log1p(-np.array(table.quantiles))
    found = []
    for quantile in asked:
        place = -math.log1p(-min(quantile, MOST))
        pairs = list(pairwise(range(len(places))))
        low, high = next((pair for pair in pairs if place < places[pair[1]]), pairs[-1])
        share = max(0.0, float((place - places[low]) / (places[high] - places[low])))
        change = changes[:, low] + share * (changes[:, high] - changes[:, low])
        most = np.maximum(0.0, own.level + own.unit * change)
        found.append(np.minimum(most, own.most) if bounded else most)
    return np.array(found)


def features(knots: Sequence[float], inputs: Array, level: Array) -> Array:
    """Return what a row of the table is multiplied with: for each input one column a knot."""
    places = np.log1p(np.array(knots))
    hats = np.array([np.interp(np.log1p(level), places, row) for row in np.eye(len(places))]).T
    product = inputs[:, :, None] * hats[:, None, :]
    return np.asarray(product.reshape(len(level), -1), dtype=np.float64)


def _rows(table: QuantileTable) -> Array:
    """Return the rows for the boot time. It lies on one of the table's lead times or between."""
    ahead = LEAD / MINUTE + 1
    for index, (low, high) in enumerate(pairwise(table.minutes)):
        if low <= ahead <= high:
            share = math.log(ahead / low) / math.log(high / low)
            first, second = np.array(table.rows[index]), np.array(table.rows[index + 1])
            return np.asarray(first + share * (second - first), dtype=np.float64)
    raise ValueError(f"the table has no lead time near {LEAD:.0f} s")
