"""``/metrics``, ``/healthz``, ``/livez`` and ``/readyz`` of the controller, in plain HTTP."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector

from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.leader import Election
from adapter.nodepool.run.selfmetrics import NodepoolMetrics
from adapter.nodepool.run.watches import Watches
from apiservice.documents.health import Check, HealthRegistry
from apiservice.documents.probes import LIMITS, probe_server
from apiservice.http.server import ListenError, Server
from apiservice.runtime.background import Background

_LIMITS: Final = replace(LIMITS, header_timeout=10, write_timeout=10)
"""The default scrape timeout of Prometheus."""


async def listen(
    host: str,
    port: int,
    controller: NodepoolController,
    watches: Watches,
    election: Election | None,
    background: Background,
) -> Server:
    """Start to serve. The controller is ready when the collections have been listed.

    A follower is ready too, because it can take over immediately.

    Raises:
        ListenError: the port is in use, or the address does not exist.
    """
    interval = controller.settings.interval

    def rounds_problem() -> str | None:
        led = election is None or election.leading
        last = controller.state.ended_at or controller.state.started
        age = time.time() - last
        late = led and controller.discovered and age > 10 * interval + 300
        return f"no round for {age:.0f} s" if late else None

    health = HealthRegistry(
        live=[Check("rounds", rounds_problem)],
        ready=[
            Check("collections", lambda: watches.problem(time.time()) or None),
            Check("lease", lambda: (election.problem or None) if election else None),
            Check("background", background.problem),
        ],
    )
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(NodepoolMetrics(controller, watches, election, background=background))
    options = replace(_LIMITS, host=host, port=port)
    server = probe_server(health, options, registry=registry, background=background)
    try:
        await server.start()
    except ListenError as error:
        raise ListenError(f"{error} in nodepool.host and nodepool.port") from None
    return server
