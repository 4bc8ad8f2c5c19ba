"""Connections of aiohttp's clients: they look names up here, and all end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler

from apiservice.runtime.names import Resolver


class Connector(aiohttp.TCPConnector):
    """Makes every connection of aiohttp in this project, and leaves none open when it is closed.

    The library closes the connections that it keeps. It does not track one that is in TLS's
    orderly end, which waits for the server: after ``Connection: close``, or where asyncio ends a
    connection because its task was cancelled as the handshake was complete. An event loop that ends
    does not wait for those either.

    Args:
        named: as aiohttp's; the resolver is ``names``' own.
    """

    def __init__(self, **named: Any) -> None:
        super().__init__(resolver=Resolver(), **named)
        self._open: WeakSet[_Protocol] = WeakSet()
        """Weak: the protocol of a tunnel through a proxy never sees that its connection ends."""
        factory: Any = partial(_Protocol, loop=self._loop, opened=self._track_protocol)
        self._factory = factory

    def _track_protocol(self, protocol: _Protocol) -> None:
        if self._closed:  # the handshake was complete only now
            protocol.end()
        else:
            self._open.add(protocol)

    def _close(self, *, abort_ssl: bool = False) -> list[Awaitable[object]]:
        waiters = super()._close(abort_ssl=True)
        for protocol in self._open:
            protocol.end()
        return waiters


class _Protocol(ResponseHandler):
    """Knows its connection even after the library has let go of it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, opened: Callable[[_Protocol], None]
    ) -> None:
        super().__init__(loop)
        self._opened = opened
        self._line: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._line = self.transport
        self._opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._line = None
        super().connection_lost(exc)

    def end(self) -> None:
        """Abort the connection, if it is still there."""
        if self._line is not None:
            self._line.abort()
