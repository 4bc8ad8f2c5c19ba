"""Metrics of the source that fills the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.pipeline.sources.azure.source import AzureLogsSource
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.server.serve.pipeline import Pipeline
from adapter.server.serve.reasons import FAILURES, UNSCRAPABLE
from apiservice.selfmetrics.families import counter, gauge, histogram

UP: Final = gauge("gma_source_up", "1 while the source delivers fresh data.", "kind")
LAST: Final = gauge(
    "gma_source_last_success_timestamp_seconds",
    "Time of the last good answer of an exporter or the store, in epoch seconds. Absent before "
    "the first.",
    "kind",
)
TARGETS: Final = gauge("gma_scrape_targets", "Exporters and server pages to scrape.")
FAILING: Final = gauge(
    "gma_scrape_targets_failing", "Those of gma_scrape_targets whose last scrape failed."
)
OVERDUE: Final = gauge(
    "gma_scrape_targets_overdue",
    "Those of gma_scrape_targets that are overdue, because too many scrapes are in progress.",
)
LABEL_BYTES: Final = gauge(
    "gma_scrape_label_bytes",
    "Estimated memory for the label sets of pages.",
    "kind",
    known=("exporter", "pod"),
)
BY_RULE: Final = gauge(
    "gma_scrape_targets_by_rule",
    "Scrape targets by the discovery rule that found them. Rules are built in or in the settings.",
    "rule",
)
UNSCRAPABLE_PODS: Final = counter(
    "gma_unscrapable_pods_total",
    "Pods that ask to be scraped or have an exporter's labels, and are not scraped.",
    "reason",
    known=UNSCRAPABLE,
)
SCRAPES: Final = counter("gma_scrapes_total", "Scrapes, successful or not.")
SCRAPE_FAILURES: Final = counter(
    "gma_scrape_failures_total", "Scrapes that failed.", "reason", known=FAILURES
)
SCRAPE_DURATIONS: Final = histogram(
    "gma_scrape_duration_seconds", "Duration of scrapes, successful or not."
)
QUERIES: Final = counter("gma_queries_total", "Queries sent to the store, including retries.")
QUERY_FAILURES: Final = counter(
    "gma_query_failures_total", "Queries without a usable answer.", "reason", known=FAILURES
)
QUERY_DURATIONS: Final = histogram(
    "gma_query_duration_seconds", "Duration of queries, including their retries."
)
WARNINGS: Final = counter(
    "gma_query_warnings_total", "Answers of the store that contained warnings."
)
PARTIAL: Final = gauge(
    "gma_query_groups_partial", "Metric groups whose last answer lacked some of the series."
)
FAMILIES: Final = (
    *(UP, LAST, TARGETS, FAILING, OVERDUE, LABEL_BYTES, BY_RULE, UNSCRAPABLE_PODS),
    *(SCRAPES, SCRAPE_FAILURES, SCRAPE_DURATIONS),
    *(QUERIES, QUERY_FAILURES, QUERY_DURATIONS, WARNINGS, PARTIAL),
)


def source_families(pipeline: Pipeline, now: float) -> Iterator[Metric]:
    """Yield the metrics of the source in use."""
    source, kind = pipeline.source, pipeline.settings.source.kind
    yield UP.rows([((kind,), source.problem(now) is None)])
    if isinstance(source, ScrapeSource):
        yield _last_success(kind, source.last_success)
        yield from _scrape_families(source, now)
    if isinstance(source, AzureLogsSource | PrometheusSource):
        yield _last_success(kind, source.last_success)
        yield QUERY_FAILURES.by(source.failures)
        yield QUERY_DURATIONS.durations([((), source.durations)])
    if isinstance(source, AzureLogsSource):
        yield QUERIES.one(source.queries)
        yield PARTIAL.one(source.partial)
    if isinstance(source, PrometheusSource):
        yield QUERIES.one(sum(state.queries for state in source.groups))
        yield WARNINGS.one(source.warnings)
        yield PARTIAL.one(sum(1 for state in source.groups if state.partial))


def _scrape_families(source: ScrapeSource, now: float) -> Iterator[Metric]:
    yield TARGETS.one(len(source.states))
    yield FAILING.one(sum(1 for state in source.states.values() if state.last_error))
    yield OVERDUE.one(source.count_overdue(now))
    yield LABEL_BYTES.by(source.label_bytes)
    yield BY_RULE.by(Counter(target.rule for target in source.states))
    yield UNSCRAPABLE_PODS.by(source.unscrapable)
    yield SCRAPES.one(source.scrapes)
    yield SCRAPE_FAILURES.by(source.failures)
    yield SCRAPE_DURATIONS.durations([((), source.durations)])


def _last_success(kind: str, when: float) -> Metric:
    return LAST.rows([((kind,), when)] if when else [])
