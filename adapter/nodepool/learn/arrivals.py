"""How many more pods a queue of Jobs may have within a lead time, by its own past. Pure.

Jobs end. The level of a queue says what ran, and nothing about the next Jobs. So only rises count,
each a number of pods within one lead time. A rise of some size is as probable as it was at the same
age: the time since the last rise of this size. Each pause between two such rises is one case.
Batches that return at an interval are therefore expected when they are due, and a queue that has
been quiet for longer than in all pauses before expects nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.nodepool.learn.situation import highest_loads_after
from adapter.nodepool.model.history import MINUTE, DemandPoint

FEWEST_RISES: Final = 3
"""Known rises of a size before another is expected: two pauses between them."""
_FEWEST_CASES: Final = 2
"""Pauses that lasted as long as the present one."""
_PRIOR: Final = 5.0
"""Cases that the frequency at any age counts as. It steadies arrivals that have no interval: of 2,
5 and 10, it had the least loss on simulated queues."""
_MOST_SIZES: Final = 12
"""Maximum number of sizes that are compared."""


class RiseChance(NamedTuple):
    """How probable a rise is within the lead time."""

    pods: float
    """Size: the load after the rise less that before it, or more."""
    probability: float
    age: float
    """Seconds since the last rise of this size."""
    cases: int
    """Times that the last rise was so long ago."""
    followed: int
    """Cases that a rise followed within the lead time."""


@lru_cache(maxsize=1024)
def rise_chances(points: tuple[DemandPoint, ...], lead: float) -> tuple[RiseChance, ...]:
    """Return the rises that the past of a queue supports, largest first.

    Args:
        points: a history with at least one minute, in any order.
        lead: seconds from the order of a node until it is usable.
    """
    ordered = sorted(points)
    times = [point.time for point in ordered]
    pods = [point.pods for point in ordered]
    ahead = lead + MINUTE
    known_ahead = bisect_right(times, times[-1] - ahead)
    peaks = highest_loads_after(times, pods, ahead)[:known_ahead]
    rises = {
        time: max(0.0, peak - load)
        for time, load, peak in zip(times, pods, peaks, strict=False)
        if peak is not None
    }
    sizes = sorted({rise for rise in rises.values() if rise}, reverse=True)
    lows = _lowest_loads_before(times, pods, ahead)
    chances = []
    for size in _thin_sizes(sizes):
        rise_times = _times_of_rises(size, times, pods, lows, ahead)
        chance = _chance(size, rise_times, rises, times[-1])
        if chance is not None:
            chances.append(chance)
    return tuple(chances)


def rise_at(chances: Sequence[RiseChance], quantile: float) -> RiseChance | None:
    """Return the largest rise that a forecast of this quantile covers; None without one."""
    return next((chance for chance in chances if chance.probability > 1 - quantile), None)


def rise_since(points: Sequence[DemandPoint], since: float) -> float:
    """Return the largest rise that a load has shown since a time, in pods.

    Args:
        points: in the order of their times.
        since: epoch seconds.
    """
    first = bisect_left(points, (since,))
    most = 0.0
    lowest = float("inf")
    for _, pods in points[first:]:
        lowest = min(lowest, pods)
        most = max(most, pods - lowest)
    return most


def _chance(
    size: float, at: Sequence[float], rises: Mapping[float, float], newest: float
) -> RiseChance | None:
    """Return the probability of a rise of a size; None if too little is known of such rises.

    Args:
        at: when the load has risen by so much.
        rises: time -> rise that followed within the lead time.
        newest: time of the newest minute.
    """
    if len(at) < FEWEST_RISES:
        return None
    age = newest - at[-1]
    # One minute of each pause has the present age.
    cases = [
        rises[time + age] for time, end in pairwise(at) if time + age < end and time + age in rises
    ]
    if len(cases) < _FEWEST_CASES:
        return None
    followed = sum(rise >= size for rise in cases)
    at_any_age = sum(rise >= size for rise in rises.values()) / len(rises)
    probability = (followed + _PRIOR * at_any_age) / (len(cases) + _PRIOR)
    return RiseChance(size, probability, age, len(cases), followed)


def _times_of_rises(
    size: float,
    times: Sequence[float],
    pods: Sequence[float],
    lows: Sequence[float | None],
    ahead: float,
) -> list[float]:
    """Return when the load had risen by so many pods within a lead time, once for each rise."""
    rise_times: list[float] = []
    # Lowest load since the last rise: what it added is not counted again.
    lowest = pods[0]
    for time, load, low in zip(times, pods, lows, strict=True):
        before = lowest if rise_times and rise_times[-1] >= time - ahead else low
        if before is not None and load - before >= size:
            rise_times.append(time)
            lowest = load
        lowest = min(lowest, load)
    return rise_times


def _lowest_loads_before(
    times: Sequence[float], pods: Sequence[float], ahead: float
) -> list[float | None]:
    """Return the lowest load within so many seconds before each time; None if none is known."""
    backward = highest_loads_after(
        [-time for time in reversed(times)], [-load for load in reversed(pods)], ahead
    )
    return [None if low is None else -low for low in reversed(backward)]


def _thin_sizes(sizes: Sequence[float]) -> Sequence[float]:
    """Return at most :data:`_MOST_SIZES` of the sizes, with the first and the last."""
    if len(sizes) <= _MOST_SIZES:
        return sizes
    last = len(sizes) - 1
    return [sizes[last * place // (_MOST_SIZES - 1)] for place in range(_MOST_SIZES)]
