"""Read native histograms of a store as the series of classic ones.

A store keeps a native histogram as one series, under the name that a page writes before
``_bucket`` and ``_sum``. Each sample lists the buckets that are not empty, from the lowest on, each
with its own count (Prometheus, "HTTP API", "Native histograms"). They may be exponential ones, of a
client that counts in them or of OTLP, or the bounds of a classic histogram that the store has
converted (``convert_classic_histograms_to_nhcb``).

Both bounds of a bucket are kept: between two of them, where no bucket is listed, nothing was
counted (:meth:`adapter.pipeline.catalog.increases.Increase.below`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

import msgspec

from adapter.pipeline.catalog.field import Role
from adapter.pipeline.exposition.bucketnames import bucket_name

TOTAL: Final = "+Inf"
"""The bound that every histogram has."""


class NativeHistogram(msgspec.Struct, gc=False):
    """A sample. Its numbers are texts, as those of other samples."""

    count: str
    sum: str
    buckets: list[tuple[int, str, str, str]] = []
    """Which bounds are inside, lower bound, upper bound, count."""


def native_name(series: str) -> str:
    """Return the name under which a store keeps a series' native histogram; empty if none."""
    return next((series.removesuffix(role) for role in Role if series.endswith(role)), "")


def classic_series(name: str, histogram: NativeHistogram) -> Iterator[tuple[str, str]]:
    """Yield the series of a classic histogram, and the text of the number of each.

    What was counted beyond the buckets is not a number, and is left out.

    Raises:
        ValueError: a bound or count is not a number, or a bound is below the one before it.
    """
    buckets, below, before = name + Role.BUCKET, 0.0, -inf
    for _, low, high, count in histogram.buckets:
        start, end = float(low), float(high)
        if not before <= start <= end:
            raise ValueError(f"the bounds {low} and {high} do not ascend")
        if max(before, 0.0) < start:  # after a gap; all values are above 0
            yield bucket_name(buckets, low), repr(below)
        below += float(count)
        if end < inf:
            yield bucket_name(buckets, high), repr(below)
        before = end
    yield bucket_name(buckets, TOTAL), repr(below)
    yield name + Role.SUM, histogram.sum
    yield name + Role.COUNT, histogram.count
