"""What HPAs were: what the page has seen since its start, and what ``serve`` had noted before."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapter.tools.client.histories import HpaName, HpaPast
from adapter.tools.overview.hpas import HpaSummary

Json = dict[str, Any]

POINTS: Final = 780
"""Points of one HPA: the hour before the start, and an hour at the default interval."""
MOST_HPAS: Final = 2000
SEAM: Final = 90.0
"""Seconds between two points beyond which a minute between them may be missing."""
_COLUMNS: Final = ("time", "value", "goal", "current", "desired")


class HpaHistory:
    """Bounded in points and in HPAs."""

    def __init__(self) -> None:
        # One array for each HPA, point after point; NaN is a missing value. The garbage collector
        # visits each array, and a large cluster has many HPAs.
        self._series: dict[HpaName, array[float]] = {}
        self._before: Mapping[HpaName, HpaPast] = {}
        self.left = 0
        """HPAs of the last look that are not kept, because there are too many."""
        self._newest = -math.inf
        """Epoch seconds of the newest noted point."""
        self.gap = False
        """Minutes between two points are missing, which ``serve`` may have kept."""

    def add(self, states: Iterable[HpaSummary], time: float) -> None:
        """Add what the HPAs are now. The value is that of the first metric, so that it is of one
        metric over time."""
        hpas = {(state.namespace, state.name): state for state in states if state.kind == "HPA"}
        if len(self._series.keys() | hpas.keys()) > MOST_HPAS:
            for gone in self._series.keys() - hpas.keys():
                del self._series[gone]
        self.left = 0
        for key, state in hpas.items():
            if key not in self._series and len(self._series) >= MOST_HPAS:
                self.left += 1
                continue
            metric = state.metrics[0] if state.metrics else None
            value, goal = (metric.value, metric.goal) if metric else (None, None)
            row = (time, value, goal, state.current, state.desired)
            if (series := self._series.get(key)) is None:
                series = self._series[key] = self._noted_points(key, metric.name if metric else "")
            if series and time - series[-len(_COLUMNS)] > SEAM:
                self.gap = True
            series.extend(map(_number, row))
            if len(series) > POINTS * len(_COLUMNS):
                del series[: len(_COLUMNS)]
        self._before = {}  # an HPA that appears later is new

    def begin(self, before: Mapping[HpaName, HpaPast]) -> None:
        """Take what was noted before the page was started, and in gaps since then."""
        self._before = before
        newest = max((past.time[-1] for past in before.values()), default=-math.inf)
        newer, self._newest = newest > self._newest, newest
        self.gap = newer and any(_has_seam(series, newest) for series in self._series.values())
        for key, series in self._series.items():
            if key not in before:
                continue
            noted = self._noted_points(key, before[key].metric)
            joined = _join_points(noted, series)
            self._series[key] = joined[-POINTS * len(_COLUMNS) :]

    def _noted_points(self, key: HpaName, metric: str) -> array[float]:
        """Return the noted points. Values of another metric are left out."""
        past = self._before.get(key)
        if past is None:
            return array("d")
        same = past.metric == metric
        rows = zip(past.time, past.value, past.target, past.current, past.desired, strict=True)
        return array(
            "d",
            (
                _number(cell)
                for time, value, goal, current, desired in rows
                for cell in (time, *((value, goal) if same else (None, None)), current, desired)
            ),
        )

    def copy(self, names: Iterable[str]) -> dict[str, dict[str, array[float]]]:
        """Return the points of HPAs by ``NAMESPACE/NAME``; unknown ones are left out."""
        points = {}
        for name in names:
            namespace, _, hpa = name.partition("/")
            if (series := self._series.get((namespace, hpa))) is not None:
                width = len(_COLUMNS)
                points[name] = {key: series[index::width] for index, key in enumerate(_COLUMNS)}
        return points


def _join_points(noted: array[float], points: array[float]) -> array[float]:
    """Return points of the page with noted ones where it has none: before them, and in gaps."""
    width = len(_COLUMNS)
    joined, index, last = array("d"), 0, -math.inf
    for place in range(0, len(points), width):
        time = points[place]
        while index < len(noted) and noted[index] < time:
            if noted[index] > last and time - last > SEAM:
                joined.extend(noted[index : index + width])
            index += width
        joined.extend(points[place : place + width])
        last = time
    return joined if points else noted


def _has_seam(points: array[float], newest: float) -> bool:
    """Return whether minutes are missing after the newest noted point."""
    last = newest
    for time in points[:: len(_COLUMNS)]:
        if time > newest:
            return time - last > SEAM
        last = max(last, time)
    return False


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def as_json(copied: dict[str, dict[str, array[float]]]) -> Json:
    """Return points for the page: None for a missing value."""
    return {
        name: {
            key: [None if math.isnan(value) else value for value in column]
            for key, column in columns.items()
        }
        for name, columns in copied.items()
    }
