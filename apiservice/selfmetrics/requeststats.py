"""Counts and durations of answered HTTP requests.

Labels are bounded: routes are a fixed set, and neither paths nor metric names ever become a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from apiservice.runtime.shares import REFUSALS, Shares
from apiservice.selfmetrics.durations import Durations, merge_durations
from apiservice.selfmetrics.families import Family, counter, gauge, histogram

REQUESTS: Final = counter(
    "gma_http_requests_total",
    "HTTP requests answered.",
    "route",
    "version",
    "code",
)
DURATIONS: Final = histogram(
    "gma_http_request_duration_seconds",
    "Seconds from a request's headers to the last byte handed to the connection.",
    "route",
    "version",
)
WAITING: Final = gauge(
    "gma_large_answers_waiting", "Requests that wait until their large answer is prepared.", "route"
)
REFUSED: Final = counter(
    "gma_large_answers_refused_total",
    "Large answers that were not given: too many requests of the namespace waited (full), no place "
    "became free in time (timeout), or the client read too slowly or its answer gave way to others "
    "(reader).",
    "route",
    "reason",
    known=(*REFUSALS, "reader"),
)
FAMILIES: Final[tuple[Family, ...]] = (REQUESTS, DURATIONS, WAITING, REFUSED)


class LargeQueue(Protocol):
    """Where requests wait for their large answers."""

    places: Shares
    given_up: int
    """Answers that were ended while they were sent."""


class RequestStats(Collector):
    """Collects :data:`FAMILIES`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._series: dict[tuple[str, str, int], Durations] = {}
        self.queues: dict[str, LargeQueue] = {}
        """Route -> where its large answers wait."""
        registry.register(self)

    def series(self, route: str, version: str, code: int) -> Durations:
        """Return the counts of a route (such as ``custom``), API version (or empty) and code."""
        key = (route, version, code)
        durations = self._series.get(key)
        if durations is None:
            durations = self._series[key] = Durations()
        return durations

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; prometheus_client calls this."""
        yield REQUESTS.rows(
            ((route, version, str(code)), took.count)
            for (route, version, code), took in self._series.items()
        )
        by_route: dict[tuple[str, str], list[Durations]] = {}
        for (route, version, _), took in self._series.items():
            by_route.setdefault((route, version), []).append(took)
        yield DURATIONS.durations(
            (labels, merge_durations(parts)) for labels, parts in by_route.items()
        )
        yield WAITING.rows(((route,), queue.places.waiting) for route, queue in self.queues.items())
        refused = {
            (route, reason): count
            for route, queue in self.queues.items()
            for reason, count in (*queue.places.refused.items(), ("reader", queue.given_up))
        }
        yield REFUSED.pairs(refused, self.queues)
