"""One HTTP connection to a page, whose server is not trusted to follow the protocol.

aiohttp's client is not used here. It queues every informational answer (``100 Continue``) without
a bound, and it passes bytes that arrive on an idle connection to the next request, which then
waits forever. This connection accepts a few informational answers, bounds the head's length,
stops reading while the consumer is behind, and closes on bytes that nobody requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, cast

import httptools

from adapter.pipeline.sources.errors import SourceError

_MAX_HEAD: Final = 1 << 16
"""Bytes of an answer's head, including informational answers before it."""
_MAX_INFORMATIONAL: Final = 8
_MAX_AHEAD: Final = 1 << 18
"""Bytes of memory for parts of a body that may be buffered before reading pauses."""
_PIECE: Final = 64
"""Bytes of memory that a part takes besides its content."""
_KEPT: Final = frozenset(
    (b"content-encoding", b"content-length", b"transfer-encoding", b"location")
)
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")
"""The first bytes of a TLS alert and of a TLS handshake (RFC 8446, section 5.1)."""


class StaleError(Exception):
    """The server closed a kept connection before it answered: retry on a new connection."""


class UnansweredError(SourceError):
    """The server closed a new connection without an answer."""


class TlsAnswerError(Exception):
    """The server answered a plain request with TLS."""


class PageConnection(asyncio.Protocol):
    """A connection that carries one request at a time."""

    __slots__ = (
        *("__weakref__", "_ahead", "_asked", "_body", "_busy", "_bytes", "_done", "_error"),
        *("_headed", "_heard", "_informational", "_most", "_parser", "_paused", "_reusable"),
        *("_transport", "_waiter", "headers", "status"),
    )

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser
        """Exists while the connection does: it refers to this object, so that reference counting
        frees neither."""
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._body: list[bytes] = []
        self._ahead = 0
        """Bytes of memory of ``_body``."""
        self._paused = False
        self._busy = False
        self._asked = 0
        self._most = 0
        self._begin()

    def _begin(self) -> None:
        self._bytes = 0
        self._informational = 0
        self._heard = False
        self._headed = False
        self._done = False
        self._reusable = True
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        """The headers that determine how to read the answer, and where a redirect leads; the last
        of a repeated header counts."""

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._error is None

    @property
    def spent(self) -> bool:
        """Whether the answer was read completely, so that the connection may be kept."""
        return self._done and self._reusable and not self._body and self.usable

    def close(self) -> None:
        """Close immediately, without waiting for the peer."""
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, request: bytes, most: int) -> None:
        """Send a request, and wait for the head of its answer.

        Args:
            most: the maximum size of the answer on the wire, in bytes.

        Raises:
            SourceError: the answer is not HTTP, or is incomplete.
            StaleError: the server had closed the connection.
        """
        self._asked += 1
        if self._transport is None or not self.usable:
            raise StaleError if self._asked > 1 else self._error or StaleError
        if self._asked > 1:
            self._parser = httptools.HttpResponseParser(self)
            self._begin()
        self._busy = True
        self._most = most
        self._transport.write(request)
        while not self._headed:
            await self._wait()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body as it was sent, piece by piece."""
        while True:
            if self._body:
                piece = self._body[0] if len(self._body) == 1 else b"".join(self._body)
                self._body = []
                self._resume(0)
                yield piece
                continue
            if self._done:
                self._busy = False
                return
            await self._wait()

    async def whole(self) -> bytes:
        """Return the whole body as it was sent. Its header says that it is short.

        One future is enough for a page that arrives in one piece; :meth:`body` needs several.
        """
        while not self._done:
            if self._paused:
                self._body = [b"".join(self._body)]
                self._resume(len(self._body[0]) + _PIECE)
            await self._wait()
        self._busy = False
        parts, self._body = self._body, []
        self._resume(0)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _resume(self, ahead: int) -> None:
        self._ahead = ahead
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        if not self._busy or self._done:
            self._fail(SourceError("protocol", "the server sent data before a request"))
            return
        if not self._heard and data.startswith(_TLS_RECORDS):
            self._fail(TlsAnswerError())
            return
        self._heard = True
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(SourceError("protocol", "the answer changes the protocol"))
        except httptools.HttpParserCallbackError as error:
            self._fail(_cause(error))
        except httptools.HttpParserError as error:
            if not self._done:
                self._fail(SourceError("protocol", f"the answer is not HTTP: {error}"))
            self._reusable = False
        self._check_size()
        if self._ahead >= _MAX_AHEAD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _check_size(self) -> None:
        if not self._headed and self._bytes > _MAX_HEAD:
            self._fail(SourceError("protocol", f"the head is above {_MAX_HEAD} bytes"))
        if self._bytes > self._most:
            self._fail(SourceError("too_large", f"the answer takes more than {self._most} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self._transport = None
        del self._parser
        if not self._done and self._error is None:
            self._note_end(exc)
        self._wake()

    def _note_end(self, exc: Exception | None) -> None:
        if not self._heard and self._asked > 1:
            self._error = StaleError()
        elif not self._heard:
            detail = f": {exc}" if exc else ""
            self._error = UnansweredError("connect", f"the server closed the connection{detail}")
        elif self._headed and exc is None and self._until_close:
            self._done, self._reusable = True, False
        else:
            self._error = SourceError("truncated", "the answer is incomplete")

    @property
    def _until_close(self) -> bool:
        """Whether the end of the connection ends the body."""
        return not self.headers.keys() & {b"content-length", b"transfer-encoding"}

    def _fail(self, error: Exception) -> None:
        if self._error is None and not self._done:
            self._error = error
        self._reusable = False
        self.close()

    def on_message_begin(self) -> None:
        """Parser callback: an answer begins."""
        if self._done:
            self._reusable = False
            raise SourceError("protocol", "data follows the end of the answer")
        self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback: a header of the answer."""
        if not self._headed and name.lower() in _KEPT:
            self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Parser callback: a head ends, possibly an informational one."""
        status = self._parser.get_status_code()
        if 100 <= status <= 199:
            self._informational += 1
            if self._informational > _MAX_INFORMATIONAL:
                raise SourceError(
                    "protocol", f"more than {_MAX_INFORMATIONAL} informational answers"
                )
            return
        self.status, self._headed = status, True

    def on_body(self, body: bytes) -> None:
        """Parser callback: a piece of the body."""
        self._body.append(body)
        self._ahead += len(body) + _PIECE

    def on_message_complete(self) -> None:
        """Parser callback: an answer ends, possibly an informational one."""
        if self._headed:
            self._done = True
            self._reusable = self._reusable and self._parser.should_keep_alive()


def _cause(error: Exception) -> Exception:
    cause = error.__context__ or error.__cause__
    return cause if isinstance(cause, SourceError) else SourceError("protocol", str(error))
