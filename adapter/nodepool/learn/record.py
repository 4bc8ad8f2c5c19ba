"""What a workload's own recent past says about a forecast of it. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import mul
from typing import Final, NamedTuple

from adapter.nodepool.learn.checks import (
    FEWEST_MOVING,
    WEIGHED_AT,
    Residuals,
    check,
    costs,
    lessons,
    pods_of,
)
from adapter.nodepool.learn.quantiles import Distribution, quantile_of_each
from adapter.nodepool.learn.situation import LEVEL, Series, Situation, highest_loads_after
from adapter.nodepool.model.history import MINUTE, RECENT, DemandPoint

FULL: Final = 60
"""Observed rises after which the largest of them bounds the forecast."""
FEWEST_CHECKS: Final = 5
"""Checks before which a share replaces the forecast, if the history is long enough for as many.
Chosen on the traces of the fit."""
_MOST_CHECKS: Final = 60
APART: Final = (math.sqrt(5) - 1) / 2 * MINUTE
"""Seconds between two checks beside the lead time, in the mean. No number of minutes is a multiple
of it, so checks of a load that repeats come upon all its minutes, each as often. They are counted
from the epoch: counted from the newest minute, they would be others in each minute of a cycle, and
a probability would be withdrawn in the minutes in which it held and stated in the others."""
_CHANCE: Final = 2.0
"""Standard deviations that chance explains."""


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
    residuals: Residuals
    """Of the checks: they move a forecast that has not held as often as stated."""
    quantile: float
    """Of the forecasts that were checked."""
    fewest: int
    """Checks that are needed for a forecast."""
    checks: int
    """Earlier forecasts whose lead time is over. Their lead times do not overlap."""
    judged: int
    """Those that say how often the newest forecast holds: if it is moved by earlier checks, only
    those that were moved too, unless they are too few to move one."""
    held: int
    """Of these, those whose pods, or the pods at that time, carried the load that followed."""
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

    def quantiles(self, usual: float | None, lead: float) -> Callable[[float], float]:
        """Return the quantiles of the load, moved into the range that the checks support.

        They end at the largest rise. The tables' quantiles may cross (:func:`quantile_of_each`).
        So what they are compared with is calculated here as in the checks.

        Args:
            usual: of :class:`EarlierDays`.
            lead: seconds from the order of a node until it is usable.
        """
        situation = self.situation.after(usual)
        fitted = Distribution(situation, lead, self.weights)
        weighed = quantile_of_each(situation, lead, WEIGHED_AT)
        base: float = sum(map(mul, self.weights, weighed))
        unit = situation.unit

        def quantile(probability: float) -> float:
            moved = self.residuals.supported_residual(
                probability, (fitted.quantile(probability) - base) / unit
            )
            return min(self.most, max(0.0, base + unit * moved))

        return quantile

    @property
    def unsure(self) -> bool:
        """Whether no probability can be stated: it is unproven, or forecasts held too seldom."""
        return self.unproven or self.seldom

    @property
    def unproven(self) -> bool:
        """Whether the checks are too few to correct a forecast."""
        return not self.residuals.moves

    @property
    def seldom(self) -> bool:
        """Whether forecasts held so seldom that chance does not explain it."""
        expected = self.judged * self.quantile
        return self.held < expected - _CHANCE * math.sqrt(expected * (1 - self.quantile))

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
    peaks = highest_loads_after(times, pods, ahead)
    known_ahead = bisect_right(times, times[-1] - ahead)
    rises = 0
    largest = 0.0
    for level, highest in zip(levels[:known_ahead], peaks, strict=False):
        if highest is None:
            continue
        rise = highest - level
        rises += 1
        if rise > 0 and rise * rise > largest * (level + 1):
            largest = rise * rise / (level + 1)
    largest = math.sqrt(largest)
    largest_known = rises >= FULL or (len(pods) >= LEVEL and min(pods) == max(pods))
    checks = [
        check(series.situation(index), lead, quantile, pods[index], highest)
        for index, highest in checked_minutes(series, peaks, known_ahead, ahead)
    ]
    checks.reverse()
    taught = lessons(checks, quantile)
    forecasts = list(zip(checks, taught.forecasts, strict=True))
    moved = [pair for pair, moved in zip(forecasts, taught.moved, strict=True) if moved]
    judged = moved if len(moved) >= FEWEST_MOVING else forecasts
    cost, share_cost = costs(forecasts, quantile, share, largest if largest_known else math.inf)
    newest = series.situation(len(times) - 1)
    return Record(
        newest=times[-1],
        pods=pods_of(pods[-1]),
        minutes=series.count_observed(len(times) - 1, FULL),
        situation=newest,
        largest=largest if largest_known else None,
        weights=taught.weights,
        residuals=taught.residuals(newest),
        quantile=quantile,
        fewest=min(FEWEST_CHECKS, max(1, _fewest_lines(ahead))),
        checks=len(checks),
        judged=len(judged),
        held=sum(pods_of(case.highest) <= max(case.need, pods_of(most)) for case, most in judged),
        cost=cost,
        share_cost=share_cost,
    )


def checked_minutes(
    series: Series, peaks: Sequence[float | None], known_ahead: int, ahead: float
) -> Iterator[tuple[int, float]]:
    """Return the minutes whose forecasts are checked, newest first, each with what followed.

    Args:
        peaks: highest load after each minute.
        known_ahead: how many minutes have all of what followed.
        ahead: seconds of which the forecasts were.
    """
    count, last = 0, math.inf
    step = ahead + APART
    newest = series.times[known_ahead - 1] // step * step if known_ahead else 0.0
    for index in range(known_ahead - 1, -1, -1):
        time, highest = series.times[index], peaks[index]
        due = time <= newest - count * step and time <= last - ahead
        if due and highest is not None and series.count_observed(index, FULL) >= LEVEL:
            yield index, highest
            count, last = count + 1, time
        if count == _MOST_CHECKS:
            return


def _fewest_lines(ahead: float) -> int:
    """Return the fewest checks of a full history, whose first minutes have no level."""
    return int(((RECENT - LEVEL) * MINUTE - ahead) // (ahead + APART))
