"""Send queries to the Prometheus HTTP API, with credentials and limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.pipeline.sources.body import Take, body_parts
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.login.credentials import TlsClient
from adapter.pipeline.sources.login.port import Anonymous, Outgoing
from adapter.pipeline.sources.prometheus.engineclock import EngineClock
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.refusal import refusal, withhold_secrets

_HEADERS: Final = {"User-Agent": "gpu-metrics-adapter", "Accept-Encoding": "gzip"}
_EVALUATED: Final = ("query", "query_range")
"""The paths that take the parameter ``timeout``."""
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


async def pause_limit(parts: AsyncIterator[bytes], limit: asyncio.Timeout) -> AsyncIterator[bytes]:
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
        self._base = options.url.rstrip("/") + "/api/v1/"
        self.url = self._base + "query"
        """The URL for queries."""
        self._patience = f"{max(1, round(options.timeout))}s"
        """How long the engine may evaluate a query."""
        self._login = options.login or Anonymous()
        self._clock = EngineClock(self.url, clock)
        # Here, so that a process without a store does not load httpx.
        from apiservice.runtime.httpclient import HttpClient  # noqa: PLC0415

        tls = TlsClient(options.ca_file, options.cert_file, options.key_file)
        self._http = HttpClient(tls.current, {**_HEADERS, **options.headers})
        self._shown: Mapping[str, str] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def ask(
        self,
        query: str,
        take: Take | None = None,
        read: Reading = _whole,
        at: float | None = None,
    ) -> Answered:
        """Return the answer to one instant query; its status is 200.

        Args:
            at: epoch seconds by the engine's clock; None for now.
            take: accounts for the bytes of the answer, and may make the reader wait.
            read: reads the body, within the time-out of the query.

        Raises:
            SourceError: the engine rejected the query, or its answer is invalid.
            RequestError: the connection failed.
        """
        form = {"query": query, "timeout": self._patience}
        if at is not None:
            form["time"] = f"{at:.3f}"
        return await self._send_with_login(self._request("query", form), take, read)

    async def fetch(self, path: str, form: Mapping[str, str]) -> bytes:
        """Return the answer of one path of the API; its status is 200.

        Args:
            path: below ``/api/v1/``.
            form: the parameters.

        Raises:
            as :meth:`ask` does.
        """
        limits = {"timeout": self._patience} if path in _EVALUATED else {}
        return (await self._send_with_login(self._request(path, {**form, **limits}))).body

    async def series(
        self,
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
        return await self._send_with_login(self._request("series", form), take)

    async def _send_with_login(
        self,
        request: Outgoing,
        take: Take | None = None,
        read: Reading = _whole,
    ) -> Answered:
        login = self._login
        shown = await login.headers(request)
        answered = await self._send(request, shown, take, read)
        if answered.status == 401 and login.note_refusal(shown):
            shown = await login.headers(request)
            answered = await self._send(request, shown, take, read)
        self._shown = shown
        if answered.status != 200:
            raise refusal(answered.status, withhold_secrets(answered.body, self._secrets(shown)))
        return answered

    def hide_credentials(self, error: SourceError) -> SourceError:
        """Return the error without the credentials: even an answer 200 may repeat them."""
        text = str(error)
        left = withhold_secrets(text.encode(), self._secrets(self._shown)).decode()
        return error if left == text else SourceError(error.reason, left)

    def _secrets(self, shown: Mapping[str, str]) -> Iterator[str]:
        """Yield the texts that no log may contain; for ``Authorization`` also without the
        scheme."""
        for value in (*shown.values(), *self._options.headers.values()):
            scheme, _, secret = value.partition(" ")
            yield from (value, secret or scheme)
        yield from self._options.params.values()

    async def _send(
        self,
        request: Outgoing,
        shown: Mapping[str, str],
        take: Take | None,
        read: Reading,
    ) -> Answered:
        exchange = self._http.send(
            request.method,
            request.url,
            headers={**request.headers, **shown},
            body=request.body,
        )
        async with asyncio.timeout(self._options.timeout) as limit, exchange as response:
            self._clock.note_date(response.headers.get("Date"), response.headers.get("Age"))
            ahead = self._clock.ahead
            parts = body_parts(response, self._options.max_bytes, take)
            consume = read if response.status_code == 200 else _whole
            body = await consume(pause_limit(parts, limit), ahead)
            return Answered(response.status_code, body, ahead)

    def _request(self, path: str, parameters: Mapping[str, str]) -> Outgoing:
        url = self._base + path
        form = {**self._options.params, **parameters}
        # Percent signs instead of "+", so that the signed text equals the sent text.
        text = urlencode(form, quote_via=quote, safe="")
        if self._options.method == "GET":
            return Outgoing("GET", f"{url}?{text}", {}, b"")
        return Outgoing("POST", url, {"Content-Type": _FORM}, text.encode())
