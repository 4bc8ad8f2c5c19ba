"""Forecast how many pods a workload may want when a node ordered now has booted. Pure.

The forecast is the largest of three estimates from the workload's history:

- growth: how far demand rose above its level within a boot time in the last hours;
- trend: the level after a boot time if it keeps rising;
- time of day: how demand changed at this time on most earlier days.

The demand of inference is noisy from minute to minute. Therefore a level is the mean of some
minutes, and growth is relative to it. Relative to the demand of the current minute, a peak would
get as much headroom as a trough.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import fmean
from typing import Final, NamedTuple

from adapter.nodepool.model.history import DAYS, MINUTE, SLOT, SLOTS, DemandHistory, DemandPoint
from adapter.nodepool.model.reason import count_pods

LEVEL: Final = 10 * MINUTE
"""Seconds over which a level is averaged."""
FEWEST: Final = 15
"""Minimum number of observed rises for their quantile."""
CLIMBS: Final = 3
"""Consecutive rises that make a trend; noise often produces fewer."""
FEWEST_DAYS: Final = 2
"""Minimum number of earlier days with observations at this time."""


class Forecast(NamedTuple):
    """A number of pods, and the estimate that decided it."""

    pods: int
    """At least the pods that are needed now."""
    code: str
    """``need``, ``growth``, ``trend`` or ``time_of_day``. Stable: a label of the metric."""
    text: str
    """For people."""


def forecast(
    history: DemandHistory, need: int, lead_seconds: float, quantile: float, now: float
) -> Forecast:
    """Return how many pods the workload may want within ``lead_seconds``.

    Args:
        need: pods wanted now, not clamped.
        lead_seconds: time from the order of a node until it is usable, at least a minute:
            histories have one point a minute.
        quantile: 0 to 1; the probability that the capacity suffices.
        now: epoch seconds.
    """
    lead = max(lead_seconds, float(MINUTE))
    readings = [
        Forecast(need, "need", f"its metrics ask for {count_pods(need)}"),
        *_growth(history.recent, lead, quantile, now),
        *_trend(history.recent, lead, now),
        *_time_of_day(history, lead, now),
    ]
    return max(readings, key=lambda each: each.pods)


def _growth(
    points: Sequence[DemandPoint], lead: float, quantile: float, now: float
) -> list[Forecast]:
    """Estimate the demand from the current level and its past rises within a lead time."""
    if not points or points[-1].time <= now - LEVEL:
        return []
    times = [point.time for point in points]
    pods = [point.pods for point in points]
    levels = _levels(times, pods)
    rises = _rises(times, pods, levels, lead)
    if len(rises) < FEWEST:
        return []
    level, rise = levels[-1], _quantile(rises, quantile)
    text = (
        f"its level is {level:.1f}, and in {quantile:.0%} of {len(rises)} minutes it rose by at "
        f"most {rise:.1f} within {lead:.0f} s"
    )
    return [Forecast(_rounded(level + rise), "growth", text)]


def _levels(times: Sequence[float], pods: Sequence[int]) -> list[float]:
    """Return the mean of the last :data:`LEVEL` seconds at each point."""
    sums = [0, *accumulate(pods)]
    levels = []
    first = 0
    for index, time in enumerate(times):
        while times[first] <= time - LEVEL:
            first += 1
        levels.append((sums[index + 1] - sums[first]) / (index + 1 - first))
    return levels


def _rises(
    times: Sequence[float], pods: Sequence[int], levels: Sequence[float], lead: float
) -> list[float]:
    """Return how far demand rose above its level within the lead time after each point.

    A point counts if the whole lead time after it has passed and has an observation.
    """
    rises = []
    after = 0
    for index in range(bisect_right(times, times[-1] - lead)):
        end = times[index] + lead
        while after < len(times) and times[after] <= end:
            after += 1
        if after > index + 1:
            rises.append(max(pods[index + 1 : after]) - levels[index])
    return rises


def _trend(points: Sequence[DemandPoint], lead: float, now: float) -> list[Forecast]:
    """Extrapolate a steady rise: at least :data:`CLIMBS` consecutive rises, the smallest counts.

    Each rise is between the means of two periods as long as the lead time.
    """
    times = [point.time for point in points]
    edges = [bisect_right(times, now - lead * back) for back in range(CLIMBS + 1, -1, -1)]
    stretches = [points[begin:end] for begin, end in pairwise(edges)]
    if not all(stretches):
        return []
    means = [fmean(point.pods for point in stretch) for stretch in stretches]
    rise = min(later - earlier for earlier, later in pairwise(means))
    if rise <= 0:
        return []
    # From the middle of the last period to one lead time from now.
    text = f"it rose by {rise:.1f} or more in each of the last {CLIMBS} periods of {lead:.0f} s"
    return [Forecast(_rounded(means[-1] + 1.5 * rise), "trend", text)]


def _time_of_day(history: DemandHistory, lead: float, now: float) -> list[Forecast]:
    """Estimate the demand from today's level and its changes at this time on earlier days.

    It compares whole slots: the one before the current slot, and the one in which the lead time
    ends. It uses the median of the days, so that a single unusual day has no effect.
    """
    peaks = {day.number: day.peaks for day in history.days}
    running, end = int(now) // SLOT, int(now + lead) // SLOT
    start = _peak(peaks, running - 1)
    if start is None:
        return []
    rises, highest = [], 0
    for day in range(1, DAYS + 1):
        before = _peak(peaks, running - 1 - day * SLOTS)
        ahead = [_peak(peaks, slot - day * SLOTS) for slot in range(running, end + 1)]
        known = [each for each in ahead if each is not None]
        if before is None or not known:
            continue
        rises.append(max(known) - before)
        highest = max(highest, *known)
    if len(rises) < FEWEST_DAYS:
        return []
    rise = _quantile(rises, 0.5)
    if rise <= 0:
        return []
    text = f"it rose by {rise:.0f} at this time on most of {len(rises)} earlier days"
    return [Forecast(min(round(start + rise), highest), "time_of_day", text)]


def _peak(peaks: Mapping[int, Sequence[int | None]], slot: int) -> int | None:
    """Return the peak of a slot, which is counted from the epoch."""
    day, of_day = divmod(slot, SLOTS)
    return peaks[day][of_day] if day in peaks else None


def _rounded(pods: float) -> int:
    return math.floor(pods + 0.5)


def _quantile(values: Sequence[float], quantile: float) -> float:
    """Return the smallest value that at least this fraction of the values does not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(quantile * len(ranked)) - 1)]
