"""Read histories from a Prometheus that scrapes this controller.

If the ConfigMap is lost, or nodepool is installed again, a workload without a history gets the
last hours of ``gma_nodepool_wanted_pods``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from adapter.config.process.storelogin import store_options
from adapter.config.settings import Settings
from adapter.hpa.podreplicas import MAX_INT32
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.history import EMPTY, MINUTE, RECENT, DemandHistory, DemandPoint
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.options import PrometheusOptions

if TYPE_CHECKING:
    from adapter.pipeline.sources.prometheus.seriesreader import QueriedSeries

log = structlog.get_logger(__name__)

QUERY: Final = "max by (namespace, kind, name) (gma_nodepool_wanted_pods)"


_TIMEOUT: Final = 20.0
"""Seconds for the query, at least. There is one, when a replica starts to lead."""


def store_of(settings: Settings) -> PrometheusOptions:
    """Return how the Prometheus of ``nodepool.history.prometheus_url`` is reached.

    Raises:
        CredentialError: a file of its login cannot be used.
    """
    url, source = settings.nodepool.history.prometheus_url, settings.source.prometheus
    # Credentials go only where the settings send them.
    return store_options(source) if source.url == url else PrometheusOptions(str(url))


async def read_back(
    past: Callable[[], PrometheusOptions], now: float
) -> Mapping[WorkloadRef, DemandHistory]:
    """Return workload -> history from Prometheus. After a failure, log it and return no history.

    Args:
        past: returns how it is reached; may raise CredentialError.
    """
    # Here, because prometheus-api-client and httpx take 10 MB, for one query of a process's life.
    from adapter.pipeline.sources.prometheus.seriesreader import reader_of  # noqa: PLC0415

    url = ""
    try:
        options = past()
        url = options.url
        reader = reader_of(replace(options, timeout=max(options.timeout, _TIMEOUT)))
        try:
            answer = await reader.range(QUERY, now - RECENT * MINUTE, now, MINUTE)
        finally:
            await reader.close()
    except SourceError as error:  # planning continues without a history
        log.warning("no history from Prometheus", url=url, error=str(error))
        return {}
    if answer.partial or answer.left_out.total():
        left_out = {reason: count for reason, count in answer.left_out.items() if count}
        log.warning(
            "history from Prometheus is incomplete",
            url=url,
            partial=answer.partial,
            left_out=left_out,
        )
    return histories(answer.series)


def histories(all_series: Iterable[QueriedSeries]) -> Mapping[WorkloadRef, DemandHistory]:
    """Return the series of a range query as histories, without those that name no workload."""
    by_workload: dict[WorkloadRef, DemandHistory] = {}
    for series in all_series:
        if not all(series.labels.get(key) for key in WorkloadRef._fields):
            continue
        history = EMPTY
        for time, load in series.points:
            if 0 <= load <= MAX_INT32:  # NaN is neither
                history = learn(history, DemandPoint(time, load))
        by_workload[WorkloadRef(*(series.labels[key] for key in WorkloadRef._fields))] = history
    return by_workload
