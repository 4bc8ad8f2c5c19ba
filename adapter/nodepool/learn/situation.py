"""The situation of a workload at one minute: the inputs of the forecast. Pure.

Inputs are relative to the level, the mean of the last minutes, and in units of its square root,
as the noise of independent requests grows. So one table serves small and large workloads.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul
from typing import Final, NamedTuple

from adapter.nodepool.model.history import DAY, DAYS, MINUTE, SLOT, SLOTS, DemandDay, DemandPoint

LEVEL: Final = 10
"""Minutes over which the level is averaged."""
_SPREAD: Final = 15
"""Minutes over which the standard deviation is measured."""
_MEANS: Final = (3, 30, 60)
"""Minutes of the means beside the level."""
USUAL: Final = 1800
"""Seconds over which the demand of earlier days is averaged."""
_OLDER: Final = 0.6
"""Weight of a day relative to the next day."""
_FARTHEST: Final = 8.0
"""Units by which the demand of earlier days may differ from the level as an input."""


class Situation(NamedTuple):
    """What one minute looks like."""

    level: float
    """Mean of the last :data:`LEVEL` minutes in pods."""
    unit: float
    inputs: tuple[float, ...]
    """1, the newest minute, the means of :data:`_MEANS`, the standard deviation, and what earlier
    days did at this time."""

    def after(self, usual: float | None) -> Situation:
        """Return the same with what earlier days did at this time.

        Args:
            usual: of :class:`EarlierDays`.
        """
        if usual is None:
            return self
        farther = (usual - self.level) / self.unit
        return self._replace(inputs=(*self.inputs[:-1], min(_FARTHEST, max(-_FARTHEST, farther))))


class Series:
    """The minutes of a workload, with sums from which means of any period follow."""

    def __init__(self, points: Iterable[DemandPoint]) -> None:
        """Take points in any order."""
        ordered = sorted(points)
        self.times = [point.time for point in ordered]
        self.pods = [point.pods for point in ordered]
        self._sums = [0.0, *accumulate(self.pods)]
        self._squares = [0.0, *accumulate(pods * pods for pods in self.pods)]
        self.levels = self._levels()
        """Mean of the last :data:`LEVEL` minutes at each point."""

    def count_observed(self, index: int, minutes: int) -> int:
        """Return how many of the last minutes have an observation."""
        end = index + 1
        return end - bisect_right(self.times, self.times[index] - minutes * MINUTE, 0, end)

    def situation(self, index: int) -> Situation:
        """Return the situation at a point, as if no earlier day were known."""
        level = self.levels[index]
        unit = unit_of(level)
        first = index + 1 - self.count_observed(index, _SPREAD)
        count = index + 1 - first
        mean = (self._sums[index + 1] - self._sums[first]) / count
        variance = (self._squares[index + 1] - self._squares[first]) / count - mean * mean
        means = [self._mean(index, minutes) for minutes in _MEANS]
        relative = [(load - level) / unit for load in (self.pods[index], *means)]
        spread = math.sqrt(max(0.0, variance)) / unit
        return Situation(level, unit, (1.0, *relative, spread, 0.0))

    def _levels(self) -> list[float]:
        times, sums = self.times, self._sums
        levels = []
        first = 0
        for index, time in enumerate(times):
            while times[first] <= time - LEVEL * MINUTE:
                first += 1
            levels.append((sums[index + 1] - sums[first]) / (index + 1 - first))
        return levels

    def _mean(self, index: int, minutes: int) -> float:
        times, end = self.times, index + 1
        first = bisect_right(times, times[index] - minutes * MINUTE, 0, end)
        return (self._sums[end] - self._sums[first]) / (end - first)


def unit_of(level: float) -> float:
    """Return the unit of changes from a level."""
    return math.sqrt(level + 1)


def highest_loads_after(
    times: Sequence[float], pods: Sequence[float], ahead: float
) -> list[float | None]:
    """Return the highest load within so many seconds after each time; None if none is known."""
    peaks: list[float | None] = [None] * len(times)
    # Later minutes with more load than all between, nearest first, so the last has most.
    later: deque[int] = deque()
    for index in range(len(times) - 2, -1, -1):
        while later and pods[later[0]] <= pods[index + 1]:
            later.popleft()
        later.appendleft(index + 1)
        while later and times[later[-1]] > times[index] + ahead:
            later.pop()
        if later:
            peaks[index] = pods[later[-1]]
    return peaks


class EarlierDays(NamedTuple):
    """What earlier days did at this time."""

    usual: float | None
    """Mean demand ahead in pods, where a day counts more the later it was; None without a day."""
    rises: tuple[float, ...]
    """Rise of each day's peak within the lead time, smallest first."""
    since: float
    """Epoch seconds from which today's load is compared with these rises."""


def earlier_days(days: Iterable[DemandDay], lead: float, now: float) -> EarlierDays:
    """Return what each earlier day did at this time, as far as it is known."""
    peaks = {day.number: day.peaks for day in days}
    ahead: list[float] = []
    rises: list[float] = []
    # As many slots before as ahead: the peak of more slots is higher without any change.
    slots = int(now + lead) // SLOT - int(now) // SLOT + 1
    for back in range(1, DAYS + 1):
        then = now - back * DAY
        after = _usual_peak(peaks, then + lead / 2)
        if after is not None:
            ahead.append(after)
        start = int(then) // SLOT
        base = _highest_peak(peaks, start - slots, start)
        top = _highest_peak(peaks, start, start + slots)
        if base is not None and top is not None:
            rises.append(float(top - base))
    weights = [_OLDER**back for back in range(len(ahead))]
    usual = sum(map(mul, weights, ahead)) / sum(weights) if ahead else None
    since = float((int(now) // SLOT - slots) * SLOT)
    return EarlierDays(usual, tuple(sorted(rises)), since)


def _usual_peak(peaks: dict[int, tuple[float | None, ...]], begin: float) -> float | None:
    """Return the mean of the slots' peaks over half an hour; None if one is not known."""
    total = 0.0
    first, last = int(begin // SLOT), int((begin + USUAL) // SLOT)
    for slot in range(first, last + 1):
        share = (min(begin + USUAL, (slot + 1) * SLOT) - max(begin, slot * SLOT)) / USUAL
        if share <= 0:
            continue
        peak = _peak(peaks, slot)
        if peak is None:
            return None
        total += share * peak
    return total


def _highest_peak(peaks: dict[int, tuple[float | None, ...]], first: int, end: int) -> float | None:
    """Return the highest known peak of some slots."""
    slot_peaks = (_peak(peaks, slot) for slot in range(first, end))
    return max((peak for peak in slot_peaks if peak is not None), default=None)


def _peak(peaks: dict[int, tuple[float | None, ...]], slot: int) -> float | None:
    """Return the peak of a slot, which is counted from the epoch."""
    day, of_day = divmod(slot, SLOTS)
    return peaks[day][of_day] if day in peaks else None
