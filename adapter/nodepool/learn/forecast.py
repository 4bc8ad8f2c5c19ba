"""How many pods a workload may want when a node ordered now is up. Pure.

The largest of three estimates from the workload's own past decides:

- growth: how far demand has risen above its level within a boot time, in the hours before;
- trend: where the level is going, if it goes on;
- time of day: what demand did about this time on most earlier days.

Demand of inference is noisy from minute to minute; a level is therefore the mean of some
minutes, and growth is counted from it. Counted from the demand of the very minute, as much
headroom is ordered on top of a peak as in a trough.
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
"""Seconds that a level is the mean of."""
FEWEST: Final = 15
"""Minutes with an observed rise before their quantile is believed."""
CLIMBS: Final = 3
"""Rises in a row that make a trend; of fewer, noise makes one every few minutes."""
FEWEST_DAYS: Final = 2
"""Earlier days that were seen at this time before they are believed."""


class Forecast(NamedTuple):
    """A number of pods, and what decided it."""

    pods: int
    """Never below what is needed now."""
    code: str
    """``need``, ``growth``, ``trend`` or ``time_of_day``: stable, labels the metric."""
    text: str
    """For people."""


def forecast(
    history: DemandHistory, need: int, lead_seconds: float, quantile: float, now: float
) -> Forecast:
    """Say how many pods to be ready for within ``lead_seconds`` and when they are over.

    Args:
        need: pods wanted now, not clamped.
        lead_seconds: how long a node takes, from order to usable; of less than a minute
            nothing is known, and a minute is taken.
        quantile: 0 to 1; how sure to be that capacity suffices.
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
    """How far demand has gone above its level within a lead time, from the level of now."""
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
        f"it stands at {level:.1f}, and in {quantile:.0%} of {len(rises)} minutes it rose by at "
        f"most {rise:.1f} within {lead:.0f} s"
    )
    return [Forecast(_rounded(level + rise), "growth", text)]


def _levels(times: Sequence[float], pods: Sequence[int]) -> list[float]:
    """At each point, the mean of those of the last :data:`LEVEL` seconds."""
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
    """How far demand went above its level within the lead time after each point.

    A point counts once the whole lead time after it is past, and if there was an observation.
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
    """Where a steady climb leads: :data:`CLIMBS` rises in a row, the smallest of which goes on.

    Each rise is between the means of two stretches as long as the lead time.
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
    # From the middle of the last stretch to a lead time from now.
    text = f"it has risen by {rise:.1f} or more in each of the last {CLIMBS} times {lead:.0f} s"
    return [Forecast(_rounded(means[-1] + 1.5 * rise), "trend", text)]


def _time_of_day(history: DemandHistory, lead: float, now: float) -> list[Forecast]:
    """What demand did at this time on earlier days, from where it stands today.

    Counted are whole slots: from the one before the running one to the one in which the lead
    time ends. The median day decides, so that neither one odd day nor weekends do.
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
    text = f"it rises by {rise:.0f} about now on most of {len(rises)} earlier days"
    return [Forecast(min(round(start + rise), highest), "time_of_day", text)]


def _peak(peaks: Mapping[int, Sequence[int | None]], slot: int) -> int | None:
    """Of a slot counted from the epoch."""
    day, of_day = divmod(slot, SLOTS)
    return peaks[day][of_day] if day in peaks else None


def _rounded(pods: float) -> int:
    return math.floor(pods + 0.5)


def _quantile(values: Sequence[float], quantile: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(quantile * len(ranked)) - 1)]
