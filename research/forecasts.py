"""Forecasts of every minute of a trace, as the controller would have them if no pod ever waited.

All policies and variants of the forecast share this demand, so each minute is prepared once.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.nodepool.learn.checks import (
    WEIGHED_AT,
    ForecastCheck,
    Lessons,
    lessons,
    pods_of,
)
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.quantiles import MOST, FittedTables, QuantileTable
from adapter.nodepool.learn.record import APART, FULL
from adapter.nodepool.learn.situation import LEVEL, Series, Situation, earlier_days
from adapter.nodepool.model.history import EMPTY, MINUTE, RECENT, DemandPoint
from adapter.tools.replay.nodeworld import NodePhysics
from research.traces import STEP, TARGET, Part, Trace

LEAD: Final = NodePhysics().boot
AHEAD: Final = int(LEAD // STEP) + 1
"""Minutes that a forecast is about."""
FIRST: Final = LEVEL - 1
"""Index of the first minute whose forecast the controller checks."""
Array = NDArray[np.float64]


class Minutes(NamedTuple):
    """What each minute of a trace from :data:`FIRST` on shows, as arrays of one row a minute."""

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
        return slice(max(0, part.first - FIRST), max(0, part.end - FIRST))


def loads(trace: Trace) -> list[float]:
    """Return the load of each minute in pods."""
    return [work / TARGET for work in trace.work]


def minutes(trace: Trace) -> Minutes:
    """Prepare every minute of a trace."""
    pods = loads(trace)
    points = [DemandPoint(trace.begin + STEP * index, load) for index, load in enumerate(pods)]
    series = Series(points)
    history = EMPTY
    situations: list[Situation] = []
    for index, point in enumerate(points):
        history = learn(history, point)
        if index >= FIRST:
            usual = earlier_days(history.days, LEAD, point.time).usual
            situations.append(series.situation(index).after(usual))
    level = np.array([situation.level for situation in situations])
    unit = np.array([situation.unit for situation in situations])
    highest = np.array(
        [
            max(pods[index + 1 : index + 1 + AHEAD]) if index + AHEAD < len(pods) else math.nan
            for index in range(FIRST, len(pods))
        ]
    )
    return Minutes(
        trace,
        np.array(pods, dtype=np.float64),
        level,
        unit,
        np.array([situation.inputs for situation in situations]),
        level + unit * _largest_rises((highest - level) / unit),
        highest,
    )


def _largest_rises(rises: Array) -> Array:
    """Return the largest rise that each minute has seen; infinity before enough are known."""
    kept_minutes = RECENT - AHEAD
    largest = np.full(len(rises), math.inf)
    for index in range(FULL + AHEAD, len(rises)):
        recent = rises[max(0, index - kept_minutes) : index - AHEAD + 1]
        largest[index] = max(0.0, float(recent.max()))
    return largest


def quantiles(
    fitted: FittedTables,
    trace_minutes: Minutes,
    probabilities: Sequence[float],
    *,
    bounded: bool = True,
) -> Array:
    """Return pods that are not exceeded: one row for each quantile, not rounded."""
    alone = trace_minutes._replace(inputs=trace_minutes.inputs.copy())
    alone.inputs[:, -1] = 0
    taught = _learn_lessons(
        trace_minutes, _weighed_quantiles(fitted, trace_minutes, _changes(fitted, alone))
    )
    weights = np.array([lesson.weights for lesson in taught]).T
    changes = _changes(fitted, trace_minutes)
    pods = np.maximum(0.0, _pods(trace_minutes, np.sort(changes)))
    pods = (weights[:, :, None] * pods).sum(axis=0)
    base: Array = (weights * _weighed_quantiles(fitted, trace_minutes, changes)).sum(axis=0)
    not_exceeded = np.array(
        [_quantile_of(fitted, pods, probability) for probability in probabilities]
    )
    residuals = (not_exceeded - base) / trace_minutes.unit
    for minute, lesson in enumerate(taught):
        checked = lesson.idle if trace_minutes.level[minute] <= 0 else lesson.loaded
        for row, probability in enumerate(probabilities):
            residuals[row, minute] = checked.supported_residual(probability, residuals[row, minute])
    not_exceeded = np.maximum(0.0, base + trace_minutes.unit * residuals)
    return np.minimum(not_exceeded, trace_minutes.most) if bounded else not_exceeded


def _pods(trace_minutes: Minutes, changes: Array) -> Array:
    """Return pods from changes: by table, minute and quantile."""
    return np.asarray(trace_minutes.level[:, None] + trace_minutes.unit[:, None] * changes)


def _changes(fitted: FittedTables, trace_minutes: Minutes) -> Array:
    """Return the change from the level in units, not in order: by table, minute and quantile.

    A single table counts as two that are the same.
    """
    changes = [
        features(table.knots, trace_minutes.inputs, trace_minutes.level) @ _rows(fitted, table).T
        for table in fitted.tables
    ]
    return np.array(changes if len(changes) > 1 else changes * 2)


def _weighed_quantiles(fitted: FittedTables, trace_minutes: Minutes, changes: Array) -> Array:
    """Return the quantile by which checks compare the tables: one row for each table."""
    return np.maximum(0.0, _quantile_of(fitted, _pods(trace_minutes, changes), WEIGHED_AT))


def _quantile_of(fitted: FittedTables, pods: Array, probability: float) -> Array:
    """Return a quantile from those of the tables, the last axis."""
    places = -np.log1p(-np.array(fitted.quantiles))
    place = -math.log1p(-min(probability, MOST))
    pairs = list(pairwise(range(len(places))))
    low, high = next((pair for pair in pairs if place < places[pair[1]]), pairs[-1])
    share = max(0.0, float((place - places[low]) / (places[high] - places[low])))
    return np.asarray(pods[..., low] + share * (pods[..., high] - pods[..., low]))


def _learn_lessons(trace_minutes: Minutes, weighed: Array) -> list[Lessons]:
    """Return what the controller learns from its checks in each minute.

    Args:
        weighed: what each table forecast without earlier days, as checks do.
    """
    loads = trace_minutes.pods[FIRST:]
    made = [
        ForecastCheck(Situation(level, unit, ()), most, most, pods_of(load), highest)
        for level, unit, most, load, highest in zip(
            trace_minutes.level.tolist(),
            trace_minutes.unit.tolist(),
            map(tuple, weighed.T.tolist()),
            loads.tolist(),
            trace_minutes.highest.tolist(),
            strict=True,
        )
    ]
    # In minutes from the first row: a check is of the last whole one before each of these times.
    apart = AHEAD + APART / MINUTE
    begin = trace_minutes.trace.begin / MINUTE + FIRST
    first = math.ceil(begin / apart)
    due = [number * apart - begin for number in range(first, first + int(len(made) / apart) + 1)]
    taught = []
    for newest in range(-AHEAD, len(made) - AHEAD):
        oldest = max(0, newest + AHEAD + FIRST + 1 - RECENT)
        due_now = due[bisect_left(due, oldest) : bisect_right(due, newest)]
        taught.append(lessons([made[int(minute)] for minute in due_now], WEIGHED_AT))
    return taught


def features(knots: Sequence[float], inputs: Array, level: Array) -> Array:
    """Return what a row of the table is multiplied with: for each input one column a knot."""
    places = np.log1p(np.array(knots))
    hats = np.array([np.interp(np.log1p(level), places, row) for row in np.eye(len(places))]).T
    product = inputs[:, :, None] * hats[:, None, :]
    return np.asarray(product.reshape(len(level), -1), dtype=np.float64)


def _rows(fitted: FittedTables, table: QuantileTable) -> Array:
    """Return the rows for the boot time. It lies on one of the table's lead times or between."""
    ahead = LEAD / MINUTE + 1
    for index, (low, high) in enumerate(pairwise(fitted.minutes)):
        if low <= ahead <= high:
            share = math.log(ahead / low) / math.log(high / low)
            first, second = np.array(table.rows[index]), np.array(table.rows[index + 1])
            return np.asarray(first + share * (second - first), dtype=np.float64)
    raise ValueError(f"the table has no lead time near {LEAD:.0f} s")
