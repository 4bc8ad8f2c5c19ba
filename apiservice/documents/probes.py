"""A plain HTTP server of ``/healthz``, ``/livez`` and ``/readyz``, with ``/metrics`` if wanted.

It is for the kubelet and for Prometheus, which send no client certificate. Its limits are its own
and small: one request per connection, and a new connection closes the oldest one of the address
that has most. So an address with one connection gets an answer, and clients that fill the API's
listener do not keep probes out.
"""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.exceptions import HTTPException

from apiservice.documents.health import ENDPOINTS, HealthRegistry, Report
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.server import Server
from apiservice.runtime.background import Background

_READ: Final = ["GET", "HEAD"]
_TEXT: Final = "text/plain; charset=utf-8"
_CONNECTING: Final = 64
"""Connections that may be between accept and the first read."""
LIMITS: Final = ServingOptions(
    keep_alive=0,
    header_timeout=2,
    write_timeout=2,
    max_target=8 << 10,
    max_headers=8 << 10,
    max_header_line=8 << 10,
    max_connections=64 + _CONNECTING,
    reserved_connections=0,
    max_connections_per_address=8,
    evict_busy=True,
    max_handshakes=_CONNECTING,
    shutdown_seconds=1,
    linger=0.5,
    backlog=128,
)
"""Limits of such a server. Probes and scrapes last milliseconds."""


def probe_server(
    health: HealthRegistry,
    options: ServingOptions,
    *,
    registry: CollectorRegistry | None = None,
    background: Background | None = None,
    sweep_seconds: float = 1.0,
) -> Server:
    """Return a server that is not started.

    Args:
        health: the checks.
        options: :data:`LIMITS` with an address.
        registry: what ``/metrics`` shows; None serves no such page.
        background: runs the loop that keeps deadlines.
        sweep_seconds: seconds between checks of the deadlines.
    """
    return Server(
        _pages(health, registry),
        options,
        None,
        stats=ServingStats("probes"),
        background=background,
        sweep_seconds=sweep_seconds,
        event="listening for probes" if registry is None else "listening for scrapes and probes",
    )


def add_health_page(app: FastAPI, health: HealthRegistry, endpoint: str) -> None:
    """Serve all checks of an endpoint; reasons are withheld."""

    @app.api_route(f"/{endpoint}", methods=_READ)
    async def all_checks(request: Request) -> Response:
        query = request.query_params
        report = health.report(
            endpoint, verbose="verbose" in query, exclude=query.getlist("exclude")
        )
        return health_response(report)


def health_response(report: Report) -> Response:
    """Return a report as kube-apiserver writes it."""
    headers = {"x-content-type-options": "nosniff", "cache-control": "no-cache, private"}
    return Response(report.text, report.code, headers, _TEXT)


def _pages(health: HealthRegistry, registry: CollectorRegistry | None) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for endpoint in ENDPOINTS:
        add_health_page(app, health, endpoint)
    paths = [f"/{endpoint}" for endpoint in ENDPOINTS]
    if registry is not None:
        paths.insert(0, "/metrics")

        # At once: if it waited, more requests than there are connections could accumulate.
        @app.api_route("/metrics", methods=_READ)
        async def metrics() -> Response:
            return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    only = f"only {', '.join(paths[:-1])} and {paths[-1]} are here\n"

    async def no_page(_: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        text = "only GET is allowed here\n" if code == 405 else only
        return Response(text, code, {"x-content-type-options": "nosniff"}, _TEXT)

    app.add_exception_handler(HTTPException, no_page)
    return app
