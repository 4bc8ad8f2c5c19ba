"""A listener for the kubelet's probes alone: ``/healthz``, ``/livez`` and ``/readyz``.

It shares no limit with the API's listener, so nobody who fills that one takes the probes with it.
"""

from __future__ import annotations

from typing import Final

from apiservice.documents.health import ENDPOINTS, HealthRegistry
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.plainhttp import Kind, Page, PlainHttp, Request

_SECONDS: Final = 2.0


def probe_listener(
    options: ServingOptions,
    port: int,
    health: HealthRegistry,
    stats: ServingStats,
    seconds: float = _SECONDS,
) -> PlainHttp:
    """A listener that is not started.

    Args:
        options: whose address is taken.
        port: 0 takes a free one.
        health: the checks.
        stats: where refusals are counted.
        seconds: that a connection may last.
    """
    kind = Kind("listening for probes", "probes", "/healthz, /livez and /readyz", seconds)
    return PlainHttp(options, port, kind, lambda request: health_page(health, request), stats)


def health_page(health: HealthRegistry, request: Request) -> Page | None:
    """The answer of a health endpoint; None where the path is another."""
    endpoint = request.path.removeprefix("/")
    if endpoint not in ENDPOINTS:
        return None
    report = health.report(endpoint, verbose=request.verbose)
    return Page(report.code, report.text.encode())
