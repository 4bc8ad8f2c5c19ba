"""The listener's life: bind, serve, sweep, drain.

uvicorn's own ``Server`` owns signals, exits the process on a bind error and wakes ten
times a second; here the caller owns the process, and only uvicorn's protocol is used.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import structlog
from uvicorn.config import Config
from uvicorn.server import ServerState

from apiservice.protocol import Connection
from apiservice.serving import EVERY_ADDRESS, ServingOptions, ServingStats

log = structlog.get_logger(__name__)

_SWEEP = 1.0
_GOODBYE = 5.0


class ListenError(Exception):
    """The address cannot be bound; the message names it and the mend."""


class Server:
    """Serves one ASGI application on one port.

    ``start`` binds; ``run`` keeps deadlines until cancelled; ``drain`` ends it in order:
    first nothing changes but readiness (``on_drain`` is called), then no new connection is
    accepted, requests in flight finish, and what is left after ``shutdown_seconds`` is cut.
    """

    def __init__(
        self,
        app: Any,
        options: ServingOptions,
        context: ssl.SSLContext | None,
        *,
        stats: ServingStats | None = None,
        sweep_seconds: float = _SWEEP,
    ) -> None:
        self._options = options
        self._context = context
        self._sweep_seconds = sweep_seconds
        self.stats = stats or ServingStats()
        self._state = ServerState()
        self._config = Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            interface="asgi3",
        )
        self._config.load()
        self._last_gone = asyncio.Event()
        bound = {"options": options, "stats": self.stats, "last_gone": self._last_gone.set}
        self._protocol = type("BoundConnection", (Connection,), bound)
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is bound; chosen by the system where the options say 0."""
        if self._server is None:
            raise RuntimeError("the server is not started")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._state.connections)

    @property
    def requests(self) -> int:
        """Requests being answered now."""
        return len(self._state.tasks)

    async def start(self) -> None:
        """Bind and accept.

        Raises:
            ListenError: the address is taken, not this machine's, or not allowed.
        """
        loop = asyncio.get_running_loop()
        listener = bind(self._options)
        tls: dict[str, Any] = {}
        if self._context is not None:
            tls = {
                "ssl": self._context,
                "ssl_handshake_timeout": self._options.handshake_timeout,
                "ssl_shutdown_timeout": _GOODBYE,
            }
        self._server = await loop.create_server(
            self._connect, sock=listener, backlog=self._options.backlog, **tls
        )
        self._tell_the_time()
        self._sweeper = asyncio.create_task(self._sweep(), name="connection deadlines")
        log.info("listening", address=self._options.host or "*", port=self.port)

    async def drain(self, on_drain: Callable[[], None] | None = None) -> None:
        """Stop in order; returns when every connection is gone."""
        if on_drain is not None:
            on_drain()
        self._protocol.draining = True  # type: ignore[attr-defined]  # our class
        log.info("draining", seconds=self._options.drain_seconds)
        await asyncio.sleep(self._options.drain_seconds)
        await self.stop()

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, then cut what is left."""
        if self._server is None:
            return
        self._server.close()
        self._protocol.stopped = True  # type: ignore[attr-defined]  # our class
        for connection in tuple(self._state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self._options.shutdown_seconds):
                await self._gone()
        except TimeoutError:
            log.warning("connections cut at shutdown", count=self.connections)
            for connection in tuple(self._state.connections):
                connection.transport.abort()
            for task in tuple(self._state.tasks):
                task.cancel()
            await asyncio.gather(*self._state.tasks, return_exceptions=True)
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._server.wait_closed()
        self._server = None

    async def _gone(self) -> None:
        self._last_gone.clear()
        while self._state.connections:
            await self._last_gone.wait()
            self._last_gone.clear()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _connect(self) -> asyncio.Protocol:
        return self._protocol(  # type: ignore[no-any-return]  # our class
            config=self._config, server_state=self._state, app_state={}
        )

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._sweep_seconds)
            self._tell_the_time()
            now = loop.time()
            for connection in tuple(self._state.connections):
                connection.sweep(now)  # type: ignore[union-attr]  # our class

    def _tell_the_time(self) -> None:
        date = formatdate(time.time(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date)]


def bind(options: ServingOptions) -> socket.socket:
    """A listening socket; without a host on every address, IPv4 through IPv6 where possible.

    Raises:
        ListenError: see :class:`Server`.
    """
    try:
        if options.host not in (EVERY_ADDRESS, "::"):
            family = _family(options)
            return socket.create_server((options.host, options.port), family=family)
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", options.port), family=socket.AF_INET6, dualstack_ipv6=True
            )
        return socket.create_server(("", options.port))
    except OSError as error:
        raise ListenError(
            f"cannot listen on {options.host or '*'}:{options.port}: "
            f"{error.strerror or error}; choose another port or address"
        ) from error


def _family(options: ServingOptions) -> socket.AddressFamily:
    found = socket.getaddrinfo(
        options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return found[0][0]
