"""What a replay reads: a recording, saved pages, or a store with the Prometheus query API."""

from __future__ import annotations

import stat
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from adapter.config.process.config import ConfigError, load
from adapter.config.settings import Settings
from adapter.hpa import HpaSpec
from adapter.pipeline.catalog import Catalog, built_in
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.sources.errors import SourceError
from adapter.server.recording.events import Recording
from adapter.server.recording.reader import RecordingReader
from adapter.server.recording.settings import dump_settings
from adapter.server.serve.build import prometheus_options, query_groups
from adapter.server.serve.ownmetrics import rows
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.neededseries import ResourceNames, device_series
from adapter.tools.replay.savedpages import SavedPages
from adapter.tools.replay.storerecording import LONGEST, StoreRecording
from adapter.tools.replay.storespans import StoreRange

_TIMEOUT: Final = 30.0
"""Seconds that a query of a long span may take, at least."""


_FLAGS: Final = {
    "config": "--config",
    "since": "--since",
    "until": "--until",
    "scrape_interval": "--scrape-interval",
}
_SCRAPED: Final = {"source.kind": "scrape"}
_OF_PAGES: Final = frozenset({"config", "scrape_interval"})
"""Options that saved pages have too. A recording has its own settings."""


def check_inputs(given: Mapping[str, Any]) -> None:
    """Check the options of :func:`input_options` before the cluster is asked for the HPA.

    Raises:
        ClientError: they contradict each other, or name what does not exist or cannot be used.
    """
    if (given["source"] is None) == (given["store"] is None):
        raise ClientError("name what to read, with either --from PATH or --from-prometheus URL")
    source = given["source"]
    if source is None:
        _interval(given, time.time())
        _store_settings(given)
        return
    try:
        folder = stat.S_ISDIR(source.stat().st_mode)
    except FileNotFoundError:
        raise ClientError(
            f"{source} does not exist: name a recording or a folder of saved pages with --from"
        ) from None
    except OSError as error:
        raise ClientError(f"{str(source)[:200]} cannot be read: {error.strerror}") from None
    for key in ("since", "until") if folder else _FLAGS:
        if given[key] is not None:
            others = " or saved pages" if key in _OF_PAGES else ""
            raise ClientError(
                f"{_FLAGS[key]} is about a store{others}: use it with --from-prometheus"
                f"{', or name a folder with --from' if others else ''}"
            )
    if folder:
        _load_settings(given, _SCRAPED)


def recording_of(given: Mapping[str, Any], spec: HpaSpec, *, latencies: bool = False) -> Recording:
    """Return what the options of :func:`input_options` name.

    Args:
        given: checked by :func:`check_inputs`.
        latencies: read also what the pods' servers count from a store; other recordings have it.

    Raises:
        ClientError: the configuration cannot be used.
        RecordingError: a login's file cannot be used.
    """
    source = given["source"]
    if source is None:
        return StoreRecording(_range(given, spec, latencies=latencies), spec)
    return _saved_pages(given) if source.is_dir() else RecordingReader(source)


def _saved_pages(given: Mapping[str, Any]) -> SavedPages:
    def settings(interval: float) -> Mapping[str, Any]:
        apart = given["scrape_interval"] or max(1.0, interval)
        return dump_settings(_load_settings(given, {**_SCRAPED, "source.scrape.interval": apart}))

    first = _load_settings(given, _SCRAPED)
    decoder = PodDecoder(GpuResources(first.cluster.gpu_resources))
    return SavedPages(given["source"], settings, _catalog(first), decoder)


def _catalog(settings: Settings) -> Catalog:
    shipped = built_in()
    return shipped.extended(*rows(settings.metrics, shipped))


def _range(given: Mapping[str, Any], spec: HpaSpec, *, latencies: bool) -> StoreRange:
    start, end = _interval(given, time.time())
    settings = _store_settings(given)
    catalog = _catalog(settings)
    names = device_series(
        catalog, spec, cross_checks=settings.values.cross_checks, latencies=latencies
    )
    if not names.own:
        wanted = ", ".join(metric.name for metric in spec.metrics)
        raise ClientError(
            f"HPA {spec.namespace}/{spec.name} has no metric of type Pods that the catalogue "
            f"knows: it has {wanted}; an own metric needs --config with `metrics`"
        )
    try:
        options = prometheus_options(settings)
    except SourceError as error:
        raise ClientError(str(error)) from None
    exact = settings.source.prometheus.exact
    _reject_queries(options.query, catalog, {*names.own, *names.others}, exact=exact)
    return StoreRange(
        options=replace(options, timeout=max(options.timeout, _TIMEOUT), retries=1),
        start=start,
        end=end,
        names=names,
        settings=dump_settings(settings),
        scrape_interval=settings.source.prometheus.scrape_interval,
        resources=ResourceNames(GpuResources(settings.cluster.gpu_resources)),
        exact=exact,
    )


def _interval(given: Mapping[str, Any], now: float) -> tuple[float, float]:
    """Return the epoch seconds of what is read from a store; raises ClientError."""
    since = 7 * 86_400.0 if given["since"] is None else given["since"]
    if not 0 < since <= LONGEST:
        raise ClientError(f"--since has to be above 0, and at most {LONGEST / 86_400:g}d")
    end = now if given["until"] is None else given["until"]
    if end > now:
        raise ClientError("--until is in the future: a store has samples of the past only")
    return end - since, end


def _store_settings(given: Mapping[str, Any]) -> Settings:
    flags = {
        "source.kind": "prometheus",
        "source.prometheus.url": given["store"],
        "source.prometheus.scrape_interval": given["scrape_interval"],
    }
    return _load_settings(given, flags)


def _load_settings(given: Mapping[str, Any], flags: Mapping[str, object]) -> Settings:
    try:
        return load(given["config"], flags)
    except ConfigError as error:
        text = "; ".join(error.problems)
        raise ClientError(text.replace("--prometheus-url", "--from-prometheus")) from None


def _reject_queries(
    queries: Mapping[str, str], catalog: Catalog, names: set[str], *, exact: bool
) -> None:
    """Raise ClientError if a user's query makes one of the series.

    Only a selector has raw samples of the past.
    """
    groups = query_groups(catalog, queries, exact=exact)
    for name in queries:
        if names.intersection(groups.get(name, ())):
            where = name if name.startswith("metrics.") else f"source.prometheus.query.{name}"
            raise ClientError(
                f"{where} is a query of your own, and a replay reads the samples of series: "
                "remove it in --config if the store has the series, or record with "
                "`serve --record`"
            )
