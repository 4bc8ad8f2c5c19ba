"""The HTTP server: bind, serve, check deadlines, drain.

uvicorn's own ``Server`` handles signals, exits the process on a bind error and wakes ten times a
second. Here the caller owns the process, and only uvicorn's protocol is used.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Collection
from email.utils import formatdate
from typing import Any

import structlog
from uvicorn.config import Config
from uvicorn.server import ServerState

from apiservice.http.acceptor import Acceptor, Context
from apiservice.http.options import EVERY_ADDRESS, ServingOptions, ServingStats
from apiservice.http.peer import Peer
from apiservice.http.protocol import LAST_REQUEST, Connection
from apiservice.http.slots import Slots
from apiservice.runtime.background import Background

log = structlog.get_logger(__name__)

_SWEEP = 1.0


class ListenError(Exception):
    """The address cannot be bound; the message names it and the fix."""


class Server:
    """Serves one ASGI application on one port.

    ``start`` binds, and ``drain`` ends in order. After ``drain_seconds``, no new connection is
    accepted, requests in progress finish, and what is left after ``shutdown_seconds`` is cut.
    """

    def __init__(
        self,
        app: Any,
        options: ServingOptions,
        context: Context | None,
        *,
        proven: Callable[[Peer], bool] | None = None,
        stats: ServingStats | None = None,
        background: Background | None = None,
        sweep_seconds: float = _SWEEP,
        event: str = "listening",
    ) -> None:
        """Create a server that is not started.

        Args:
            context: the TLS context for the next connection; None serves plain text.
            proven: returns whether a certificate is a front proxy's; None: no client is one.
            background: runs the loop that keeps deadlines.
            sweep_seconds: seconds between checks of the deadlines.
            event: the log event when it starts to listen.
        """
        self._options = options
        self._context = context
        self._sweep_seconds = sweep_seconds
        self._event = event
        self._background = background or Background()
        self.stats = stats or ServingStats()
        self._slots = Slots(options, self.stats)
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
        bound = {
            "options": options,
            "stats": self.stats,
            "slots": self._slots,
            "proven": staticmethod(proven or (lambda _: False)),
            "proxy_seen": staticmethod(self._note_proxy),
            "last_gone": self._last_gone.set,
        }
        self._protocol = type("BoundConnection", (Connection,), bound)
        self._acceptor: Acceptor | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is bound; the system chooses it if the options say 0."""
        if self._acceptor is None:
            raise RuntimeError("the server is not started")
        return self._acceptor.port

    @property
    def connections(self) -> int:
        """Connections open now, TLS handshakes in progress included."""
        return len(self._state.connections) + self.handshakes

    @property
    def handshakes(self) -> int:
        """TLS handshakes in progress."""
        return len(self._acceptor.handshakes) if self._acceptor else 0

    @property
    def strangers(self) -> int:
        """Open connections that are not a front proxy's."""
        return self._slots.strangers

    @property
    def proxies(self) -> Collection[Peer]:
        """The front proxies that are connected now: of each address the newest.

        An API server that got another certificate keeps its idle connections, and opens others.
        """
        newest: dict[str, Peer] = {}
        for connection in tuple(self._state.connections):
            if connection.proxy:  # type: ignore[union-attr]  # our class
                peer: Peer = connection.peer  # type: ignore[union-attr]  # our class
                other = newest.setdefault(connection.address, peer)  # type: ignore[union-attr]  # our class
                if peer.since > other.since:
                    newest[connection.address] = peer  # type: ignore[union-attr]  # our class
        return newest.values()

    @property
    def requests(self) -> int:
        """Requests that are being answered now."""
        return len(self._state.tasks)

    @property
    def asked(self) -> int:
        """Requests since the start."""
        return self._state.total_requests

    async def start(self, listener: socket.socket | None = None) -> None:
        """Bind, unless ``listener`` is bound already, and accept.

        Raises:
            ListenError: the address is in use, is not an address of this machine, or is not
                allowed.
        """
        self._acceptor = Acceptor(
            bind(self._options) if listener is None else listener,
            self._connect,
            self._context,
            self._options,
            self.stats,
            self._slots.evict,
        )
        self._refresh_date()
        self._acceptor.start()
        sweep = self._background.keep("connections", self._sweep)
        self._sweeper = asyncio.create_task(sweep(), name="connection deadlines")
        log.info(self._event, address=self._options.host or "*", port=self.port)

    async def drain(self) -> None:
        """Stop in order. Return when every connection is closed."""
        self._protocol.draining = True  # type: ignore[attr-defined]  # our class
        log.info("draining", seconds=self._options.drain_seconds)
        await asyncio.sleep(self._options.drain_seconds)
        await self.stop()

    async def stop(self) -> None:
        """Accept no more, let requests in progress finish, then cut what is left."""
        acceptor = self._acceptor
        if acceptor is None:
            return
        acceptor.close()
        self._protocol.draining = self._protocol.stopped = True  # type: ignore[attr-defined]  # our class
        for connection in tuple(self._state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self._options.shutdown_seconds):
                await self._wait_for_end(acceptor)
        except TimeoutError:
            log.warning("connections cut at shutdown", count=self.connections)
            await acceptor.handshakes.cancel()
            for connection in tuple(self._state.connections):
                connection.transport.abort()
            for task in tuple(self._state.tasks):
                task.cancel()
            await asyncio.gather(*self._state.tasks, return_exceptions=True)
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._acceptor = None

    async def _wait_for_end(self, acceptor: Acceptor) -> None:
        try:
            async with asyncio.timeout(LAST_REQUEST):
                await acceptor.handshakes.wait_for_end()
        except TimeoutError:
            await acceptor.handshakes.cancel()
        self._last_gone.clear()
        while self._state.connections:
            await self._last_gone.wait()
            self._last_gone.clear()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _note_proxy(self, address: str) -> None:
        if self._acceptor is not None:
            self._acceptor.handshakes.note_proxy(address)

    def _connect(self) -> asyncio.Protocol:
        return self._protocol(  # type: ignore[no-any-return]  # our class
            config=self._config, server_state=self._state, app_state={}
        )

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._sweep_seconds)
            self._refresh_date()
            now = loop.time()
            for connection in tuple(self._state.connections):
                connection.sweep(now)  # type: ignore[union-attr]  # our class

    def _refresh_date(self) -> None:
        date = formatdate(time.time(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date)]


def bind(options: ServingOptions) -> socket.socket:
    """Return a listening socket; without a host on all addresses, IPv4 through IPv6 if possible.

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
    addresses = socket.getaddrinfo(
        options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return addresses[0][0]
