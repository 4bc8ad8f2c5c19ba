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

    def add(self, states: Iterable[HpaSummary], time: float) -> None:
        """Add what the HPAs are now. The value is that of the first metric, so that it is of one
        metric over time."""
        seen = {(state.namespace, state.name): state for state in states if state.kind == "HPA"}
        if len(self._series.keys() | seen.keys()) > MOST_HPAS:
            for gone in self._series.keys() - seen.keys():
                del self._series[gone]
        self.left = 0
        for key, state in seen.items():
            if key not in self._series and len(self._series) >= MOST_HPAS:
                self.left += 1
                continue
            metric = state.metrics[0] if state.metrics else None
            value, goal = (metric.value, metric.goal) if metric else (None, None)
            row = (time, value, goal, state.current, state.desired)
            if (series := self._series.get(key)) is None:
                series = self._series[key] = self._begun(key, metric.name if metric else "")
            series.extend(map(_number, row))
            if len(series) > POINTS * len(_COLUMNS):
                del series[: len(_COLUMNS)]
        self._before = {}  # an HPA that appears later is new

    def begin(self, before: Mapping[HpaName, HpaPast]) -> None:
        """Take what was noted before the page was started."""
        self._before = before
        for key, series in self._series.items():
            metric = before[key].metric if key in before else ""
            earlier = self._begun(key, metric, until=series[0] if series else math.inf)
            self._series[key] = earlier + series

    def _begun(self, key: HpaName, metric: str, until: float = math.inf) -> array[float]:
        """Return the points before those of the page. Values of another metric are left out."""
        past = self._before.get(key)
        if past is None:
            return array("d")
        same = past.metric == metric
        rows = zip(past.time, past.value, past.target, past.current, past.desired, strict=True)
        return array(
            "d",
            (
                _number(each)
                for time, value, goal, current, desired in rows
                if time < until
                for each in (time, *((value, goal) if same else (None, None)), current, desired)
            ),
        )

    def copy(self, names: Iterable[str]) -> dict[str, dict[str, array[float]]]:
        """Return the points of HPAs by ``NAMESPACE/NAME``; unknown ones are left out."""
        found = {}
        for name in names:
            namespace, _, hpa = name.partition("/")
            if (series := self._series.get((namespace, hpa))) is not None:
                width = len(_COLUMNS)
                found[name] = {key: series[at::width] for at, key in enumerate(_COLUMNS)}
        return found


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
