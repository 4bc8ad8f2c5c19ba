"""Send queries to the Prometheus HTTP API, with credentials and limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from adapter.sources.body import Take, body_parts
from adapter.sources.errors import SourceError
from adapter.sources.login.credentials import TlsClient
from adapter.sources.login.port import Anonymous, Outgoing
from adapter.sources.prometheus.engineclock import EngineClock
from adapter.sources.prometheus.options import PrometheusOptions
from adapter.sources.prometheus.refusal import refusal, without

_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""The query has its own time-out."""
_FORM: Final = "application/x-www-form-urlencoded"


class Answered(NamedTuple):
    """An answer with status 200."""

    status: int
    body: bytes
    ahead: float
    """Seconds by which the answering engine's clock is ahead of the local clock.

    Several engines behind one address have one clock each.
    """


Reading = Callable[[AsyncIterator[bytes], float], Awaitable[bytes]]
"""Reads the parts of an answer with status 200 as they arrive, and returns what remains of it.

It gets the parts, and the seconds by which the answering engine's clock is ahead.
"""


async def _whole(parts: AsyncIterator[bytes], _: float) -> bytes:
    return b"".join([part async for part in parts])


async def pausing(parts: AsyncIterator[bytes], limit: asyncio.Timeout) -> AsyncIterator[bytes]:
    """Yield the parts, and do not count the time that their reader takes as the engine's."""
    clock = asyncio.get_running_loop().time
    async for part in parts:
        due = limit.when()
        left = None if due is None else due - clock()
        limit.reschedule(None)
        yield part
        limit.reschedule(None if left is None else clock() + left)


class QueryApi:
    """Queries one engine.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(self, options: PrometheusOptions, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        base = options.url.rstrip("/") + "/api/v1/"
        self.url = base + "query"
        """The URL for queries."""
        self._series_url = base + "series"
        self._login = options.login or Anonymous()
        self._clock = EngineClock(self.url, clock)
        self._tls = TlsClient(options.ca_file, options.cert_file, options.key_file)
        self._shown: Mapping[str, str] = {}

    async def ask(
        self,
        session: aiohttp.ClientSession,
        query: str,
        take: Take | None = None,
        read: Reading = _whole,
        at: float | None = None,
    ) -> Answered:
        """Return the answer to one instant query; its status is 200.

        The session must not decompress.

        Args:
            at: epoch seconds by the engine's clock; None for now.
            take: accounts for the bytes of the answer, and may make the reader wait.
            read: reads the body, within the time-out of the query.

        Raises:
            SourceError: the engine rejected the query, or its answer is invalid.
            aiohttp.ClientError: the connection failed.
        """
        seconds = max(1, round(self._options.timeout))
        form = {"query": query, "timeout": f"{seconds}s"}
        if at is not None:
            form["time"] = f"{at:.3f}"
        request = self._request(self.url, form)
        return await self._admitted(session, request, take, read)

    async def series(
        self,
        session: aiohttp.ClientSession,
        selector: str,
        start: float,
        most: int,
        take: Take | None = None,
    ) -> Answered:
        """Return the label sets of the series that a selector matches; the status is 200.

        Args:
            start: epoch seconds; series without a sample since then are left out.
            most: series to return at most, for engines that know the parameter ``limit``.
            take: see :meth:`ask`.

        Raises:
            as :meth:`ask` does.
        """
        form = {"match[]": selector, "start": f"{start:.3f}", "limit": str(most)}
        return await self._admitted(session, self._request(self._series_url, form), take)

    async def _admitted(
        self,
        session: aiohttp.ClientSession,
        request: Outgoing,
        take: Take | None,
        read: Reading = _whole,
    ) -> Answered:
        login = self._login
        shown = await login.headers(request)
        answered = await self._send(session, request, shown, take, read)
        if answered.status == 401 and login.refused(shown):
            shown = await login.headers(request)
            answered = await self._send(session, request, shown, take, read)
        self._shown = shown
        if answered.status != 200:
            raise refusal(answered.status, without(answered.body, self._secrets(shown)))
        return answered

    def discreet(self, error: SourceError) -> SourceError:
        """Return the error without the credentials: even an answer 200 may repeat them."""
        said = str(error)
        left = without(said.encode(), self._secrets(self._shown)).decode()
        return error if left == said else SourceError(error.reason, left)

    def _secrets(self, shown: Mapping[str, str]) -> Iterator[str]:
        """Yield the texts that no log may contain; for ``Authorization`` also without the
        scheme."""
        for value in (*shown.values(), *self._options.headers.values()):
            scheme, _, rest = value.partition(" ")
            yield from (value, rest or scheme)
        yield from self._options.params.values()

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Outgoing,
        shown: Mapping[str, str],
        take: Take | None,
        read: Reading,
    ) -> Answered:
        asked = session.request(
            request.method,
            URL(request.url, encoded=True),
            data=request.body or None,
            headers={**request.headers, **shown},
            ssl=self._tls.current(),
            allow_redirects=False,
            timeout=_NO_TIMEOUT,
        )
        async with asyncio.timeout(self._options.timeout) as limit, asked as response:
            self._clock.heard(response.headers.get("Date"), response.headers.get("Age"))
            ahead = self._clock.ahead
            try:
                parts = body_parts(response, self._options.max_bytes, take)
                consume = read if response.status == 200 else _whole
                body = await consume(pausing(parts, limit), ahead)
            except SourceError:
                response.close()
                raise
            return Answered(response.status, body, ahead)

    def _request(self, url: str, own: Mapping[str, str]) -> Outgoing:
        form = {**self._options.params, **own}
        # Percent signs instead of "+", so that the signed text equals the sent text.
        text = urlencode(form, quote_via=quote, safe="")
        if self._options.method == "GET":
            return Outgoing("GET", f"{url}?{text}", {}, b"")
        return Outgoing("POST", url, {"Content-Type": _FORM}, text.encode())
