"""HTTP/1.1 on one connection: uvicorn's httptools protocol with limits and client certificates.

uvicorn leaves to a reverse proxy what an aggregated API server must do itself, because
kube-apiserver forwards connections of every client in the cluster: limits on head and body,
timeouts for slow senders and slow readers, and a limit on connections.

Deadlines need no timers. Each connection states its current deadline, and one sweep per second over
all of them closes those that are late. So a request on a keep-alive connection sets and clears two
attributes instead of a timer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from apiservice.errors import (
    ApiError,
    BadRequest,
    HeadersTooLarge,
    MethodNotAllowed,
    PayloadTooLarge,
)
from apiservice.http.exchange import Exchange, refusal
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.peer import SCOPE_KEY, Peer, of_tls, peer_address
from apiservice.http.requesthead import complete, host_fault, oversize, too_many_lines
from apiservice.http.slots import Slots

_CLOSING_GRACE = 5.0
"""Seconds that a closed connection may take to flush and to end TLS."""
LAST_REQUEST = 2.0
"""Seconds in which a client that connected before the listener closed may send a request."""
_VERSIONS = frozenset(("1.1", "1.0"))
_READ = frozenset((b"GET", b"HEAD"))


class Connection(HttpToolsProtocol):
    """One client's connection. The server's sweep checks its deadline."""

    options: ServingOptions
    stats: ServingStats
    slots: Slots
    proven: Callable[[Peer], bool]
    """Returns whether a certificate is a front proxy's."""
    proxy_seen: Callable[[str], None]
    """Called with the address of each connection of a front proxy."""
    last_gone: Callable[[], None]
    """Called when no connection is left. These are set on a server's own subclass."""
    draining = False
    """Whether every answer closes its connection."""
    stopped = False
    """Whether the listener is closed. A client that connected before may send one more request."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.peer: Peer | None = None
        self.address = ""
        self.proxy = False
        """Whether the connection is a front proxy's."""
        self._most_lines = min(self.options.stranger_header_lines, self.options.max_header_lines)
        self._most_pipelined = min(self.options.stranger_pipelined, self.options.max_pipelined)
        self._waiting_for = _Wait.NOTHING
        self._deadline = inf
        self._write_deadline = inf
        self._reading_head = False
        self._in_message = False
        self._received = 0
        self._earlier = 0
        self._refusal: ApiError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """The handshake is done."""
        super().connection_made(transport)
        self.stats.opened += 1
        self.address = peer_address(transport.get_extra_info("peername"))
        connection: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if connection is not None and connection.session_reused:
            # Its certificate was checked when the session began, and its key was not proven.
            self.stats.refuse("resumed-session", self.address)
            transport.abort()
            return
        self.peer = of_tls(connection)
        self.proxy = self.peer is not None and self.proven(self.peer)
        if not self.slots.take(self):
            transport.abort()
            return
        if self.proxy:
            self._most_lines = self.options.max_header_lines
            self._most_pipelined = self.options.max_pipelined
            self.proxy_seen(self.address)
        self._expect(_Wait.HEAD, self._patience())

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, on either side."""
        super().connection_lost(exc)
        self.slots.leave(self)
        if not self.connections:
            self.last_gone()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes. A request that breaks a rule gets an error, which ends it."""
        if self._waiting_for is _Wait.LINGER or self.transport.is_closing():
            return
        self._received += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Only HTTP/1.1 is served: the answer is being written and is the last.
            self.cycle.keep_alive = False
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or BadRequest(f"malformed HTTP request: {error}"))
            return
        if not self._reading_head:
            self._received = 0
        elif self._received > self.options.max_headers + self._earlier:
            exceeded = oversize(self.url, self.headers, self.options)
            self._refuse(exceeded or HeadersTooLarge(self.options.max_headers))

    def on_message_begin(self) -> None:
        """Handle the first byte of a request."""
        super().on_message_begin()
        self._reading_head = self._in_message = True
        self._expect(_Wait.HEAD, self._patience())

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle one header line."""
        name = name.lower()
        if (
            len(self.headers) >= self._most_lines
            or len(name) + len(value) > self.options.max_header_line
        ):
            self._reject(too_many_lines(self.headers, self._most_lines, self.options))
        if name == b"content-length" and int(value) > self.options.max_body:
            self._reject(PayloadTooLarge(self.options.max_body))
        if name == b"transfer-encoding":
            # The parser reports trailer fields as if they were headers: a client's own
            # X-Remote-Group behind a chunked body would join those that its proxy stated. Only GET
            # and HEAD are answered, so another method is reported first.
            if self.parser.get_method() not in _READ:
                self._reject(MethodNotAllowed())
            self._reject(BadRequest("chunked bodies are not supported: send a Content-Length"))
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Handle a complete head: answer it, or queue it behind earlier requests."""
        # Fewer bytes than the smallest limit: the usual case costs one comparison.
        if self._received > self.options.max_target:
            error = oversize(self.url, self.headers, self.options)
            if error is not None:
                self._reject(error)
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            self._reject(BadRequest("only HTTP/1.1 and HTTP/1.0 are supported"))
        if len(self.pipeline) >= self._most_pipelined:
            self._reject(BadRequest("too many pipelined requests"))
        if (fault := host_fault(self.headers, version)) is not None:
            self._reject(BadRequest(fault))
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # our own key
        complete(scope, self.url, self.parser.get_method(), version)
        scope[SCOPE_KEY] = self.peer
        before, self.cycle = self.cycle, self._exchange(version)
        self._reading_head = False
        self._waiting_for, self._deadline = _Wait.NOTHING, inf
        if not self.proxy:
            self.slots.busy(self)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _exchange(self, version: str) -> Exchange:
        return Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=self._keeps_alive(version),
            on_response=self.on_response_complete,
        )

    def _keeps_alive(self, version: str) -> bool:
        wanted = version == "1.1" and self.parser.should_keep_alive()
        return wanted and self.options.keep_alive > 0 and not self.draining

    def on_body(self, body: bytes) -> None:
        """Discard the body, unless the application reads it. Its length was checked already."""
        if self.options.read_bodies:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of the request."""
        self._in_message = False
        # What follows in the same read belongs to the next request's head, and the size of
        # that part is not known here.
        self._earlier = self._received
        super().on_message_complete()
        if self.cycle.response_complete:
            self._expect(_Wait.REQUEST, self.options.keep_alive)

    def on_response_complete(self) -> None:
        """Handle the end of the answer; called by the cycle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        if not self.proxy:
            self.slots.idle(self)
        if self._in_message:
            # Either the next head or the rest of this body must arrive before the deadline.
            self._expect(_Wait.HEAD, self.options.header_timeout)
        else:
            self._expect(_Wait.REQUEST, self.options.keep_alive)

    def shutdown(self) -> None:
        """Close the listener: answer open requests, and let a new client send one request."""
        if self.cycle is None or (self._reading_head and self.cycle.response_complete):
            # No request was answered here yet, or one is on its way: closing now would lose it.
            self._expect(_Wait.HEAD, LAST_REQUEST)
        elif self.cycle.response_complete:
            self.transport.close()
        else:
            (self.pipeline[0][0] if self.pipeline else self.cycle).keep_alive = False

    def evict(self) -> None:
        """End the connection at once, to make room for another."""
        self.transport.abort()

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its answer."""
        super().pause_writing()
        self._write_deadline = self.loop.time() + self.options.write_timeout

    def resume_writing(self) -> None:
        """End that deadline: the client reads again."""
        super().resume_writing()
        self._write_deadline = inf

    def sweep(self, now: float) -> None:
        """Close the connection if it is past a deadline; ``now`` is the loop's time."""
        if now >= self._write_deadline:
            self._cut("slow-reader")
        elif self.transport.is_closing() and self._waiting_for is not _Wait.GOODBYE:
            self._expect(_Wait.GOODBYE, _CLOSING_GRACE)
        elif now < self._deadline:
            return
        elif self._waiting_for is _Wait.HEAD:
            self._cut("slow-request")
        elif self._waiting_for is _Wait.GOODBYE:
            self._cut("slow-goodbye")
        else:
            self.transport.close()

    def _patience(self) -> float:
        return LAST_REQUEST if self.stopped else self.options.header_timeout

    def _expect(self, what: _Wait, seconds: float) -> None:
        self._waiting_for = what
        self._deadline = self.loop.time() + seconds

    def _cut(self, why: str) -> None:
        self.stats.refused[why] += 1
        self.transport.abort()

    def _reject(self, error: ApiError) -> None:
        """Stop the parser from inside one of its callbacks."""
        self._refusal = error
        raise _RejectedError

    def _refuse(self, error: ApiError) -> None:
        """Answer with a Status, and end the connection."""
        self.stats.refused[type(error).__name__] += 1
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self.pipeline or cycle.response_started:
                # Another answer is being written or still due: the client would read a refusal
                # as a part of it.
                self.transport.abort()
                return
            cycle.disconnected = True  # its own answer is no longer sent
        self.transport.write(refusal(error))
        self._expect(_Wait.LINGER, self.options.linger)


class _Wait(Enum):
    """What a connection waits for until its deadline."""

    NOTHING = "nothing"
    HEAD = "head"
    REQUEST = "request"
    LINGER = "linger"
    GOODBYE = "goodbye"


class _RejectedError(Exception):
    """Raised in a parser callback; httptools reports it as a parser error."""
