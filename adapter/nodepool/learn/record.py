"""What a workload's own recent past says about a forecast of it. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import add, mul
from typing import Final, NamedTuple

from adapter.nodepool.learn.quantiles import quantile_of_each
from adapter.nodepool.learn.situation import (
    LEVEL,
    Series,
    Situation,
    highest_after,
    unit_of,
)
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
WEIGHED_AT: Final = 0.8
"""Quantile at which past losses are compared. It does not depend on the quantile that is asked:
otherwise a higher one could give other weights, and a lower forecast."""
MIXTURES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of the second table that are compared: a service may lie between the two kinds."""
_WEIGHING: Final = 4.0
"""How fast a mixture loses weight, per unit of loss. Chosen on the traces of the fit, with tables
that were not fitted to them."""


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
    largest: float | None
    """The largest rise in units of its level; None if too few are known."""
    weights: tuple[float, float]
    """Of the fitted tables: the less a mixture has lost in the checks, the more it counts. The
    checks leave out earlier days, which keeps a round cheap."""
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
    peaks = highest_after(times, pods, ahead)
    rises = 0
    largest, checked = 0.0, math.inf
    checks: list[_Check] = []
    # Newest first, so that the newest forecasts are checked.
    for index in range(bisect_right(times, times[-1] - ahead) - 1, -1, -1):
        highest = peaks[index]
        if highest is None:
            continue
        rise = highest - levels[index]
        rises += 1
        if rise > 0 and rise * rise > largest * (levels[index] + 1):
            largest = rise * rise / (levels[index] + 1)
        due = len(checks) < _MOST_CHECKS and checked - times[index] >= ahead
        if due and series.known(index, FULL) >= LEVEL:
            checked = times[index]
            checks.append(_check(series.situation(index), lead, quantile, pods[index], highest))
    largest = math.sqrt(largest)
    known = rises >= FULL or (len(pods) >= LEVEL and min(pods) == max(pods))
    forecasts, weights = _weighed(checks)
    cost, share_cost = _costs(forecasts, quantile, share, largest if known else math.inf)
    return Record(
        newest=times[-1],
        pods=pods_of(pods[-1]),
        minutes=series.known(len(times) - 1, FULL),
        situation=series.situation(len(times) - 1),
        largest=largest if known else None,
        weights=weights,
        fewest=min(FEWEST_CHECKS, max(1, int((RECENT - LEVEL) * MINUTE // ahead))),
        checks=len(checks),
        held=sum(each.highest <= pods_of(most) for each, most in forecasts),
        cost=cost,
        share_cost=share_cost,
    )


def with_share(pods: int, share: float) -> int:
    """Return pods and a share of them, rounded up."""
    return pods + math.ceil(share * pods - _ROUNDING)


class _Check(NamedTuple):
    """An earlier forecast, and what followed."""

    most: tuple[float, ...]
    """Forecast load of each table."""
    losses: tuple[float, ...]
    """What each of the :data:`MIXTURES` lost, in units."""
    need: int
    """Pods at the time."""
    level: float
    highest: float
    """Load that followed."""


def _check(
    situation: Situation, lead: float, quantile: float, pods: float, highest: float
) -> _Check:
    most = quantile_of_each(situation, lead, quantile)
    first, second = most
    if quantile != WEIGHED_AT:
        first, second = quantile_of_each(situation, lead, WEIGHED_AT)
    losses = tuple(
        _loss(highest - first - each * (second - first), WEIGHED_AT) / situation.unit
        for each in MIXTURES
    )
    return _Check(most, losses, pods_of(pods), situation.level, highest)


def _weighed(checks: Sequence[_Check]) -> tuple[list[tuple[_Check, float]], tuple[float, float]]:
    """Return what each check forecast with the weights that the checks before it give.

    Args:
        checks: newest first.

    Returns:
        The checks with their forecasts, and the present weights.
    """
    losses = [0.0] * len(MIXTURES)
    weights = weights_of(losses)
    found = []
    for check in reversed(checks):
        found.append((check, sum(map(mul, weights, check.most))))
        losses = list(map(add, losses, check.losses))
        weights = weights_of(losses)
    return found, weights


def weights_of(losses: Sequence[float]) -> tuple[float, float]:
    """Return the weight of each table after such losses of the :data:`MIXTURES`; the sum is 1."""
    least = min(losses)
    odds = [math.exp(_WEIGHING * (least - each)) for each in losses]
    second = sum(map(mul, odds, MIXTURES)) / sum(odds)
    return 1 - second, second


def _costs(
    forecasts: Sequence[tuple[_Check, float]], quantile: float, share: float, largest: float
) -> tuple[float, float]:
    """Return what the forecasts would have cost, and what a share would have.

    Args:
        largest: rise in units that bounds both; infinity without a bound.
    """
    cost = share_cost = 0.0
    for check, most in forecasts:
        used = pods_of(check.highest)
        bound = check.level + unit_of(check.level) * largest
        cost += _loss(used - max(check.need, pods_of(min(most, bound))), quantile)
        shared = min(with_share(check.need, share), bound)
        share_cost += _loss(used - max(check.need, pods_of(shared)), quantile)
    return cost, share_cost


def _loss(more: float, quantile: float) -> float:
    """Return the pinball loss of a quantile that was exceeded by so much."""
    return max(quantile * more, (quantile - 1) * more)


def pods_of(most: float, present: int = 0, tolerance: float = 0.0) -> int:
    """Return the whole pods that an HPA will have for a load.

    The tables are not exact to a hundredth of a pod, and such a fraction would order a GPU in each
    quiet hour.

    Args:
        present: its pods. It adds none for a load within the tolerance of them.
        tolerance: fraction of the pods.
    """
    pods = math.ceil(most - _NOISE)
    return min(pods, present) if most <= present * (1 + tolerance) else pods
