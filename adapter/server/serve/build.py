"""Build the store's inputs from the settings: collections of the cluster, and a source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from adapter.config.process.storelogin import azure_identity, store_options
from adapter.config.settings import Settings, discovery
from adapter.config.settings.cluster import ClusterSettings
from adapter.config.settings.pageaccess import page_access
from adapter.config.settings.scrape import StaticTarget
from adapter.pipeline.attribution.policy import PolicyRule, SharingOptions
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.google import GROUP as CLOUD_MONITORING
from adapter.pipeline.catalog.seriesdemand import SeriesDemand
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.cluster.podsfile import PodsFile
from adapter.pipeline.devices.options import NODE_SERIES, TelemetryOptions
from adapter.pipeline.exposition.samples import Sink
from adapter.pipeline.sources.azure.options import AzureLogsOptions
from adapter.pipeline.sources.azure.source import AzureLogsSource
from adapter.pipeline.sources.login.azure import azure_tokens
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from adapter.server.serve.ownmetrics import queries
from apiservice.labels.selector import parse

INSIGHTS: Final = "azure"
"""The query group of the series that only Log Analytics has."""
INSIGHTS_INTERVAL: Final = 60.0
"""Seconds between Container Insights' own readings, regardless of the exporters' interval."""
STORED_SERIES: Final = 1 << 16
"""Bound on device series per origin for stored samples: one origin may be the whole cluster."""

Loop = Callable[[], Awaitable[None]]
"""Runs until cancelled."""


class Source(Protocol):
    """Fills the store until cancelled."""

    async def run(self) -> None:
        """Run until cancelled; failures of what it reads do not end it."""

    def problem(self, now: float) -> str | None:
        """Return why there is no fresh data although there should be, or None."""

    @property
    def settled(self) -> bool:
        """Whether every known exporter has been scraped or queried once, with or without success.

        A value that is still absent then has a reason of its own.
        """

    @property
    def found(self) -> bool:
        """Whether there is a page or a store.

        Before the first page is found, an absent value says nothing about its pod.
        """

    @property
    def only_servers(self) -> bool:
        """Whether inference servers are all that there is to read. They may fail for long, as while
        they load a model, so readiness does not wait until one answers."""


async def cluster_loops(
    settings: ClusterSettings, client: Any, objects: ObjectLookup
) -> Sequence[Loop]:
    """Return the loops that keep the collections current: a file's reader, or one watch for each.

    Raises:
        PodsFileError: ``pods_file`` cannot be used. If a later version of the file is invalid,
            the objects of the last valid one remain in use.
    """
    decoder = PodDecoder(GpuResources(settings.gpu_resources))
    if settings.pods_file is not None:
        file = PodsFile(
            settings.pods_file,
            objects.pod_index,
            decoder,
            services=objects.services,
            nodes=objects.nodes,
            hpas=objects.hpas,
        )
        await file.load()
        return (file.run,)
    # Imported here, because the Kubernetes client needs memory that ``pods_file`` does not.
    from adapter.pipeline.cluster.watch import (  # noqa: PLC0415
        watch_hpas,
        watch_nodes,
        watch_pods,
        watch_services,
    )

    loops = [watch_pods(client, objects.pod_index, decoder).run]
    if settings.services:
        loops.append(watch_services(client, objects.services).run)
    if settings.nodes:
        loops.append(watch_nodes(client, objects.nodes, decoder.resources).run)
    if objects.hpas is not None:
        loops.append(watch_hpas(client, objects.hpas).run)
    return loops


def build_source(
    settings: Settings, catalog: Catalog, sink: Sink, objects: ObjectLookup, demand: SeriesDemand
) -> Source:
    """Return the configured source, which delivers to the sink what is in demand.

    Raises:
        CredentialError: a file that it needs cannot be used.
    """
    if settings.source.kind != "scrape":
        objects.pod_index.note_addresses()  # samples of a store may name an address only
    if settings.source.kind == "prometheus":
        store = prometheus_options(settings)
        exact = settings.source.prometheus.exact
        return PrometheusSource(
            store, sink, query_groups(catalog, store.query, exact=exact), wanted=demand.series
        )
    if settings.source.kind == "azure_logs":
        logs = settings.source.azure_logs
        tokens = azure_tokens(azure_identity(logs.identity), str(logs.endpoint))
        return AzureLogsSource(azure_logs_options(settings), sink, objects.pod_index, tokens)
    options = scrape_options(settings)
    pods = objects.pod_index if options.rules or options.servers else None
    return ScrapeSource(options, sink, pods, wanted=demand.of)


def query_groups(
    catalog: Catalog, queries: Mapping[str, str], *, exact: bool
) -> dict[str, tuple[str, ...]]:
    """Return query group -> the series that the group fetches.

    Args:
        catalog: the catalogue with the series.
        queries: group -> the user's PromQL, which names its series itself.
        exact: make each other series a group of its own: Google's engine cannot match metric
            names by regular expression ("PromQL compatibility", Matching on metric names).
    """
    absent = {INSIGHTS} if exact else {INSIGHTS, CLOUD_MONITORING}
    groups = {name: some for name, some in catalog.groups.items() if name not in absent}
    if not exact:
        return groups
    queried = {name: some for name, some in groups.items() if name in queries}
    others = (series for name, some in groups.items() if name not in queries for series in some)
    # One query each: names that a collector has made are left to engines that take a pattern.
    return queried | {series: (series,) for series in others if series not in catalog.suffixed}


def scrape_options(settings: Settings) -> ScrapeOptions:
    """Return the scrape source's options."""
    scrape = settings.source.scrape
    return ScrapeOptions(
        interval=scrape.interval,
        timeout=scrape.timeout,
        rules=discovery.exporter_rules(settings),
        servers=discovery.server_pages(settings),
        targets=tuple(map(_static_target, scrape.targets)),
        concurrency=scrape.concurrency,
        max_bytes=scrape.max_bytes,
        server_max_bytes=scrape.inference.max_bytes,
        label_bytes=scrape.label_bytes,
        server_label_bytes=scrape.inference.label_bytes,
        max_backoff=scrape.max_backoff,
        ca_file=scrape.ca_file,
        bearer_token_file=scrape.bearer_token_file,
    )


def _static_target(target: StaticTarget) -> ScrapeTarget:
    pod = None if target.pod is None else PodRef(*target.pod.split("/"))
    access = page_access(target.tls_config, target if pod is None else None)
    return ScrapeTarget(str(target.url), target.node, pod, serves=pod is not None, access=access)


def prometheus_options(settings: Settings) -> PrometheusOptions:
    """Return the Prometheus source's options; the lookback covers all samples that can be used."""
    prometheus = settings.source.prometheus
    return replace(
        store_options(prometheus),
        interval=prometheus.interval,
        lookback=max(telemetry_options(settings).oldest, 2 * prometheus.scrape_interval),
        query={**prometheus.query, **queries(settings.metrics)},
        matchers=prometheus.matchers,
    )


def azure_logs_options(settings: Settings) -> AzureLogsOptions:
    """Return the Log Analytics source's options; the lookback covers all usable samples."""
    logs = settings.source.azure_logs
    return AzureLogsOptions(
        workspace=logs.workspace_id or "",
        endpoint=str(logs.endpoint).rstrip("/"),
        interval=logs.interval,
        timeout=logs.timeout,
        lookback=telemetry_options(settings).oldest,
        cluster=logs.cluster,
        ca_file=logs.ca_file,
    )


def telemetry_options(settings: Settings) -> TelemetryOptions:
    """Return the options for values from the settings."""
    source, values = settings.source, settings.values
    collect, scrape, all_series = values.collect_interval, source.scrape.interval, NODE_SERIES
    if source.kind == "prometheus":
        scrape, all_series = source.prometheus.scrape_interval, STORED_SERIES
    if source.kind == "azure_logs":
        collect = max(collect, INSIGHTS_INTERVAL)
        scrape = source.azure_logs.interval + source.azure_logs.delay
    return TelemetryOptions(
        window=values.window,
        collect_interval=collect,
        scrape_interval=scrape,
        age_limit=values.age_limit,
        cross_checks=values.cross_checks,
        min_requests=values.min_requests,
        unready=values.include_unready,
        unhealthy=values.include_unhealthy,
        ratio_scale=values.ratio_scale,
        server_bytes=source.scrape.inference.sample_bytes,
        max_series=all_series,
    )


def sharing_options(settings: Settings) -> SharingOptions:
    """Return the options for shared devices from the settings."""
    sharing = settings.sharing
    return SharingOptions(
        policy=sharing.policy,
        rules=tuple(
            PolicyRule(rule.policy, rule.namespaces, parse(rule.nodes)) for rule in sharing.rules
        ),
        normalized=sharing.mig_normalization == "profile",
    )
