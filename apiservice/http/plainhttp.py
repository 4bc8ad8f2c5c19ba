"""A small listener in plain HTTP, for pages that are answered from memory.

It answers one request on each connection. Its limits are its own and are small: where they are
reached, the oldest connection of the address that has most of them is closed for the new one, so
an address with one connection keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, NamedTuple

import structlog

from apiservice.http.address import peer_address
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.server import bind

log = structlog.get_logger(__name__)

MOST: Final = 64
"""Connections at once."""
EACH: Final = 8
"""Connections of one address at once."""
HEAD: Final = 8192
"""Bytes of a request's head."""
TEXT: Final = "text/plain; charset=utf-8"


class Page(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    media_type: str = TEXT


class Request(NamedTuple):
    """What is asked for; the method is GET or HEAD."""

    path: str
    verbose: bool
    """The query begins with ``verbose``."""


Pages = Callable[[Request], Page | None]
"""Answers from memory, at once; None where there is no such page."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a listener is for."""

    event: str
    """What the log says when it begins to listen."""
    limit: str
    """What refusals are counted as."""
    paths: str
    """What it serves, in words for a client that asks for something else."""
    seconds: float
    """A connection may last so long, from accept to the last byte."""


class PlainHttp:
    """Answers while it is started.

    Args:
        options: whose address is taken.
        port: 0 takes a free one.
        kind: what it is for.
        pages: answers.
        stats: where refusals are counted.
    """

    def __init__(
        self, options: ServingOptions, port: int, kind: Kind, pages: Pages, stats: ServingStats
    ) -> None:
        self._options = replace(options, port=port)
        self._kind = kind
        self._pages = pages
        self._stats = stats
        self._open: dict[str, dict[_Connection, None]] = {}
        """Address -> its connections, the oldest first."""
        self._server: asyncio.Server | None = None
        self.port = 0
        """The port that is bound."""

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            ListenError: the address is taken, not this machine's, or not allowed.
        """
        listener = bind(self._options)
        self.port = int(listener.getsockname()[1])
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), sock=listener, backlog=128
        )
        log.info(self._kind.event, address=self._options.host or "*", port=self.port)

    async def stop(self) -> None:
        """Close the listener and its connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for some in tuple(self._open.values()):
            for connection in tuple(some):
                connection.end()

    def opened(self, connection: _Connection, address: str) -> Callable[[], object]:
        """Take a connection in; returns what stops the clock that ends it."""
        own = self._open.get(address, {})
        if len(own) >= EACH:
            self._close_oldest(address)
        elif sum(map(len, self._open.values())) >= MOST:
            self._close_oldest(max(self._open, key=lambda each: len(self._open[each])))
        self._open.setdefault(address, {})[connection] = None
        loop = asyncio.get_running_loop()
        return loop.call_later(self._kind.seconds, connection.end).cancel

    def closed(self, connection: _Connection, address: str) -> None:
        """A connection is gone, or goes."""
        own = self._open.get(address, {})
        own.pop(connection, None)
        if not own:
            self._open.pop(address, None)

    def answer(self, line: bytes) -> bytes:
        """The whole answer to a request that begins with this line."""
        method, _, rest = line.partition(b" ")
        path, _, query = rest.partition(b" ")[0].decode("ascii", "replace").partition("?")
        page = self._pages(Request(path, query.split("=")[0] == "verbose"))
        if page is None:
            page = Page(404, f"only {self._kind.paths} are here\n".encode())
        elif method not in (b"GET", b"HEAD"):
            page = Page(405, b"only GET is allowed here\n")
        whole = _whole(page)
        return whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else whole

    def _close_oldest(self, address: str) -> None:
        connection = next(iter(self._open[address]))
        self._stats.refuse(self._kind.limit, address)
        self.closed(connection, address)
        connection.end()


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, listener: PlainHttp) -> None:
        self._listener = listener
        self._address = ""
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._in_time: Callable[[], object] = lambda: None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a stream's
        """The client connected."""
        self._transport = transport
        self._address = peer_address(transport.get_extra_info("peername"))
        self._in_time = self._listener.opened(self, self._address)

    def connection_lost(self, _: Exception | None) -> None:
        """The connection is gone."""
        self._in_time()
        self._listener.closed(self, self._address)

    def data_received(self, data: bytes) -> None:
        """Answer when the head is whole."""
        if self._transport is None or self._transport.is_closing():
            return
        self._received += data
        if b"\r\n\r\n" in self._received:
            self._transport.write(self._listener.answer(self._received.partition(b"\r\n")[0]))
            self._transport.close()
        elif len(self._received) > HEAD:
            self.end()

    def end(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()


def _whole(page: Page) -> bytes:
    status = HTTPStatus(page.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"content-type: {page.media_type}",
        "x-content-type-options: nosniff",
        "connection: close",
        f"content-length: {len(page.body)}",
    )
    return "\r\n".join((*head, "\r\n")).encode() + page.body
