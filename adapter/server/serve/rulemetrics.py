"""Metrics of prometheus-adapter's rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.answers.rules.service import RuleService
from adapter.answers.rules.vector import LEFT_OUT
from adapter.answers.rules.wideanswers import NARROW
from adapter.server.serve.reasons import FAILURES
from apiservice.runtime.shares import REFUSALS
from apiservice.selfmetrics.families import counter, gauge, histogram

FILE_OK: Final = gauge("gma_rules_file_ok", "0 while the rules file on disk is rejected.")
RULES: Final = gauge("gma_rules", "Rules in use.", "api", known=("custom", "external", "resource"))
BROKEN: Final = gauge("gma_rules_broken", "Rules of the file that are left out for a mistake.")
METRICS: Final = gauge(
    "gma_rule_metrics",
    "Metrics of the rules, counted once for each resource.",
    "api",
    known=("custom", "external"),
)
OVER: Final = gauge(
    "gma_rule_metrics_left_out", "Metrics of the rules that are left out, above the limit."
)
SHARED: Final = gauge(
    "gma_rule_metrics_shared",
    "Metrics that a rule and the catalogue both have; rules.prefer decides which one serves them.",
    "api",
    known=("custom", "external"),
)
SERIES_OUT: Final = gauge(
    "gma_rule_series_left_out",
    "Series of the last discovery that are left out: malformed, or above the limits.",
)
DISCOVERED: Final = gauge(
    "gma_rule_discovery_last_success_timestamp_seconds",
    "Time of the last discovery without a failure, in epoch seconds. Absent before the first.",
)
DISCOVERY_FAILURES: Final = counter(
    "gma_rule_discovery_failures_total",
    "Series queries and requests for the resources of the API server that failed.",
)
QUERIES: Final = counter("gma_rule_queries_total", "Queries of rules sent to the store.")
RECALLED: Final = counter(
    "gma_rule_recalled_total", "Requests that the answer to an earlier query served."
)
FAILED: Final = counter(
    "gma_rule_query_failures_total",
    "Queries of rules without a usable answer.",
    "reason",
    known=(*FAILURES, "busy"),
)
WAITING: Final = gauge("gma_rule_queries_waiting", "Queries of rules that wait for their place.")
REFUSED: Final = counter(
    "gma_rule_queries_refused_total",
    "Queries of rules that got no place: too many of the namespace waited (full), or no place "
    "became free in time (timeout).",
    "reason",
    known=REFUSALS,
)
TOOK: Final = histogram("gma_rule_query_duration_seconds", "Duration of queries of rules.")
LEFT: Final = counter(
    "gma_rule_values_left_out_total",
    "Values in answers to rules that are left out.",
    "reason",
    known=LEFT_OUT,
)
WIDE: Final = gauge(
    "gma_rule_wide_queries", "Queries of rules for all objects that are kept current."
)
WIDE_OBJECTS: Final = gauge(
    "gma_rule_wide_objects", "Values in the kept answers to queries for all objects."
)
WIDE_SERVED: Final = counter(
    "gma_rule_wide_requests_total",
    "Requests for custom metrics that a kept answer for all objects served.",
)
NARROW_REQUESTS: Final = counter(
    "gma_rule_narrow_requests_total",
    "Requests for custom metrics that needed a query of their own.",
    "reason",
    known=NARROW,
)
FAMILIES: Final = (
    *(FILE_OK, RULES, BROKEN, METRICS, OVER, SHARED, SERIES_OUT, DISCOVERED, DISCOVERY_FAILURES),
    *(QUERIES, RECALLED, FAILED, WAITING, REFUSED, TOOK, LEFT),
    *(WIDE, WIDE_OBJECTS, WIDE_SERVED, NARROW_REQUESTS),
)


def rule_families(service: RuleService) -> Iterator[Metric]:
    """Yield the metrics of the rules."""
    rules, registry, store = service.rules, service.registry, service.store
    yield FILE_OK.one(not service.file_problem)
    resource = 2 if rules.resource else 0  # cpu and memory
    counts = {"custom": len(rules.custom), "external": len(rules.external), "resource": resource}
    yield RULES.by(counts)
    yield BROKEN.one(sum(row.broken for row in rules.problems) + len(registry.failed))
    yield METRICS.by({"custom": len(registry.custom), "external": len(registry.external)})
    yield OVER.one(registry.left_out)
    yield SHARED.by({api: count() for api, count in service.shared.items()})
    yield SERIES_OUT.one(service.series_left_out)
    if service.last_discovery:
        yield DISCOVERED.one(service.last_discovery)
    yield DISCOVERY_FAILURES.one(service.discovery_failures)
    yield QUERIES.one(store.queries)
    yield RECALLED.one(store.recalled)
    yield FAILED.by(store.failures)
    yield WAITING.one(store.places.waiting)
    yield REFUSED.by(store.places.refused)
    yield TOOK.durations([((), store.durations)])
    yield LEFT.by(store.left_out)
    yield WIDE.one(service.wide.queries)
    yield WIDE_OBJECTS.one(service.wide.objects)
    yield WIDE_SERVED.one(service.wide.served)
    yield NARROW_REQUESTS.by(service.wide.narrow)
