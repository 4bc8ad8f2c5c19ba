"""What a workload's own recent past says about a forecast of it. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.nodepool.learn.quantiles import distribution
from adapter.nodepool.learn.situation import LEVEL, Series, Situation, unit_of
from adapter.nodepool.model.history import MINUTE, DemandPoint

FULL: Final = 60
"""Observed rises after which the largest of them bounds the forecast."""
_NOISE: Final = 0.02
"""Fraction of a pod that is not rounded up. Chosen on the days and traces of the fit."""
_FEWEST_CHECKS: Final = 3
_MOST_CHECKS: Final = 30
_DEVIATIONS: Final = 2.6
"""Standard deviations below the expected hits: chance exceeds it once in 200 times."""


class Record(NamedTuple):
    """The past of a workload, as far as its minutes are known."""

    newest: float
    """Epoch seconds of the newest minute."""
    minutes: int
    """Observed minutes of the last hour."""
    situation: Situation
    """That of the newest minute."""
    rises: tuple[float, ...]
    """How far demand rose above its level within a lead time, smallest first."""
    largest: float | None
    """The largest rise in units of its level; None if too few are known."""
    checks: int
    """Earlier forecasts whose lead time is over. Their lead times do not overlap."""
    held: int
    """Those that demand did not exceed."""

    def calibrated(self, quantile: float) -> bool:
        """Return whether its forecasts hold often enough, or too few are known."""
        if self.checks < _FEWEST_CHECKS:
            return True
        spread = math.sqrt(self.checks * quantile * (1 - quantile))
        return self.held >= self.checks * quantile - _DEVIATIONS * spread


@lru_cache(maxsize=1024)
def record(points: tuple[DemandPoint, ...], lead: float, quantile: float) -> Record:
    """Return the record of a history with at least one minute. Minutes may be in any order.

    The same history gives the same record, so the rounds of a minute share one calculation.
    """
    series = Series(points)
    times, pods, levels = series.times, series.pods, series.levels
    ahead = lead + MINUTE
    rises: list[float] = []
    largest, checks, held, checked = 0.0, 0, 0, math.inf
    # Newest first, so that the newest forecasts are checked.
    for index in range(bisect_right(times, times[-1] - ahead) - 1, -1, -1):
        after = bisect_right(times, times[index] + ahead, index)
        if after == index + 1:
            continue
        highest = max(pods[index + 1 : after])
        rise = highest - levels[index]
        rises.append(rise)
        if rise > 0:
            largest = max(largest, rise / unit_of(levels[index]))
        due = checks < _MOST_CHECKS and checked - times[index] >= ahead
        if due and series.known(index, FULL) >= LEVEL:
            checked = times[index]
            checks += 1
            most = distribution(series.situation(index), lead).quantile(quantile)
            held += highest <= pods_of(most)
    known = len(rises) >= FULL or (len(pods) >= LEVEL and min(pods) == max(pods))
    return Record(
        newest=times[-1],
        minutes=series.known(len(times) - 1, FULL),
        situation=series.situation(len(times) - 1),
        rises=tuple(sorted(rises)),
        largest=largest if known else None,
        checks=checks,
        held=held,
    )


def pods_of(most: float, present: int = 0, tolerance: float = 0.0) -> int:
    """Return the whole pods that an HPA will have for a load.

    The table is not exact to a hundredth of a pod, and such a fraction would order a GPU in each
    quiet hour.

    Args:
        present: its pods. It adds none for a load within the tolerance of them.
        tolerance: fraction of the pods.
    """
    pods = math.ceil(most - _NOISE)
    return min(pods, present) if most <= present * (1 + tolerance) else pods
