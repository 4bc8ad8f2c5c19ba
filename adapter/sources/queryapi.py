"""The HTTP side of Prometheus' query API: address, credentials, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from adapter.sources import promql
from adapter.sources.body import read_body
from adapter.sources.credentials import SecretFile, TlsClient, TlsFiles
from adapter.sources.errors import SourceError


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """What to ask, where, and as whom; durations in seconds."""

    url: str
    """Base URL with the path prefix, if there is one."""
    interval: float = 15.0
    """Between two rounds; a group's retries end with it."""
    timeout: float = 10.0
    """For one query."""
    retries: int = 2
    """Tries beyond the first."""
    lookback: float = 90.0
    """How far back samples are asked for: the age limit, and at least two scrapes."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Metric group -> PromQL in place of the selector made from the group's series."""
    matchers: str = ""
    """Label matchers added to every selector."""
    username: str | None = None
    password: str | None = None
    password_file: Path | None = None
    bearer_token_file: Path | None = None
    ca_file: Path | None = None
    """CA of the server; None trusts the system's."""
    cert_file: Path | None = None
    """TLS client certificate."""
    key_file: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 256 << 20
    """Largest answer, after decompression."""


class QueryApi:
    """Asks one engine.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        self._options = options
        self.url = options.url.rstrip("/") + "/api/v1/query"
        """Where queries are posted."""
        self._tls = TlsClient(TlsFiles(options.ca_file, options.cert_file, options.key_file))
        token, password = options.bearer_token_file, options.password_file
        self._token = SecretFile(token) if token else None
        self._password = SecretFile(password) if password else None

    async def ask(self, session: aiohttp.ClientSession, query: str) -> bytes:
        """The body of the answer to one instant query.

        The session must not decompress. Raises SourceError, and what the transport raises.
        """
        async with session.post(
            self.url,
            data={"query": query, "timeout": f"{max(1, round(self._options.timeout))}s"},
            headers=self._authorization(),
            ssl=self._tls.current(),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
        ) as response:
            try:
                body = await read_body(response, self._options.max_bytes)
            except SourceError:
                response.close()
                raise
            if response.status != 200:
                raise _refusal(response.status, body)
            return body

    def _authorization(self) -> dict[str, str]:
        options = self._options
        if self._token:
            return {"Authorization": f"Bearer {self._token.read()}"}
        if options.username is None:
            return {}
        password = self._password.read() if self._password else options.password or ""
        return {"Authorization": aiohttp.encode_basic_auth(options.username, password)}


def _refusal(status: int, body: bytes) -> SourceError:
    said = promql.error_text(body)
    text = f"HTTP status {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        return SourceError("redirect", f"{text}: redirects are not followed; mend the URL")
    if status in (401, 403):
        return SourceError("denied", f"{text}; check the token, password and tenant header")
    if status == 404:
        return SourceError("status", f"{text}; check the URL's path prefix")
    if status == 429 or (status >= 500 and not said):
        return SourceError("unavailable", text)
    return SourceError("query" if said else "status", text)
