"""How often the buckets of a histogram were hit in a window: the base of every latency.

A server's histogram only ever counts up, so a page alone says what has happened since the server
started. What happened in a window is the increase between two pages. Increases of engines, ranks
and pods add up; quantiles never do, so a quantile is computed last, from the sum.

Servers of one pool may have different bounds, such as two versions during a rollout. A count at or
below a bound is known of a server that has the bound, and of one that counted nothing in the bucket
around it. A sum has the bounds of which all of its counts are known: each of them is exact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple


class Quantile(NamedTuple):
    """A quantile, and how precisely the buckets show it."""

    value: float
    """In the unit of the bounds. Interpolated between ``low`` and ``high``, as Prometheus'
    ``histogram_quantile`` does; the last bound if the quantile is above it."""
    low: float
    """The bucket's lower bound; 0 for the first."""
    high: float
    """The bucket's upper bound; infinity above the last bound."""

    @property
    def beyond(self) -> bool:
        """Whether the quantile is above the last bound, so that ``value`` is less than it."""
        return self.high == float("inf")


@dataclass(frozen=True)
class Increase:
    """What a histogram counted between two times, of one server or of several.

    Args:
        start: epoch seconds of the page before the first that counts; of several, the earliest.
        end: epoch seconds of the last page; of several, the earliest, so that age is never
            understated.
        bounds: upper bounds of the buckets, ascending, finite; in seconds for a latency. Empty if
            there is no histogram but only a sum and a count.
        counts: how often each bucket was hit, not cumulative. There is one more than bounds: the
            last bucket is above the last bound.
        total: the sum of what was counted, in the unit of the bounds; None if it is not known.
    """

    start: float
    end: float
    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float | None

    @cached_property
    def count(self) -> float:
        """How many values were counted, such as requests, or tokens for the time between them."""
        return sum(self.counts)

    @cached_property
    def _cumulative(self) -> tuple[float, ...]:
        return cumulative_counts(self.counts)

    def below(self, bound: float) -> float | None:
        """Return how many values are at or below a bound; None if its bucket has some beside it."""
        index = bisect_left(self.bounds, bound)
        if index < len(self.bounds) and self.bounds[index] == bound:
            return self._cumulative[index]
        return None if self.counts[index] else self._cumulative[index]

    @property
    def mean(self) -> float | None:
        """The mean of the values; None without a value or a sum."""
        return self.total / self.count if self.total is not None and self.count else None

    def quantile(self, share: float) -> Quantile | None:
        """Return the value that ``share`` (0-1) of the values do not exceed.

        None without a value, or without a bound.
        """
        if not self.bounds or not self.count:
            return None
        rank = share * self.count
        below, low = 0.0, 0.0
        for high, hits in zip(self.bounds, self.counts, strict=False):
            if hits and below + hits >= rank:
                low = min(low, high)
                return Quantile(low + (high - low) * max(0.0, rank - below) / hits, low, high)
            below, low = below + hits, high
        return Quantile(self.bounds[-1], self.bounds[-1], float("inf"))

    def over(self, limit: float) -> float | None:
        """Return how many values are above a limit, at least; None without a bound.

        A bucket that contains the limit is not counted: nobody knows on which side its values are.
        """
        if not self.bounds:
            return None
        lows = (0.0, *self.bounds)
        return sum(hits for low, hits in zip(lows, self.counts, strict=True) if low >= limit)

    def at(self, bounds: Sequence[float]) -> Increase:
        """Return the increase with other bounds, below each of which its count is known."""
        if tuple(bounds) == self.bounds:
            return self
        levels = (*(self.below(bound) or 0.0 for bound in bounds), self.count)
        counts = tuple(high - low for low, high in pairwise((0.0, *levels)))
        return Increase(self.start, self.end, tuple(bounds), counts, self.total)


def sum_increases(increases: Iterable[Increase]) -> Increase | None:
    """Return the sum of increases, in any order; None if there is none.

    It has the bounds below which the counts of all are known: a server without a request does not
    cost the others their resolution.
    """
    every = list(increases)
    if not every:
        return None
    busy = [increase for increase in every if increase.count] or every
    bounds = known_bounds(busy)
    parts = [increase.at(bounds) for increase in busy]
    totals = [increase.total for increase in busy]
    known_totals = [total for total in totals if total is not None]
    return Increase(
        min(increase.start for increase in every),
        min(increase.end for increase in every),
        bounds,
        tuple(map(sum, zip(*(increase.counts for increase in parts), strict=True))),
        sum(sorted(known_totals)) if len(known_totals) == len(totals) else None,
    )


def known_bounds(increases: Sequence[Increase]) -> tuple[float, ...]:
    """Return the bounds of increases below which the counts of all are known, ascending."""
    kinds = {increase.bounds for increase in increases}
    if len(kinds) == 1:
        return kinds.pop()
    every = sorted(set().union(*kinds))
    return tuple(
        bound for bound in every if all(increase.below(bound) is not None for increase in increases)
    )


def increase_between(
    rows: Sequence[tuple[float, Sequence[float], float | None]], bounds: Sequence[float]
) -> Increase:
    """Return the increase over the pages of one server.

    A page on which any bucket is lower than on the one before is that of a server that has
    restarted: everything on it is new. So is a page whose sum alone fell.

    Args:
        rows: at least two; epoch seconds, the cumulative counts of the buckets, that above the last
            bound included, and the sum.
        bounds: of the buckets.
    """
    counts = [0.0] * (len(bounds) + 1)
    total: float | None = 0.0
    _, before, before_sum = rows[0]
    for _, now, now_sum in rows[1:]:
        fell = any(new < old for new, old in zip(now, before, strict=True))
        fell = fell or (now_sum is not None and before_sum is not None and now_sum < before_sum)
        base: Sequence[float] = [0.0] * len(now) if fell else before
        gained = [new - old for new, old in zip(now, base, strict=True)]
        for index, (upper, lower) in enumerate(zip(gained, (0.0, *gained), strict=False)):
            counts[index] += max(0.0, upper - lower)
        if total is not None and now_sum is not None and (fell or before_sum is not None):
            total += now_sum if fell or before_sum is None else now_sum - before_sum
        else:
            total = None
        before, before_sum = now, now_sum
    return Increase(rows[0][0], rows[-1][0], tuple(bounds), tuple(counts), total)


def cumulative_counts(counts: Iterable[float]) -> tuple[float, ...]:
    """Return the counts of buckets as a page writes them: each with all buckets below it."""
    return tuple(accumulate(counts))
