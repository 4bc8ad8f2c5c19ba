"""Builds, from settings, what fills the store: cluster collections and a source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from adapter.catalog import Catalog
from adapter.cluster.manifest import PodDecoder
from adapter.cluster.podsfile import PodsFile
from adapter.objects import Objects
from adapter.settings import Settings
from adapter.settings.cluster import ClusterSettings
from adapter.sources.discovery import RULES, Rule
from adapter.sources.prometheus import PrometheusOptions, PrometheusSource
from adapter.sources.scrape import ScrapeOptions, ScrapeSource
from adapter.sources.target import Target
from adapter.store import Store
from adapter.telemetryoptions import NODE_TRACKS, TelemetryOptions
from apiservice.selector import parse

STORED_TRACKS: Final = 1 << 16
"""Where stored series do not say which exporter they are of, a fleet counts as one."""

Loop = Callable[[], Awaitable[None]]
"""Runs until cancelled."""


class Source(Protocol):
    """Fills the store until cancelled."""

    async def run(self) -> None:
        """No failure of what it reads ends it."""

    def problem(self, now: float) -> str | None:
        """Why there is no fresh data although there should be; None when all is well."""

    @property
    def settled(self) -> bool:
        """Every exporter known now has been asked once, with or without success: what is
        still absent is so for a reason of its own."""


def cluster_loops(settings: ClusterSettings, client: Any, objects: Objects) -> Sequence[Loop]:
    """What keeps the collections in step: a file's reader, or a watch for each."""
    decoder = PodDecoder(settings.gpu_resources)
    if settings.pods_file is not None:
        file = PodsFile(
            settings.pods_file,
            objects.pod_index,
            decoder,
            services=objects.services,
            nodes=objects.nodes,
        )
        return (file.run,)
    # Imported late: the Kubernetes client costs memory that a file does not need.
    from adapter.cluster.watch import watch_nodes, watch_pods, watch_services  # noqa: PLC0415

    loops = [watch_pods(client, objects.pod_index, decoder).run]
    if settings.services:
        loops.append(watch_services(client, objects.services).run)
    if settings.nodes:
        loops.append(watch_nodes(client, objects.nodes).run)
    return loops


def build_source(settings: Settings, catalog: Catalog, store: Store, objects: Objects) -> Source:
    """The configured source.

    Raises:
        CredentialError: a file it needs cannot be used.
    """
    if settings.source.kind == "prometheus":
        return PrometheusSource(prometheus_options(settings), store, catalog.groups)
    pods = objects.pod_index if settings.source.scrape.discover else None
    return ScrapeSource(scrape_options(settings), store, pods, wanted=catalog.series)


def scrape_options(settings: Settings) -> ScrapeOptions:
    """The scrape source's options; the user's discovery rules come before the built-in ones."""
    scrape = settings.source.scrape
    own = tuple(
        Rule(
            rule.name,
            parse(rule.selector),
            rule.port,
            path=rule.path,
            scheme=rule.scheme,
            namespace=rule.namespace,
        )
        for rule in scrape.exporters
    )
    return ScrapeOptions(
        interval=scrape.interval,
        timeout=scrape.timeout,
        rules=(*own, *RULES),
        targets=tuple(Target(str(target.url), target.node) for target in scrape.targets),
        concurrency=scrape.concurrency,
        max_bytes=scrape.max_bytes,
        max_backoff=scrape.max_backoff,
        ca_file=scrape.ca_file,
        bearer_token_file=scrape.bearer_token_file,
    )


def prometheus_options(settings: Settings) -> PrometheusOptions:
    """The Prometheus source's options; samples are asked for as far back as they may count."""
    prometheus = settings.source.prometheus
    password = prometheus.password
    return PrometheusOptions(
        url=str(prometheus.url),
        interval=prometheus.interval,
        timeout=prometheus.timeout,
        retries=prometheus.retries,
        lookback=max(telemetry_options(settings).oldest, 2 * prometheus.scrape_interval),
        query=prometheus.query,
        matchers=prometheus.matchers,
        username=prometheus.username,
        password=password.get_secret_value() if password else None,
        password_file=prometheus.password_file,
        bearer_token_file=prometheus.bearer_token_file,
        ca_file=prometheus.ca_file,
        cert_file=prometheus.cert_file,
        key_file=prometheus.key_file,
        headers=prometheus.headers,
        max_bytes=prometheus.max_bytes,
    )


def telemetry_options(settings: Settings) -> TelemetryOptions:
    """What the values promise, by the settings."""
    source, values = settings.source, settings.values
    prometheus = source.kind == "prometheus"
    return TelemetryOptions(
        window=values.window,
        collect_interval=values.collect_interval,
        scrape_interval=(
            source.prometheus.scrape_interval if prometheus else source.scrape.interval
        ),
        age_limit=values.age_limit,
        unready=values.include_unready,
        ratio_scale=values.ratio_scale,
        max_tracks=STORED_TRACKS if prometheus else NODE_TRACKS,
    )
