"""What a run of one series' samples says: its rate, its percentile."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

Samples = Sequence[tuple[float, float]]
"""(Epoch seconds, value), in order of time."""


def rate(samples: Samples, since: float) -> float | None:
    """A counter's increase per second; None where it cannot be told from two samples.

    Nothing is extrapolated beyond the samples. Where only one is newer than ``since`` the
    one before it counts too, so that a store scraped more seldom than the window is long
    has a rate. A counter that falls began anew from 0 (Prometheus, ``rate``).

    Args:
        samples: of the counter.
        since: epoch seconds at which the window begins.
    """
    first = next((i for i, (time, _) in enumerate(samples) if time > since), len(samples))
    used = samples[max(0, min(first, len(samples) - 2)) :]
    if len(used) < 2:
        return None
    increase, before = 0.0, used[0][1]
    for _, value in used[1:]:
        increase += value - before if value >= before else value
        before = value
    return increase / (used[-1][0] - used[0][0])


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` percent of the values do not exceed, interpolated between
    neighbours as Prometheus' ``quantile_over_time`` does.

    Args:
        values: at least one, in any order.
        share: 0-100.
    """
    ranked = sorted(values)
    rank = share / 100.0 * (len(ranked) - 1)
    low = floor(rank)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (rank - low)
