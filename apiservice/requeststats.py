"""How many requests were answered, how, and how fast: counted without locks.

One event loop writes and the same loop's ``/metrics`` reads, so plain integers do; an
observation costs a bisection and four additions. Labels are bounded: routes are a fixed
set, and neither paths nor metric names ever become a label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Seconds."""


class Series:
    """Requests of one route, API version and status code."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(_BOUNDS) + 1)

    def observe(self, seconds: float) -> None:
        """Count one request that took so long."""
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1


class RequestStats(Collector):
    """``gma_http_requests_total`` and ``gma_http_request_duration_seconds``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._series: dict[tuple[str, str, int], Series] = {}
        registry.register(self)

    def series(self, route: str, version: str, code: int) -> Series:
        """The counts of a route (such as ``custom``), API version (or empty) and code."""
        key = (route, version, code)
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = Series()
        return found

    def collect(self) -> Iterator[Metric]:
        """As prometheus_client asks for it."""
        total = CounterMetricFamily(
            "gma_http_requests",
            "HTTP requests answered, by route, API version and status code.",
            labels=("route", "version", "code"),
        )
        durations: dict[tuple[str, str], Series] = {}
        for (route, version, code), series in self._series.items():
            total.add_metric((route, version, str(code)), series.count)
            merged = durations.setdefault((route, version), Series())
            merged.count += series.count
            merged.seconds += series.seconds
            merged.buckets = [a + b for a, b in zip(merged.buckets, series.buckets, strict=True)]
        yield total
        yield _histogram(durations)


def _histogram(durations: dict[tuple[str, str], Series]) -> Metric:
    family = HistogramMetricFamily(
        "gma_http_request_duration_seconds",
        "Seconds from a request's headers to the last byte handed to the connection.",
        labels=("route", "version"),
    )
    for labels, series in durations.items():
        buckets: list[tuple[str, float]] = []
        below = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), series.buckets, strict=True):
            below += count
            buckets.append((str(bound), below))
        family.add_metric(labels, buckets, series.seconds)
    return family
