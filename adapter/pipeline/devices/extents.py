"""The range of a device's fields over a window, computed on first use."""

from __future__ import annotations

from bisect import bisect_right
from math import isnan, nan
from typing import Final, NamedTuple

from adapter.pipeline.devices.history import History


class Extent(NamedTuple):
    """Least, mean and largest value of one field, in its unit."""

    low: float
    mean: float
    high: float


UNKNOWN: Final = Extent(nan, nan, nan)
"""Every comparison with it is false."""


class Extents:
    """The extents of fields over the window up to the newest sample."""

    __slots__ = ("_first", "_history", "_known")

    def __init__(self, history: History, window: float) -> None:
        self._history = history
        self._first = bisect_right(history.times, history.newest - window)
        self._known: dict[str, Extent] = {}

    def __getitem__(self, name: str) -> Extent:
        extent = self._known.get(name)
        if extent is None:
            extent = self._known[name] = self._extent(name)
        return extent

    def _extent(self, name: str) -> Extent:
        history = self._history
        numbers = [
            value
            for column in history.layout.of_field.get(name, ())
            for value in history.column(column, self._first)
            if not isnan(value)
        ]
        return (
            Extent(min(numbers), sum(numbers) / len(numbers), max(numbers)) if numbers else UNKNOWN
        )
