"""What ``/metrics`` says about the adapter itself, read from its parts when asked.

Cardinality is bounded: reasons, limits and kinds are fixed sets; no pod, device, URL or
metric name is ever a label.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapter.apiserviceowner import APIServiceOwner
from adapter.keda.stats import KedaStats
from adapter.objects import Objects
from adapter.provider import GpuMetricsProvider
from adapter.reload import ConfigWatch
from adapter.security import Security
from adapter.sources.azurelogs import AzureLogsSource
from adapter.sources.prometheus import PrometheusSource
from adapter.sources.scrape import ScrapeSource
from adapter.telemetry import Telemetry
from apiservice.server import Server


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that has something to tell."""

    telemetry: Telemetry
    provider: GpuMetricsProvider
    objects: Objects
    server: Server
    security: Security
    watch: ConfigWatch
    owner: APIServiceOwner | None = None
    """Looks whose the external metrics API is, if anybody does."""
    keda: KedaStats | None = None
    """None where KEDA is not served."""


def register(
    registry: CollectorRegistry, parts: Parts, clock: Callable[[], float] = time.time
) -> None:
    """Add the adapter's own metrics, and the process', to a registry."""
    ProcessCollector(registry=registry)
    registry.register(_Adapter(parts, clock))


class _Adapter(Collector):
    def __init__(self, parts: Parts, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._clock = clock

    def describe(self) -> Iterator[Metric]:
        """Nothing is collected while registering: the parts are not running yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        now = self._clock()
        yield from _values(self._parts.telemetry, now)
        yield _counter(
            "gma_absent",
            "Pods left out of an answer when it was prepared.",
            "reason",
            self._parts.provider.absent,
        )
        yield from _source(self._parts.telemetry, now)
        yield from _cluster(self._parts.objects, now)
        yield from _connections(self._parts.server, self._parts.security)
        yield from _configuration(self._parts.watch)
        if self._parts.keda is not None:
            yield from _keda(self._parts.keda)
        owner = self._parts.owner
        if owner is not None and owner.foreign is not None:
            yield _gauge(
                "gma_external_foreign",
                "1 while the APIService of external metrics points to another Service.",
                owner.foreign,
            )


def _values(telemetry: Telemetry, now: float) -> Iterator[Metric]:
    store = telemetry.current.store
    yield _counter(
        "gma_rejects", "Rows and values left out since the start.", "reason", store.rejects.totals
    )
    yield _gauges(
        "gma_attributed_devices",
        "Devices by how their pods are given utilisation, once per pod that rows name.",
        "attribution",
        store.attributions,
    )
    yield _gauges(
        "gma_sharing_nodes",
        "Nodes whose devices are shared among pods, by what tells it.",
        "evidence",
        store.sharing_nodes,
    )
    ages = store.snapshot.ages(now).values()
    yield _gauge("gma_exporters", "Exporters whose rows are held.", len(ages))
    if ages:
        yield _gauge("gma_exporter_age_seconds_min", "Age of the newest page.", min(ages))
        yield _gauge("gma_exporter_age_seconds_max", "Age of the oldest page held.", max(ages))


def _source(telemetry: Telemetry, now: float) -> Iterator[Metric]:
    source = telemetry.current.source
    up = GaugeMetricFamily(
        "gma_source_up", "1 while the source brings fresh data.", labels=["kind"]
    )
    up.add_metric([telemetry.current.settings.source.kind], float(source.problem(now) is None))
    yield up
    if isinstance(source, ScrapeSource):
        failing = sum(1 for state in source.states.values() if state.last_error)
        yield _gauge("gma_scrape_targets", "Exporters to be scraped.", len(source.states))
        yield _gauge("gma_scrape_targets_failing", "Of these, failed last time.", failing)
        yield _targets_by_rule(source)
        yield _counter(
            "gma_scrape_misfits",
            "Pods that ask to be scraped and cannot be, such as for a wrong annotation.",
            "reason",
            source.misfits,
        )
        yield CounterMetricFamily("gma_scrapes", "Scrapes made.", value=source.scrapes)
        yield _counter(
            "gma_scrape_failures", "Scrapes that gave nothing.", "reason", source.failures
        )
    if isinstance(source, AzureLogsSource):
        yield CounterMetricFamily("gma_queries", "Queries sent.", value=source.queries)
        yield _counter(
            "gma_query_failures", "Queries without a usable answer.", "reason", source.failures
        )
        yield _gauge(
            "gma_query_groups_partial", "Groups whose last answer was partial.", source.partial
        )
    if isinstance(source, PrometheusSource):
        queries = sum(state.queries for state in source.groups)
        yield CounterMetricFamily("gma_queries", "Queries sent, retries included.", value=queries)
        yield _counter(
            "gma_query_failures", "Queries without a usable answer.", "reason", source.failures
        )
        yield CounterMetricFamily(
            "gma_query_warnings", "Answers that came with warnings.", value=source.warnings
        )
        partial = sum(1 for state in source.groups if state.partial)
        yield _gauge("gma_query_groups_partial", "Groups whose last answer was partial.", partial)


def _targets_by_rule(source: ScrapeSource) -> Metric:
    """Rules are those of the code and of the settings: a fixed set."""
    family = GaugeMetricFamily(
        "gma_scrape_targets_by_rule", "Exporters found, by discovery rule.", labels=["rule"]
    )
    for rule, count in sorted(Counter(target.rule for target in source.states).items()):
        family.add_metric([rule], count)
    return family


def _cluster(objects: Objects, now: float) -> Iterator[Metric]:
    synced = GaugeMetricFamily(
        "gma_watch_synced", "1 once a collection has been read wholly.", labels=["collection"]
    )
    age = GaugeMetricFamily(
        "gma_watch_age_seconds", "Since its origin was last heard from.", labels=["collection"]
    )
    for name, collection in (
        ("pods", objects.pod_index),
        ("services", objects.services),
        ("nodes", objects.nodes),
    ):
        synced.add_metric([name], float(collection.synced))
        if collection.synced:
            age.add_metric([name], collection.age(now))
    yield synced
    yield age
    yield _gauge("gma_pods", "Pods in the index.", len(objects.pod_index))


def _connections(server: Server, security: Security) -> Iterator[Metric]:
    yield _gauge("gma_connections", "Connections open.", server.connections)
    yield _counter(
        "gma_connections_refused",
        "Connections and requests cut off, by the limit that did it.",
        "limit",
        server.stats.refused,
    )
    yield _counter(
        "gma_unauthorized", "Requests answered 401.", "method", security.authentication.refused
    )
    yield _gauge(
        "gma_serving_certificate_expiry_timestamp_seconds",
        "When the serving certificate expires.",
        security.tls.expires,
    )
    in_force = GaugeMetricFamily(
        "gma_security_file_ok", "0 while its newest content is refused.", labels=["file"]
    )
    for name, problem in security.problems.items():
        in_force.add_metric([name], float(not problem()))
    yield in_force
    if security.reviews is not None:
        reviews = CounterMetricFamily(
            "gma_reviews",
            "TokenReviews and SubjectAccessReviews sent.",
            labels=["kind", "outcome"],
        )
        for (kind, outcome), count in sorted(security.reviews.asked.items()):
            reviews.add_metric([kind, outcome], count)
        yield reviews


def _keda(stats: KedaStats) -> Iterator[Metric]:
    calls = CounterMetricFamily(
        "gma_keda_calls", "Calls ended, by gRPC status.", labels=["method", "code"]
    )
    for (method, code), count in sorted(stats.calls.items()):
        calls.add_metric([method, code], count)
    yield calls
    streams = GaugeMetricFamily("gma_keda_streams", "Streams open.", labels=["method"])
    for method, count in sorted(stats.streams.items()):
        streams.add_metric([method], count)
    yield streams
    yield _gauge(
        "gma_keda_certificate_ok",
        "0 while its newest certificate or client CA is refused.",
        not stats.problem(),
    )


def _configuration(watch: ConfigWatch) -> Iterator[Metric]:
    yield _gauge("gma_config_ok", "0 while the configuration file is refused.", not watch.problem)
    yield CounterMetricFamily(
        "gma_config_reloads", "Changes of the configuration taken up.", value=watch.reloads
    )


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))


def _gauges(name: str, text: str, label: str, counts: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([key], float(count))
    return family


def _counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([str(key)], count)
    return family
