"""``/metrics``, ``/healthz`` and ``/readyz`` of the controller, in plain HTTP."""

from __future__ import annotations

import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from adapter.nodepool.controller import Controller
from adapter.nodepool.leader import Election
from adapter.nodepool.selfmetrics import NodepoolMetrics
from adapter.nodepool.watches import Watches
from apiservice.background import Background
from apiservice.health import Check, HealthRegistry
from apiservice.server import ListenError, bind
from apiservice.serving import ServingOptions


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
        self._address = ServingOptions(host=host, port=port)
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
        self._runner: web.AppRunner | None = None
        self.port = 0
        """The port that is bound."""

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            ListenError: somebody else has the port, or there is no such address.
        """
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        for name in ("healthz", "livez", "readyz"):
            app.router.add_get(f"/{name}", self._report)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            listener = bind(self._address)
        except ListenError as error:
            await runner.cleanup()
            raise ListenError(f"{error} with nodepool.host and nodepool.port") from None
        self.port = int(listener.getsockname()[1])
        await web.SockSite(runner, listener).start()
        self._runner = runner

    async def stop(self) -> None:
        """Close the listener."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def _report(self, request: web.Request) -> web.Response:
        verbose = "verbose" in request.query
        report = self._health.report(request.path.strip("/"), verbose=verbose)
        return web.Response(text=report.text, status=report.code)
