"""What ``/metrics`` says about the adapter itself, read from its parts when asked.

Cardinality is bounded: reasons, limits and kinds are fixed sets; no pod, device, URL or
metric name is ever a label.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapter.apiserviceowner import APIServiceOwner
from adapter.families import counter, gauge, gauges
from adapter.keda.stats import KedaStats
from adapter.objects import Objects
from adapter.provider import GpuMetricsProvider
from adapter.reload import ConfigWatch
from adapter.security import Security
from adapter.sourcemetrics import source_families
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
        yield counter(
            "gma_absent",
            "Pods left out of an answer when it was prepared.",
            "reason",
            self._parts.provider.absent,
        )
        yield from source_families(self._parts.telemetry.current, now)
        yield from _cluster(self._parts.objects, now)
        yield from _connections(self._parts.server, self._parts.security)
        yield from _configuration(self._parts.watch)
        if self._parts.keda is not None:
            yield from _keda(self._parts.keda)
        owner = self._parts.owner
        if owner is not None and owner.foreign is not None:
            yield gauge(
                "gma_external_foreign",
                "1 while the APIService of external metrics points to another Service.",
                owner.foreign,
            )


def _values(telemetry: Telemetry, now: float) -> Iterator[Metric]:
    store = telemetry.current.store
    yield counter(
        "gma_rejects", "Rows and values left out since the start.", "reason", store.rejects.totals
    )
    yield gauges(
        "gma_attributed_devices",
        "Devices by how their pods are given utilisation, once per pod.",
        "attribution",
        store.attributions,
    )
    yield gauges(
        "gma_sharing_nodes",
        "Nodes whose devices are shared among pods, by what tells it.",
        "evidence",
        store.sharing_nodes,
    )
    ages = store.snapshot.ages(now).values()
    yield gauge("gma_exporters", "Exporters whose rows are held.", len(ages))
    if ages:
        yield gauge("gma_exporter_age_seconds_min", "Age of the newest page.", min(ages))
        yield gauge("gma_exporter_age_seconds_max", "Age of the oldest page held.", max(ages))


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
    yield gauge("gma_pods", "Pods in the index.", len(objects.pod_index))


def _connections(server: Server, security: Security) -> Iterator[Metric]:
    yield gauge("gma_connections", "Connections open.", server.connections)
    yield counter(
        "gma_connections_refused",
        "Connections and requests cut off, by the limit that did it.",
        "limit",
        server.stats.refused,
    )
    yield counter(
        "gma_unauthorized", "Requests answered 401.", "method", security.authentication.refused
    )
    yield gauge(
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
    yield gauge(
        "gma_keda_certificate_ok",
        "0 while its newest certificate or client CA is refused.",
        not stats.problem(),
    )


def _configuration(watch: ConfigWatch) -> Iterator[Metric]:
    yield gauge("gma_config_ok", "0 while the configuration file is refused.", not watch.problem)
    yield CounterMetricFamily(
        "gma_config_reloads", "Changes of the configuration taken up.", value=watch.reloads
    )
