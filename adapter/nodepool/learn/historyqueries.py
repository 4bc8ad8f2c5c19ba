"""Read histories from a Prometheus that scrapes this controller.

If the ConfigMap is lost, or nodepool is installed again, a workload without a history gets the
last hours of ``gma_nodepool_wanted_pods``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from adapter.hpa.podreplicas import MAX_INT32
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.history import EMPTY, MINUTE, RECENT, DemandHistory, DemandPoint

log = structlog.get_logger(__name__)

QUERY: Final = "max by (namespace, kind, name) (gma_nodepool_wanted_pods)"
_TIMEOUT: Final = 20
"""Timeout in seconds. There is one query, when a replica starts to lead."""


async def read_back(url: str, now: float) -> Mapping[WorkloadRef, DemandHistory]:
    """Return workload -> history from Prometheus. After a failure, log it and return no history."""
    try:
        rows = await asyncio.to_thread(_ask, url, now)
    except ImportError:
        log.error(
            "nodepool.history.prometheus_url needs prometheus-api-client",
            hint="pip install 'gpu-metrics-adapter[prometheus]'",
        )
        return {}
    except Exception as error:  # planning continues without a history
        log.warning("no history from Prometheus", url=url, error=str(error))
        return {}
    return histories(rows)


def histories(rows: Iterable[Mapping[str, Any]]) -> Mapping[WorkloadRef, DemandHistory]:
    """Return the series of a range query as histories, without those that name no workload."""
    found: dict[WorkloadRef, DemandHistory] = {}
    for row in rows:
        labels = row.get("metric") or {}
        if not all(labels.get(key) for key in WorkloadRef._fields):
            continue
        history = EMPTY
        for time, value in row.get("values") or ():
            load = float(value)
            if 0 <= load <= MAX_INT32:  # NaN is neither
                history = learn(history, DemandPoint(float(time), load))
        found[WorkloadRef(*(str(labels[key]) for key in WorkloadRef._fields))] = history
    return found


def _ask(url: str, now: float) -> list[Mapping[str, Any]]:
    from prometheus_api_client import PrometheusConnect  # noqa: PLC0415 - an extra

    start, end = (datetime.fromtimestamp(at, UTC) for at in (now - RECENT * MINUTE, now))
    connection = PrometheusConnect(url=url, timeout=_TIMEOUT)
    rows: list[Mapping[str, Any]] = connection.custom_query_range(QUERY, start, end, "60")
    return rows
