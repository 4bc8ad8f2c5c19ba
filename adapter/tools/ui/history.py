"""What the page has seen of each HPA since its start: value, target and replicas over time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any, Final

from adapter.tools.overview.hpas import HpaSummary

Json = dict[str, Any]

POINTS: Final = 720
"""Points of one HPA: an hour at the default interval."""
MOST_HPAS: Final = 2000
_COLUMNS: Final = ("time", "value", "goal", "current", "desired")


class HpaHistory:
    """Bounded in points and in HPAs."""

    def __init__(self) -> None:
        # One array for each HPA, point after point; NaN is a missing value. The garbage collector
        # visits each array, and a large cluster has many HPAs.
        self._series: dict[tuple[str, str], array[float]] = {}
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
            series = self._series.setdefault(key, array("d"))
            series.extend([math.nan if each is None else each for each in row])
            if len(series) > POINTS * len(_COLUMNS):
                del series[: len(_COLUMNS)]

    def copy(self, names: Iterable[str]) -> dict[str, dict[str, array[float]]]:
        """Return the points of HPAs by ``NAMESPACE/NAME``; unknown ones are left out."""
        found = {}
        for name in names:
            namespace, _, hpa = name.partition("/")
            if (series := self._series.get((namespace, hpa))) is not None:
                width = len(_COLUMNS)
                found[name] = {key: series[at::width] for at, key in enumerate(_COLUMNS)}
        return found


def as_json(copied: dict[str, dict[str, array[float]]]) -> Json:
    """Return points for the page: None for a missing value."""
    return {
        name: {
            key: [None if math.isnan(value) else value for value in column]
            for key, column in columns.items()
        }
        for name, columns in copied.items()
    }
