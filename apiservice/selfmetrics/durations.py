"""Duration histograms without locks.

One event loop writes, and ``/metrics`` reads on the same loop, so plain integers suffice. An
observation costs a bisection and three additions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

FAST: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(1.0, 2.5, 10.0),
)
"""Bucket bounds in seconds, for answers from memory or from one request to the cluster."""
SLOW: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bucket bounds in seconds, for requests over a network."""


class Durations:
    """Counts by upper bound, as in a Prometheus histogram."""

    __slots__ = ("bounds", "buckets", "count", "seconds")

    def __init__(self, bounds: tuple[float, ...] = FAST) -> None:
        self.bounds = bounds
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(bounds) + 1)

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(self.bounds, seconds)] += 1

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """Yield upper bound and how many took at most that long; the last is ``+Inf``."""
        below = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.buckets, strict=True):
            below += count
            yield str(bound), below


def merge_durations(parts: Iterable[Durations]) -> Durations:
    """Return the sum of durations with equal bounds; there must be at least one."""
    first, *others = parts
    whole = Durations(first.bounds)
    for part in (first, *others):
        whole.count += part.count
        whole.seconds += part.seconds
        whole.buckets = [a + b for a, b in zip(whole.buckets, part.buckets, strict=True)]
    return whole
