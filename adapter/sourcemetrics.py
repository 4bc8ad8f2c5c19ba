"""What ``/metrics`` says about the source that fills the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from adapter.families import counter, gauge
from adapter.sources.azurelogs import AzureLogsSource
from adapter.sources.prometheus import PrometheusSource
from adapter.sources.scrape import ScrapeSource
from adapter.telemetry import Pipeline


def source_families(pipeline: Pipeline, now: float) -> Iterator[Metric]:
    """Of the source in use, whichever kind it is of."""
    source = pipeline.source
    up = GaugeMetricFamily(
        "gma_source_up", "1 while the source brings fresh data.", labels=["kind"]
    )
    up.add_metric([pipeline.settings.source.kind], float(source.problem(now) is None))
    yield up
    if isinstance(source, ScrapeSource):
        failing = sum(1 for state in source.states.values() if state.last_error)
        yield gauge("gma_scrape_targets", "Exporters to be scraped.", len(source.states))
        yield gauge("gma_scrape_targets_failing", "Of these, failed last time.", failing)
        yield _targets_by_rule(source)
        yield counter(
            "gma_scrape_misfits",
            "Pods that ask to be scraped and cannot be, such as for a wrong annotation.",
            "reason",
            source.misfits,
        )
        yield CounterMetricFamily("gma_scrapes", "Scrapes made.", value=source.scrapes)
        yield counter(
            "gma_scrape_failures", "Scrapes that gave nothing.", "reason", source.failures
        )
    if isinstance(source, AzureLogsSource):
        yield CounterMetricFamily("gma_queries", "Queries sent.", value=source.queries)
        yield counter(
            "gma_query_failures", "Queries without a usable answer.", "reason", source.failures
        )
        yield gauge(
            "gma_query_groups_partial", "Groups whose last answer was partial.", source.partial
        )
    if isinstance(source, PrometheusSource):
        queries = sum(state.queries for state in source.groups)
        yield CounterMetricFamily("gma_queries", "Queries sent, retries included.", value=queries)
        yield counter(
            "gma_query_failures", "Queries without a usable answer.", "reason", source.failures
        )
        yield CounterMetricFamily(
            "gma_query_warnings", "Answers that came with warnings.", value=source.warnings
        )
        partial = sum(1 for state in source.groups if state.partial)
        yield gauge("gma_query_groups_partial", "Groups whose last answer was partial.", partial)


def _targets_by_rule(source: ScrapeSource) -> Metric:
    """Rules are those of the code and of the settings: a fixed set."""
    family = GaugeMetricFamily(
        "gma_scrape_targets_by_rule", "Exporters found, by discovery rule.", labels=["rule"]
    )
    for rule, count in sorted(Counter(target.rule for target in source.states).items()):
        family.add_metric([rule], count)
    return family
