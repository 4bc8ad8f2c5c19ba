"""A listener for the kubelet's probes alone, in plain HTTP.

It answers ``/healthz``, ``/livez`` and ``/readyz``, one request on each connection, from memory.
It shares no limit with the API's listener, so nobody who fills that one takes the probes with
it. Its own limits are small: where they are reached, the oldest connection of the address that
has most of them is closed for the new one, so an address with one connection keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import structlog

from apiservice.address import peer_address
from apiservice.health import ENDPOINTS, HealthRegistry
from apiservice.server import bind
from apiservice.serving import ServingOptions, ServingStats

log = structlog.get_logger(__name__)

MOST: Final = 64
"""Connections at once."""
EACH: Final = 8
"""Connections of one address at once."""
_SECONDS: Final = 2.0
"""A connection may last so long, from accept to the last byte."""
_HEAD: Final = 4096
"""Bytes of a request's head."""


class ProbeListener:
    """Answers probes while it is started.

    Args:
        options: whose address is taken.
        port: 0 takes a free one.
        health: the checks.
        stats: where refusals are counted.
    """

    def __init__(
        self,
        options: ServingOptions,
        port: int,
        health: HealthRegistry,
        stats: ServingStats,
        seconds: float = _SECONDS,
    ) -> None:
        self._options = replace(options, port=port)
        self._health = health
        self._stats = stats
        self._seconds = seconds
        self._open: dict[str, dict[_Probe, None]] = {}
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
        self._server = await loop.create_server(lambda: _Probe(self), sock=listener, backlog=128)
        log.info("listening for probes", address=self._options.host or "*", port=self.port)

    async def stop(self) -> None:
        """Close the listener and its connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for some in tuple(self._open.values()):
            for probe in tuple(some):
                probe.end()

    def opened(self, probe: _Probe, address: str) -> Callable[[], object]:
        """Take a connection in; returns what ends it when its time is over."""
        own = self._open.get(address, {})
        if len(own) >= EACH:
            self._close_oldest(address)
        elif sum(map(len, self._open.values())) >= MOST:
            self._close_oldest(max(self._open, key=lambda each: len(self._open[each])))
        self._open.setdefault(address, {})[probe] = None
        return asyncio.get_running_loop().call_later(self._seconds, probe.end).cancel

    def closed(self, probe: _Probe, address: str) -> None:
        """A connection is gone, or goes."""
        own = self._open.get(address, {})
        own.pop(probe, None)
        if not own:
            self._open.pop(address, None)

    def answer(self, line: bytes) -> bytes:
        """The whole answer to a request that begins with this line."""
        method, _, rest = line.partition(b" ")
        path, _, query = rest.partition(b" ")[0].decode("ascii", "replace").partition("?")
        endpoint = path.removeprefix("/")
        if endpoint not in ENDPOINTS:
            return _answer(HTTPStatus.NOT_FOUND, "only /healthz, /livez and /readyz are here\n")
        if method not in (b"GET", b"HEAD"):
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed here\n")
        report = self._health.report(endpoint, verbose=query.split("=")[0] == "verbose")
        whole = _answer(HTTPStatus(report.code), report.text)
        return whole if method == b"GET" else whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _close_oldest(self, address: str) -> None:
        probe = next(iter(self._open[address]))
        self._stats.refuse("probes", address)
        self.closed(probe, address)
        probe.end()


class _Probe(asyncio.Protocol):
    """One connection."""

    def __init__(self, listener: ProbeListener) -> None:
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
        elif len(self._received) > _HEAD:
            self.end()

    def end(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()


def _answer(status: HTTPStatus, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "content-type: text/plain; charset=utf-8",
        "x-content-type-options: nosniff",
        "connection: close",
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*head, "\r\n")).encode() + body
