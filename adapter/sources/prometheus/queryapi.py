"""The HTTP side of Prometheus' query API: address, credentials, limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from adapter.sources.body import read_body
from adapter.sources.errors import SourceError
from adapter.sources.login.credentials import TlsClient, TlsFiles
from adapter.sources.login.port import Anonymous, Outgoing
from adapter.sources.prometheus.engineclock import EngineClock
from adapter.sources.prometheus.options import PrometheusOptions
from adapter.sources.prometheus.refusal import refusal, without

_FORM: Final = "application/x-www-form-urlencoded"


class Answered(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    ahead: float
    """Seconds that the clock of who answered is ahead of ours: of several behind one address,
    each has its own."""


class QueryApi:
    """Asks one engine.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(self, options: PrometheusOptions, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        self.url = options.url.rstrip("/") + "/api/v1/query"
        """Where queries are posted."""
        self._login = options.login or Anonymous()
        self._clock = EngineClock(self.url, clock)
        self._tls = TlsClient(TlsFiles(options.ca_file, options.cert_file, options.key_file))
        self._shown: Mapping[str, str] = {}

    async def ask(self, session: aiohttp.ClientSession, query: str) -> Answered:
        """The answer to one instant query; its status is 200.

        The session must not decompress. Raises SourceError, and what the transport raises.
        """
        request, login = self._request(query), self._login
        shown = await login.headers(request)
        answered = await self._send(session, request, shown)
        if answered.status == 401 and login.refused(shown):
            shown = await login.headers(request)
            answered = await self._send(session, request, shown)
        self._shown = shown
        if answered.status != 200:
            raise refusal(answered.status, without(answered.body, self._secrets(shown)))
        return answered

    def discreet(self, error: SourceError) -> SourceError:
        """The error without what was shown: even an answer 200 may be one that repeats it."""
        said = str(error)
        left = without(said.encode(), self._secrets(self._shown)).decode()
        return error if left == said else SourceError(error.reason, left)

    def _secrets(self, shown: Mapping[str, str]) -> Iterator[str]:
        """Texts that no log may repeat: of an ``Authorization`` also what follows its scheme."""
        for value in (*shown.values(), *self._options.headers.values()):
            scheme, _, rest = value.partition(" ")
            yield from (value, rest or scheme)
        yield from self._options.params.values()

    async def _send(
        self, session: aiohttp.ClientSession, request: Outgoing, shown: Mapping[str, str]
    ) -> Answered:
        async with session.request(
            request.method,
            URL(request.url, encoded=True),
            data=request.body or None,
            headers={**request.headers, **shown},
            ssl=self._tls.current(),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
        ) as response:
            self._clock.heard(response.headers.get("Date"), response.headers.get("Age"))
            ahead = self._clock.ahead
            try:
                body = await read_body(response, self._options.max_bytes)
            except SourceError:
                response.close()
                raise
            return Answered(response.status, body, ahead)

    def _request(self, query: str) -> Outgoing:
        seconds = max(1, round(self._options.timeout))
        form = {**self._options.params, "query": query, "timeout": f"{seconds}s"}
        # Percent signs rather than "+": what is signed is then what is sent.
        text = urlencode(form, quote_via=quote, safe="")
        if self._options.method == "GET":
            return Outgoing("GET", f"{self.url}?{text}", {}, b"")
        return Outgoing("POST", self.url, {"Content-Type": _FORM}, text.encode())
