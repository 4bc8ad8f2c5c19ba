"""Send requests with httpx, over connections of aiohttp.

httpx's own transport parses HTTP in Python, and takes a fifth more of a round of queries; the
figures are in docs/decisions/0012. Redirects are not followed, because credentials would go where
the server chooses. No cookie is kept, and no proxy or ``.netrc`` of the environment is used.
Answers are not decompressed: a reader bounds what it decompresses. Importing httpx takes 5 MB.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import aiohttp
import httpx
from yarl import URL

from apiservice.runtime.connector import Connector
from apiservice.runtime.requesterror import failure_of

_CHUNK: Final = 1 << 18
"""Bytes of a part of an answer, at most. A reader pays for each part."""

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


class HttpClient:
    """Sends requests, and keeps connections for further ones.

    Args:
        tls: returns the TLS context for new connections, another one when its files have changed;
            raises OSError or ValueError if they cannot be used.
        headers: of every request.
        connect: seconds for a connection and its TLS handshake; None for no bound of its own.
        connections: at most so many at once.
        idle: seconds for which a connection without a request is kept.
    """

    def __init__(
        self,
        tls: Callable[[], ssl.SSLContext],
        headers: Mapping[str, str],
        *,
        connect: float | None = None,
        connections: int = 100,
        idle: float = 15.0,
    ) -> None:
        self._headers = _encode_headers(headers)
        self._client = httpx.AsyncClient(
            transport=_Transport(tls, connections, idle),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(None, connect=connect),
            trust_env=False,
        )

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes = b"",
        server_name: str = "",
    ) -> AsyncIterator[httpx.Response]:
        """Yield the answer, whose body is not read yet; leaving the block ends the request.

        aiohttp repeats a GET once if the server closed the kept connection meanwhile.

        Args:
            url: encoded; it is sent as it is.
            server_name: the name that the certificate must have; empty for the host of the URL.

        Raises:
            RequestError: there was no answer, or the block read one that is not complete.
            OSError, ValueError: of ``tls``.
        """
        try:
            # The client would make the request in five times the time, to merge its own defaults.
            request = httpx.Request(
                method,
                url,
                headers=[*self._headers, *_encode_headers(headers)],
                content=body or None,
                extensions={_SERVER_NAME: server_name} if server_name else None,
            )
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise failure_of(error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _encode_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers in UTF-8, as aiohttp writes them: httpx takes ASCII only."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name.encode(), value.encode()) for name, value in pairs]


_SERVER_NAME: Final = "sni_hostname"
"""As httpx's own transport calls it."""


class _Transport(httpx.AsyncBaseTransport):
    """Implements httpx's port with aiohttp.

    httpx-aiohttp 0.2.0 has one too. It writes URLs in another spelling, for which the signature of
    AWS is not valid; it joins headers of one name; and a TLS context is for its whole life.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext], connections: int, idle: float) -> None:
        self._tls = tls
        self._connections = connections
        self._idle = idle
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connect, headers = request.extensions["timeout"]["connect"], request.headers.raw
        try:
            response = await self._open().request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=[(name.decode(), value.decode()) for name, value in headers],
                data=request.content or None,
                ssl=self._tls(),
                server_hostname=request.extensions.get(_SERVER_NAME),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=connect),
                allow_redirects=False,
            )
        except aiohttp.ClientError as error:
            raise failure_of(error) from error
        return httpx.Response(
            response.status, headers=response.raw_headers, stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:  # within an event loop, as aiohttp demands
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=self._connections, keepalive_timeout=self._idle),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


class _Body(httpx.AsyncByteStream):
    """The body of an answer."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_chunked(_CHUNK):
                yield chunk
        except aiohttp.ClientError as error:
            raise failure_of(error) from error

    async def aclose(self) -> None:
        # The connection of a body that is not read to its end is closed.
        self._response.release()
