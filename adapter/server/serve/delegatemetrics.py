"""Metrics of the delegates. Their names are from the settings, so they are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from apiservice.delegate.delegation import Delegation
from apiservice.delegate.failure import OUTCOMES
from apiservice.runtime.shares import REFUSALS
from apiservice.selfmetrics.families import counter, gauge, histogram

REQUESTS: Final = counter(
    "gma_delegate_requests_total",
    "Requests to a delegate.",
    *("delegate", "outcome"),
    known=OUTCOMES,
)
DURATIONS: Final = histogram(
    "gma_delegate_request_duration_seconds",
    "Duration of these requests, including the time in the queue.",
    "delegate",
)
IN_FLIGHT: Final = gauge(
    "gma_delegate_requests_in_flight", "Those under way, waiting ones included.", "delegate"
)
WAITING: Final = gauge(
    "gma_delegate_requests_waiting", "Those that wait for their place.", "delegate"
)
REFUSED: Final = counter(
    "gma_delegate_requests_refused_total",
    "Requests that got no place: too many of the namespace waited (full), or no place became free "
    "in time (timeout).",
    *("delegate", "reason"),
    known=REFUSALS,
)
METRICS: Final = gauge(
    "gma_delegate_metrics",
    "Metrics that a delegate's discovery lists. Absent while no list is known.",
    *("delegate", "group"),
)
READ: Final = gauge(
    "gma_delegate_discovery_age_seconds",
    "Time since a delegate's discovery was read. Absent until it was.",
    "delegate",
)
UNREAD: Final = counter(
    "gma_delegate_discovery_failures_total",
    "Reads of a delegate's discovery that failed.",
    "delegate",
)
PROBLEM: Final = gauge(
    "gma_delegate_discovery_problem",
    "1 while the newest read of a delegate's discovery has failed, by outcome. Absent otherwise.",
    *("delegate", "outcome"),
    known=OUTCOMES,
)
LOOPS: Final = counter(
    "gma_delegate_loops_total",
    "Requests that got 508, because a server that delegates sent them and they would have been "
    "delegated again.",
)
FAMILIES: Final = (
    *(REQUESTS, DURATIONS, IN_FLIGHT, WAITING, REFUSED),
    *(METRICS, READ, UNREAD, PROBLEM, LOOPS),
)


def delegate_families(delegation: Delegation) -> Iterator[Metric]:
    """Yield the metrics of the delegates."""
    all_of_them = delegation.delegates
    outcomes = {
        (delegate.name, outcome): count
        for delegate in all_of_them
        for outcome, count in delegate.outcomes.items()
    }
    yield REQUESTS.pairs(outcomes, [delegate.name for delegate in all_of_them])
    yield DURATIONS.durations(((delegate.name,), delegate.durations) for delegate in all_of_them)
    yield IN_FLIGHT.rows(((delegate.name,), delegate.in_flight) for delegate in all_of_them)
    yield WAITING.rows(((delegate.name,), delegate.places.waiting) for delegate in all_of_them)
    refused = {
        (delegate.name, reason): count
        for delegate in all_of_them
        for reason, count in delegate.places.refused.items()
    }
    yield REFUSED.pairs(refused, [delegate.name for delegate in all_of_them])
    yield METRICS.rows(
        ((delegate.name, group), len(listing.rows))
        for delegate in all_of_them
        for group in delegate.options.groups
        if (listing := delegate.listing(group)) is not None
    )
    yield READ.rows(
        ((delegate.name,), delegate.age) for delegate in all_of_them if delegate.age is not None
    )
    yield UNREAD.rows(((delegate.name,), delegate.discovery_failures) for delegate in all_of_them)
    yield PROBLEM.rows(
        ((delegate.name, delegate.problem_outcome), 1)
        for delegate in all_of_them
        if delegate.problem_outcome
    )
    yield LOOPS.one(delegation.loops)
