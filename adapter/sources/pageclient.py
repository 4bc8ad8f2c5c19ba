"""Fetches pages over kept connections.

aiohttp rather than httpx: 0.23 against 2.9 ms of CPU for a page of 36 KB over a kept connection
(one core, uvloop), which at 1,250 exporters every 5 s is 6 % of a core against 72 %.

Whoever serves a page decides nothing about what is asked next: no redirect is followed, no
cookie is kept, and a page of a pod's own is never asked for with a token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from adapter.sources.body import read_body
from adapter.sources.credentials import SecretFile, TlsClient, TlsFiles
from adapter.sources.errors import SourceError
from adapter.sources.target import Target

_HEADERS: Final = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4",
    "Accept-Encoding": "gzip",
    "User-Agent": "gpu-metrics-adapter",
}


class PageClient:
    """Asks targets for their pages while it is connected.

    Args:
        timeout: seconds for one page as a whole.
        max_bytes: the largest page, after decompression.
        idle: seconds that an unused connection is kept.
        ca_file: CA of HTTPS targets; None trusts the system's.
        token_file: sent to exporters.

    Raises:
        CredentialError: the CA file cannot be used.
    """

    def __init__(
        self,
        *,
        timeout: float,
        max_bytes: int,
        idle: float,
        ca_file: Path | None = None,
        token_file: Path | None = None,
    ) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._max_bytes = max_bytes
        self._idle = idle
        self._tls = TlsClient(TlsFiles(ca_file))
        self._token = SecretFile(token_file) if token_file else None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """May ask; on leaving every connection is closed."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=self._idle),
            auto_decompress=False,
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as self._session:
            yield

    async def fetch(self, target: Target) -> bytes:
        """The target's page, decompressed.

        Raises:
            SourceError: it answered with something else.
            CredentialError: the token's file cannot be read.
            aiohttp.ClientError, OSError: it did not answer.
        """
        if self._session is None:
            raise RuntimeError("not connected: fetch within connected()")
        token = None if target.serves else self._token
        async with self._session.get(
            target.url,
            headers={"Authorization": f"Bearer {token.read()}"} if token else None,
            ssl=self._tls.current(),
            allow_redirects=False,
            timeout=self._timeout,
        ) as response:
            if 300 <= response.status < 400:
                raise SourceError("redirect", f"{response.status}: redirects are not followed")
            if response.status != 200:
                raise SourceError("status", f"HTTP status {response.status}")
            try:
                return await read_body(response, self._max_bytes)
            except SourceError:
                response.close()
                raise
