"""Fetch pages over kept connections.

:mod:`adapter.pipeline.sources.scrape.connection` replaces aiohttp's client here. It also costs
less CPU, which matters for 1,250 exporters every 5 s.

The server of a page has no influence on later requests: redirects are not followed and cookies
are not kept. A server page is never requested with a token, nor on a connection that carried an
earlier answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from adapter.pipeline.exposition.limits import EXPORTER
from adapter.pipeline.sources.body import Take, decode_body, decode_parts
from adapter.pipeline.sources.errors import SourceError, connection_error
from adapter.pipeline.sources.scrape.connection import (
    PageConnection,
    StaleError,
    TlsAnswerError,
    UnansweredError,
)
from adapter.pipeline.sources.scrape.largepages import LargePages
from adapter.pipeline.sources.scrape.pageaccess import PageAccess, PageKeys
from adapter.pipeline.sources.scrape.refusal import (
    READ,
    SPEAKS_TLS,
    refusal,
    speaks_tls,
    tls_failure,
)
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from apiservice.runtime.names import lookups

_HEADERS: Final = (
    "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4\r\n"
    "Accept-Encoding: gzip\r\n"
    "User-Agent: gpu-metrics-adapter\r\n"
)

_HEAD: Final = 1 << 16
"""Bytes allowed for the head and the chunk headers in addition to the page."""
_SHORT: Final = 1 << 17
"""Bytes of a page up to which it is read in one piece, if its length is known before."""

_HANDSHAKE: Final = 0.5
"""Seconds for a TLS handshake that shows whether a server which hung up speaks TLS."""
_LOOK_UP: Final = 2.5
"""Seconds for a target's name: less than a scrape, so that its error names the cause. A later
answer is for the next scrape."""
_DROPPED: Final = 2
"""Connections without a use that are closed for each one that is kept."""


class _Address(NamedTuple):
    host: str
    port: int
    tls: bool
    request: bytes
    """The request, without its end."""


class _Ask:
    """What one page may cost.

    Args:
        namespace: of the pod whose page it is.
        limit: bytes that are kept.
        most: bytes that are read.
        lines: lines that are kept.
        take: accounts for bytes that are kept.
    """

    __slots__ = ("_left", "limit", "lines", "most", "namespace", "take")

    def __init__(
        self, namespace: str, limit: int, most: int, lines: int, take: Take | None
    ) -> None:
        self.namespace = namespace
        self.limit = self._left = limit
        self.most = most
        self.lines = lines
        self.take = take

    async def take_kept(self, size: int) -> None:
        """Account for bytes of the page, as far as they may be kept."""
        size = min(size, self._left)
        self._left -= size
        if self.take is not None and size > 0:
            await self.take(size)


class PageClient:
    """Fetches pages from targets while it is connected.

    Args:
        idle: seconds for which an unused connection is kept, at least.
        keys: the trust in certificates, and the credentials of exporters; None has none, and
            trusts the system's CAs.
        large: reads server pages beyond the limit of one page; None reads none.
    """

    def __init__(
        self, *, idle: float, keys: PageKeys | None = None, large: LargePages | None = None
    ) -> None:
        self._idle = idle
        self._large = large or LargePages()
        self._keys = keys or PageKeys(None, None, ())
        self._kept: dict[str, tuple[PageConnection, float]] = {}
        """URL -> its idle connection, and until when it is kept; the longest idle first."""
        self._connected = False

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Allow requests within the block; close every connection on exit."""
        self._connected = True
        try:
            yield
        finally:
            self._connected = False
            for url in list(self._kept):
                self.drop(url)

    async def fetch(
        self,
        target: ScrapeTarget,
        limit: int,
        take: Take | None = None,
        lines: int = EXPORTER.lines,
    ) -> bytes:
        """Return the target's page, decompressed. The caller sets the deadline.

        Args:
            limit: the largest page in bytes, after decompression. Of a server page that is larger,
                the lines of known series are returned.
            take: accounts for the bytes that are read, and may make the reader wait.
            lines: the same limit for lines.

        Raises:
            SourceError: the target did not answer, or its answer is not a page.
            CredentialError: the file of a credential or a CA cannot be read.
        """
        if not self._connected:
            raise RuntimeError("not connected: fetch within connected()")
        address = _address(target.url)
        most = self._large.largest_page(limit) if target.serves else limit
        ask = _Ask(target.namespace, limit, most, lines, take)
        sent = "" if target.serves else self._keys.authorization(target.access)
        idle = self._kept.pop(target.url, None)
        if idle is not None:
            try:
                return await self._exchange(idle[0], target, sent, ask)
            except StaleError:
                pass  # the server had closed the kept connection: retry once on a new one
        connection = await self._connect(target, address)
        return await self._exchange(connection, target, sent, ask)

    async def _exchange(
        self,
        connection: PageConnection,
        target: ScrapeTarget,
        sent: str,
        ask: _Ask,
    ) -> bytes:
        try:
            await connection.ask(_request(target, sent), ask.most + ask.most // 4 + _HEAD)
            if connection.status != 200:
                location = connection.headers.get(b"location", b"").decode("latin-1")
                body = await _read_beginning(connection)
                raise refusal(target, connection.status, location, body, sent)
            body = await self._body(connection, ask)
            if connection.spent and not target.serves and self._connected:
                self._keep(target.url, connection)
            else:
                connection.close()
        except TlsAnswerError:
            raise SourceError(SPEAKS_TLS, speaks_tls(target)) from None
        except UnansweredError as error:
            # Many servers end a plain request on a TLS port in this way.
            if not await self._answers_tls(_address(target.url)):
                raise
            raise SourceError(SPEAKS_TLS, speaks_tls(target)) from error
        except BaseException:
            connection.close()
            raise
        return body

    def _keep(self, url: str, connection: PageConnection) -> None:
        now = asyncio.get_running_loop().time()
        self.drop(url)
        self._kept[url] = connection, now + self._idle
        for _ in range(_DROPPED):  # a few at a time: closing takes longer than keeping
            oldest = next(iter(self._kept))
            if self._kept[oldest][1] > now:
                break
            self.drop(oldest)

    def drop(self, url: str) -> None:
        """Close the idle connection of a target, if there is one."""
        idle = self._kept.pop(url, None)
        if idle is not None:
            idle[0].close()

    async def _answers_tls(self, address: _Address) -> bool:
        """Return whether a port that was asked over plain HTTP takes a TLS handshake."""
        if address.tls:
            return False
        context = self._keys.context(PageAccess(insecure_skip_verify=True))
        try:
            async with asyncio.timeout(_HANDSHAKE):
                connection = await self._open(address, context)
        except OSError:  # SSLError and TimeoutError are OSErrors
            return False
        connection.close()
        return True

    async def _body(self, connection: PageConnection, ask: _Ask) -> bytes:
        encoding = connection.headers.get(b"content-encoding", b"identity").decode("latin-1")
        text = connection.headers.get(b"content-length", b"0").decode("latin-1")
        length = int(text) if text.isdigit() else 0
        chunked = b"transfer-encoding" in connection.headers
        if encoding == "identity" and not chunked and 0 < length <= min(ask.limit, _SHORT):
            if ask.take is not None:
                await ask.take(length)
            return await connection.whole()
        if ask.most == ask.limit:
            return await decode_body(connection.body(), encoding, ask.limit, length, ask.take)
        parts = decode_parts(connection.body(), encoding, ask.most, length, ask.take_kept)
        return await self._large.read(parts, ask.limit, ask.lines, ask.namespace)

    async def _connect(self, target: ScrapeTarget, address: _Address) -> PageConnection:
        context = self._keys.context(target.access) if address.tls else None
        name = target.access.server_name if address.tls else ""
        try:
            connection = await self._open(address, context, name)
        except (OSError, ssl.SSLError) as error:
            failed = tls_failure(target, error) if address.tls else None
            raise failed or connection_error(address.host, address.port, error) from error
        return connection

    async def _open(
        self, address: _Address, context: ssl.SSLContext | None, name: str = ""
    ) -> PageConnection:
        """Connect to the first address of a host that takes the connection; raises OSError."""
        loop = asyncio.get_running_loop()
        failed: OSError | None = None
        for where in await lookups().find(address.host, address.port, wait=_LOOK_UP):
            try:
                _, connection = await loop.create_connection(
                    PageConnection,
                    where,
                    address.port,
                    ssl=context,
                    server_hostname=(name or address.host) if context else None,
                )
            except ssl.SSLError:
                raise
            except OSError as error:
                failed = failed or error
            else:
                return connection
        raise failed or OSError(f"{address.host} has no address")


def _request(target: ScrapeTarget, sent: str) -> bytes:
    more = f"Authorization: {sent}\r\n" if sent else ""
    if target.serves:
        more += "Connection: close\r\n"
    return _address(target.url).request + more.encode() + b"\r\n"


async def _read_beginning(connection: PageConnection) -> bytes:
    """Return the beginning of a body that is not a page; what cannot be read is left out."""
    beginning = b""
    with suppress(SourceError):
        async for part in connection.body():
            beginning += part[:READ]
            if len(beginning) >= READ:
                break
    return beginning[:READ]


@lru_cache(maxsize=8192)
def _address(url: str) -> _Address:
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n{_HEADERS}".encode()
    )
    return _Address(parts.hostname or "", parts.port or (443 if tls else 80), tls, request)
