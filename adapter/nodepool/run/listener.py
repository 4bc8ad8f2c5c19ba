"""``/metrics``, ``/healthz``, ``/livez`` and ``/readyz`` of the controller, in plain HTTP."""

from __future__ import annotations

import time
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from adapter.nodepool.run.controller import Controller
from adapter.nodepool.run.leader import Election
from adapter.nodepool.run.selfmetrics import NodepoolMetrics
from adapter.nodepool.run.watches import Watches
from apiservice.documents.health import Check, HealthRegistry
from apiservice.documents.probes import health_page
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.plainhttp import Kind, Page, PlainHttp, Request
from apiservice.http.server import ListenError
from apiservice.runtime.background import Background

_KIND: Final = Kind(
    "listening for scrapes and probes",
    "nodepool",
    "/metrics, /healthz, /livez and /readyz",
    seconds=10,
)
"""Prometheus waits as long for a page unless it is configured otherwise."""


class Listener:
    """Answers while it is started. Ready means: the collections are here.

    A follower is ready too: it takes over at once.
    """

    def __init__(
        self,
        host: str,
        port: int,
        controller: Controller,
        watches: Watches,
        election: Election | None,
        background: Background | None = None,
    ) -> None:
        self.stats = ServingStats()
        """Connections that a limit ended; the log names them."""
        self._listener = PlainHttp(ServingOptions(host=host), port, _KIND, self._page, self.stats)
        background = background or Background()
        interval = controller.settings.interval

        def ticking() -> str | None:
            led = election is None or election.leading
            last = controller.state.ended_at or controller.state.started
            age = time.time() - last
            late = led and controller.discovered and age > 10 * interval + 300
            return f"no round for {age:.0f} s" if late else None

        self._health = HealthRegistry(
            live=[Check("rounds", ticking)],
            ready=[
                Check("collections", lambda: watches.problem(time.time()) or None),
                Check("lease", lambda: (election.problem or None) if election else None),
                Check("background", background.problem),
            ],
        )
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(
            NodepoolMetrics(controller, watches, election, background=background)
        )

    @property
    def port(self) -> int:
        """The port that is bound."""
        return self._listener.port

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            ListenError: somebody else has the port, or there is no such address.
        """
        try:
            await self._listener.start()
        except ListenError as error:
            raise ListenError(f"{error} with nodepool.host and nodepool.port") from None

    async def stop(self) -> None:
        """Close the listener."""
        await self._listener.stop()

    def _page(self, request: Request) -> Page | None:
        if request.path == "/metrics":
            return Page(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        return health_page(self._health, request)
