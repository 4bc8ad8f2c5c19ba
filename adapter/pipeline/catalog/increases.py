"""How often the buckets of a histogram were hit in a window: the base of every latency.

A server's histogram only ever counts up, so a page alone says what has happened since the server
started. What happened in a window is the increase between two pages. Increases of engines, ranks
and pods add up; quantiles never do, so a quantile is computed last, from the sum.

Servers of one pool may have different bounds, such as two versions during a rollout. A count at or
below a bound is known only for the servers that have the bound, so a sum has the bounds that all of
them have. It has fewer bounds and each of its counts is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
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
        """Return the increase with fewer bounds, each of which it has."""
        if tuple(bounds) == self.bounds:
            return self
        kept, counts = iter((*bounds, float("inf"))), [0.0]
        limit = next(kept)
        for high, hits in zip((*self.bounds, float("inf")), self.counts, strict=True):
            counts[-1] += hits
            if high == limit and high != float("inf"):
                counts.append(0.0)
                limit = next(kept)
        return Increase(self.start, self.end, tuple(bounds), tuple(counts), self.total)


def added(increases: Iterable[Increase]) -> Increase | None:
    """Return the sum of increases, in any order; None if there is none.

    It has the bounds that all of those with a value have: a server without a request does not cost
    the others their resolution.
    """
    every = list(increases)
    if not every:
        return None
    asked = [one for one in every if one.count] or every
    shared = set(asked[0].bounds).intersection(*(one.bounds for one in asked[1:]))
    bounds = tuple(sorted(shared))
    parts = [one.at(bounds) for one in asked]
    totals = [one.total for one in asked]
    known = [total for total in totals if total is not None]
    return Increase(
        min(one.start for one in every),
        min(one.end for one in every),
        bounds,
        tuple(map(sum, zip(*(one.counts for one in parts), strict=True))),
        sum(sorted(known)) if len(known) == len(totals) else None,
    )


def between(
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
        for at, (upper, lower) in enumerate(zip(gained, (0.0, *gained), strict=False)):
            counts[at] += max(0.0, upper - lower)
        if total is not None and now_sum is not None and (fell or before_sum is not None):
            total += now_sum if fell or before_sum is None else now_sum - before_sum
        else:
            total = None
        before, before_sum = now, now_sum
    return Increase(rows[0][0], rows[-1][0], tuple(bounds), tuple(counts), total)


def cumulative(counts: Iterable[float]) -> tuple[float, ...]:
    """Return the counts of buckets as a page writes them: each with all buckets below it."""
    return tuple(accumulate(counts))
