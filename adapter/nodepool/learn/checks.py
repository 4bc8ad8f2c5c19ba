"""Checks of earlier forecasts of a workload: what they teach about the next one. Pure.

A check compares what the tables would have forecast with the load that followed. From all checks
follow the weights of the tables, and how far their forecasts may be trusted: a quantile of the
tables is moved into the range that the checks support. It is moved in both directions, and only so
far as chance cannot explain the difference.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from operator import add, mul
from typing import Final, NamedTuple

from adapter.nodepool.learn.quantiles import quantile_of_each
from adapter.nodepool.learn.situation import Situation

_NOISE: Final = 0.02
"""Fraction of a pod that is not rounded up. Chosen on the days and traces of the fit."""
_ROUNDING: Final = 1e-9
"""Fraction of a pod below which a share is whole."""
WEIGHED_AT: Final = 0.8
"""Quantile at which past losses are compared. It does not depend on the quantile that is asked:
otherwise a higher one could give other weights, and a lower forecast."""
MIXTURES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of the second table that are compared: a service may lie between the two kinds."""
_WEIGHING: Final = 4.0
"""How fast a mixture loses weight, per unit of loss. Chosen on the traces of the fit, with tables
that were not fitted to them."""
FEWEST_MOVING: Final = 15
"""Checks before which they move no forecast. With 10, an hour of sudden steps and a boot time of a
minute (``azure-code``) cost up to 11 points more GPU-hours for the same waiting. In five such hours
in a row, the checks spare waiting that the tables alone spare at no probability."""
_DOUBT: Final = math.sqrt(WEIGHED_AT * (1 - WEIGHED_AT))
"""Standard deviation of one check, as a probability. That of the share of n checks is smaller by
the root of n."""


class ForecastCheck(NamedTuple):
    """An earlier forecast, and what followed."""

    situation: Situation
    most: tuple[float, ...]
    """Load that each table forecast at the quantile that is asked."""
    weighed: tuple[float, ...]
    """The same at :data:`WEIGHED_AT`."""
    need: int
    """Pods at the time."""
    highest: float
    """Load that followed."""

    @property
    def idle(self) -> bool:
        """Whether there had been no load."""
        return self.situation.level <= 0


class Residuals:
    """How far forecasts should have been above those at :data:`WEIGHED_AT`, in units."""

    def __init__(self) -> None:
        # Both smallest first.
        self._least: list[float] = []
        self._enough: list[float] = []

    def add(self, least: float, enough: float) -> None:
        """Count one more check.

        Args:
            least: residual of the least load whose forecast would have held.
            enough: residual of the load that followed.
        """
        insort(self._least, least)
        insort(self._enough, enough)

    @property
    def moves(self) -> bool:
        """Whether enough checks are known to move a forecast."""
        return len(self._least) >= FEWEST_MOVING

    def supported_residual(self, probability: float, residual: float) -> float:
        """Return the residual of a forecast, moved into the range that the checks support.

        The result rises with both arguments.

        Args:
            probability: of the forecast.
            residual: how far the forecast is above that at :data:`WEIGHED_AT`.
        """
        if not self.moves:
            return residual
        count = len(self._least)
        doubt = _DOUBT / math.sqrt(count)
        low = math.floor((probability - doubt) * (count + 1))
        high = math.ceil((probability + doubt) * (count + 1))
        if low >= 1:
            residual = max(residual, self._least[min(low, count) - 1])
        if 1 <= high <= count:
            residual = min(residual, self._enough[high - 1])
        return residual


class Lessons(NamedTuple):
    """What all checks teach."""

    weights: tuple[float, float]
    """Of the tables."""
    loaded: Residuals
    """Of the checks with load."""
    idle: Residuals
    """Of those without."""
    forecasts: Sequence[float]
    """Load that was forecast at each check by what the checks before it teach."""
    moved: Sequence[bool]
    """Whether the checks before it were enough to move it."""

    def residuals(self, situation: Situation) -> Residuals:
        """Return those that a situation belongs to."""
        return self.idle if situation.level <= 0 else self.loaded


def check(
    situation: Situation, lead: float, quantile: float, pods: float, highest: float
) -> ForecastCheck:
    """Return the check of one minute.

    Args:
        lead: seconds from the order of a node until it is usable.
        quantile: of the forecast.
        pods: load of the minute.
        highest: load that followed within the lead time.
    """
    most = weighed = quantile_of_each(situation, lead, quantile)
    if quantile != WEIGHED_AT:
        weighed = quantile_of_each(situation, lead, WEIGHED_AT)
    return ForecastCheck(situation, most, weighed, pods_of(pods), highest)


def lessons(checks: Iterable[ForecastCheck], quantile: float) -> Lessons:
    """Return what checks teach.

    Args:
        checks: oldest first.
        quantile: that of the checks.
    """
    losses = [0.0] * len(MIXTURES)
    weights = weights_of(losses)
    loaded, idle = Residuals(), Residuals()
    forecasts, moves = [], []
    for case in checks:
        unit = case.situation.unit
        residuals = idle if case.idle else loaded
        base, most = sum(map(mul, weights, case.weighed)), sum(map(mul, weights, case.most))
        moved = residuals.supported_residual(quantile, (most - base) / unit)
        forecasts.append(max(0.0, base + unit * moved))
        moves.append(residuals.moves)
        residuals.add(
            (least_load(case.need, case.highest) - base) / unit, (case.highest - base) / unit
        )
        losses = list(map(add, losses, _losses(case)))
        weights = weights_of(losses)
    return Lessons(weights, loaded, idle, forecasts, moves)


def least_load(need: int, highest: float) -> float:
    """Return the least load whose forecast would have held; minus infinity if any would have.

    A forecast holds if its pods, or those that exist, carry what follows. So whole pods decide
    whether forecasts are raised, and the load itself whether they are lowered.

    Args:
        need: pods that exist.
        highest: load that follows.
    """
    used = pods_of(highest)
    # Halfway from the load that is only just rounded up to so many pods.
    return -math.inf if used <= need else (used - 1 + _NOISE + highest) / 2


def _losses(case: ForecastCheck) -> list[float]:
    """Return what each of the :data:`MIXTURES` lost, in units."""
    first, second = case.weighed
    return [
        _loss(case.highest - first - mixture * (second - first), WEIGHED_AT) / case.situation.unit
        for mixture in MIXTURES
    ]


def weights_of(losses: Sequence[float]) -> tuple[float, float]:
    """Return the weight of each table after such losses of the :data:`MIXTURES`; the sum is 1."""
    least = min(losses)
    odds = [math.exp(_WEIGHING * (least - loss)) for loss in losses]
    second = sum(map(mul, odds, MIXTURES)) / sum(odds)
    return 1 - second, second


def costs(
    forecasts: Iterable[tuple[ForecastCheck, float]], quantile: float, share: float, largest: float
) -> tuple[float, float]:
    """Return what the forecasts would have cost, and what a share would have.

    Args:
        largest: rise in units that bounds both; infinity without a bound.
    """
    cost = share_cost = 0.0
    for case, most in forecasts:
        used = pods_of(case.highest)
        bound = case.situation.level + case.situation.unit * largest
        cost += _loss(used - max(case.need, pods_of(min(most, bound))), quantile)
        shared = min(with_share(case.need, share), bound)
        share_cost += _loss(used - max(case.need, pods_of(shared)), quantile)
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


def with_share(pods: int, share: float) -> int:
    """Return pods and a share of them, rounded up."""
    return pods + math.ceil(share * pods - _ROUNDING)
