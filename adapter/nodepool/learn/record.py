"""What a workload's own recent past says about a forecast of it. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.nodepool.learn.quantiles import one_quantile
from adapter.nodepool.learn.situation import LEVEL, Series, Situation, unit_of
from adapter.nodepool.model.history import MINUTE, RECENT, DemandPoint

FULL: Final = 60
"""Observed rises after which the largest of them bounds the forecast."""
_NOISE: Final = 0.02
"""Fraction of a pod that is not rounded up. Chosen on the days and traces of the fit."""
_ROUNDING: Final = 1e-9
"""Fraction of a pod below which a share is whole."""
FEWEST_CHECKS: Final = 5
"""Checks before which a share replaces the forecast, if the history is long enough for as many.
Chosen on the traces of the fit."""
_MOST_CHECKS: Final = 60


class Record(NamedTuple):
    """The past of a workload, as far as its minutes are known."""

    newest: float
    """Epoch seconds of the newest minute."""
    pods: int
    """Pods of the newest minute."""
    minutes: int
    """Observed minutes of the last hour."""
    situation: Situation
    """That of the newest minute."""
    rises: tuple[float, ...]
    """How far demand rose above its level within a lead time, smallest first."""
    largest: float | None
    """The largest rise in units of its level; None if too few are known."""
    fewest: int
    """Checks that are needed for a forecast."""
    checks: int
    """Earlier forecasts whose lead time is over. Their lead times do not overlap."""
    held: int
    """Those that demand did not exceed."""
    cost: float
    """What these forecasts would have cost: each pod that was missing counts as the quantile, each
    that was not used as the rest to 1."""
    share_cost: float
    """The same for the share."""

    @property
    def most(self) -> float:
        """Load that the largest rise from the newest level would bring; infinity if unknown."""
        if self.largest is None:
            return math.inf
        return self.situation.level + self.situation.unit * self.largest

    @property
    def unchecked(self) -> bool:
        """Whether too few forecasts have been checked to rely on them."""
        return self.checks < self.fewest

    @property
    def takes_share(self) -> bool:
        """Whether a share replaces the forecast: it is unchecked, or would have cost more."""
        return self.unchecked or self.share_cost < self.cost


@lru_cache(maxsize=1024)
def record(points: tuple[DemandPoint, ...], lead: float, quantile: float, share: float) -> Record:
    """Return the record of a history with at least one minute. Minutes may be in any order.

    The same history gives the same record, so the rounds of a minute share one calculation.

    Args:
        lead: seconds from the order of a node until it is usable.
        quantile: of the forecasts that are checked.
        share: of the pods, which the forecasts are compared with.
    """
    series = Series(points)
    times, pods, levels = series.times, series.pods, series.levels
    ahead = lead + MINUTE
    peaks = _peaks(times, pods, ahead)
    rises: list[float] = []
    largest, checked = 0.0, math.inf
    checks: list[_Check] = []
    # Newest first, so that the newest forecasts are checked.
    for index in range(bisect_right(times, times[-1] - ahead) - 1, -1, -1):
        highest = peaks[index]
        if highest is None:
            continue
        rise = highest - levels[index]
        rises.append(rise)
        if rise > 0 and rise * rise > largest * (levels[index] + 1):
            largest = rise * rise / (levels[index] + 1)
        due = len(checks) < _MOST_CHECKS and checked - times[index] >= ahead
        if due and series.known(index, FULL) >= LEVEL:
            checked = times[index]
            most = one_quantile(series.situation(index), lead, quantile)
            checks.append(_Check(most, pods_of(pods[index]), levels[index], highest))
    largest = math.sqrt(largest)
    known = len(rises) >= FULL or (len(pods) >= LEVEL and min(pods) == max(pods))
    cost, share_cost = _costs(checks, quantile, share, largest if known else math.inf)
    return Record(
        newest=times[-1],
        pods=pods_of(pods[-1]),
        minutes=series.known(len(times) - 1, FULL),
        situation=series.situation(len(times) - 1),
        rises=tuple(sorted(rises)),
        largest=largest if known else None,
        fewest=min(FEWEST_CHECKS, max(1, int((RECENT - LEVEL) * MINUTE // ahead))),
        checks=len(checks),
        held=sum(each.highest <= pods_of(each.most) for each in checks),
        cost=cost,
        share_cost=share_cost,
    )


def with_share(pods: int, share: float) -> int:
    """Return pods and a share of them, rounded up."""
    return pods + math.ceil(share * pods - _ROUNDING)


class _Check(NamedTuple):
    """An earlier forecast, and what followed."""

    most: float
    """Forecast load."""
    need: int
    """Pods at the time."""
    level: float
    highest: float
    """Load that followed."""


def _costs(
    checks: Sequence[_Check], quantile: float, share: float, largest: float
) -> tuple[float, float]:
    """Return what the forecasts would have cost, and what a share would have.

    Args:
        largest: rise in units that bounds both; infinity without a bound.
    """
    cost = share_cost = 0.0
    for most, need, level, highest in checks:
        used = pods_of(highest)
        bound = level + unit_of(level) * largest
        more = used - max(need, pods_of(min(most, bound)))
        cost += max(quantile * more, (quantile - 1) * more)
        more = used - max(need, pods_of(min(with_share(need, share), bound)))
        share_cost += max(quantile * more, (quantile - 1) * more)
    return cost, share_cost


def _peaks(times: Sequence[float], pods: Sequence[float], ahead: float) -> list[float | None]:
    """Return the highest load within so many seconds after each time; None if none is known."""
    found: list[float | None] = [None] * len(times)
    # Later minutes with more load than all between, nearest first, so the last has most.
    later: deque[int] = deque()
    for index in range(len(times) - 2, -1, -1):
        while later and pods[later[0]] <= pods[index + 1]:
            later.popleft()
        later.appendleft(index + 1)
        while later and times[later[-1]] > times[index] + ahead:
            later.pop()
        if later:
            found[index] = pods[later[-1]]
    return found


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
