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
        (each.name, outcome): count
        for each in all_of_them
        for outcome, count in each.outcomes.items()
    }
    yield REQUESTS.pairs(outcomes, [each.name for each in all_of_them])
    yield DURATIONS.durations(((each.name,), each.durations) for each in all_of_them)
    yield IN_FLIGHT.rows(((each.name,), each.in_flight) for each in all_of_them)
    yield WAITING.rows(((each.name,), each.places.waiting) for each in all_of_them)
    refused = {
        (each.name, reason): count
        for each in all_of_them
        for reason, count in each.places.refused.items()
    }
    yield REFUSED.pairs(refused, [each.name for each in all_of_them])
    yield METRICS.rows(
        ((each.name, group), len(found.rows))
        for each in all_of_them
        for group in each.options.groups
        if (found := each.listing(group)) is not None
    )
    yield READ.rows(((each.name,), each.age) for each in all_of_them if each.age is not None)
    yield UNREAD.rows(((each.name,), each.discovery_failures) for each in all_of_them)
    yield PROBLEM.rows(
        ((each.name, each.problem_outcome), 1) for each in all_of_them if each.problem_outcome
    )
    yield LOOPS.one(delegation.loops)
