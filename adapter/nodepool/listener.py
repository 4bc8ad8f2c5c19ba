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
from apiservice.health import Check, HealthRegistry


class ListenError(Exception):
    """The address cannot be listened on; the message names it and the mend."""


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
    ) -> None:
        self._host = host
        self._port = port
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
            ],
        )
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(NodepoolMetrics(controller, watches, election))
        self._runner: web.AppRunner | None = None

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
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise ListenError(
                f"cannot listen on {self._host} port {self._port}: {error.strerror}; set "
                f"nodepool.host and nodepool.port"
            ) from None
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
