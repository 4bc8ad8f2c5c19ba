"""Query a Log Analytics workspace for Container Insights' GPU records, with Azure's library."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final

import aiohttp
import structlog

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.uids import PodUids
from adapter.pipeline.exposition.samples import ScrapeResult, Sink
from adapter.pipeline.sources.azure import insights
from adapter.pipeline.sources.azure.insights import (
    Usage,
    UsageMemo,
    describe_query_error,
    retry_after,
)
from adapter.pipeline.sources.azure.options import AzureLogsOptions
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.login.credentials import TlsClient
from adapter.pipeline.sources.login.port import import_library
from adapter.pipeline.sources.login.tokens import CachedToken
from apiservice.runtime.connector import Connector
from apiservice.runtime.turns import Turns
from apiservice.selfmetrics.durations import SLOW, Durations

log = structlog.get_logger(__name__)

_MOST_BYTES: Final = 128 << 20
"""Bytes of an answer, after decompression: more than Azure Monitor returns."""
_ENDED: Final = (
    "AKS does not write containerGpuDutyCycle from Kubernetes 1.25 on; run dcgm-exporter, and use "
    "source.kind scrape, or prometheus with auth.kind azure"
)


class _Answer(aiohttp.ClientResponse):
    """An answer that is bounded. Azure's library would decompress one of any size in one piece."""

    async def read(self) -> bytes:
        """Return the body, decompressed; raises ClientPayloadError beyond the bound."""
        if self._body is None:
            body = bytearray()
            async for chunk in self.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > _MOST_BYTES:
                    self.close()
                    raise aiohttp.ClientPayloadError(f"the answer has over {_MOST_BYTES} bytes")
            self._body = bytes(body)
        return self._body


class AzureLogsSource:
    """Passes one scrape result per node and round to the sink.

    Raises:
        CredentialError: at construction, if the extra ``azure`` is not installed, or if the CA
            file cannot be used.
    """

    def __init__(
        self,
        options: AzureLogsOptions,
        sink: Sink,
        index: PodIndex,
        tokens: CachedToken,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._sink = sink
        self._index = index
        self._tokens = tokens
        self._credential = _Credential(tokens, import_library("azure.core.credentials", "azure"))
        self._library = import_library("azure.monitor.query.aio", "azure")
        self._transport = import_library("azure.core.pipeline.transport", "azure").AioHttpTransport
        self._errors = import_library("azure.core.exceptions", "azure")
        self._tls = TlsClient(options.ca_file)
        self._clock = clock
        self._memo = UsageMemo()
        self._turns = Turns()
        self._origins: set[str] = set()
        self._not_before = 0.0
        self._reason = ""
        self.queries = 0
        self.failures: Counter[str] = Counter()
        """Failed queries by reason."""
        self.partial = False
        """Whether the last good answer was partial."""
        self.last_success = 0.0
        """Epoch seconds of the last good answer; 0 before the first."""
        self.last_error = ""
        self.usage: Usage | None = None
        """The content of the last good answer."""
        self.durations = Durations(SLOW)
        """Durations of the rounds."""
        self.found: Final = True
        """The workspace is the only place to query."""
        self.only_servers: Final = False
        self.settled = False
        """Set when a round ends, with or without success."""

    def problem(self, now: float) -> str | None:
        """Return why there is no fresh data, or None if there are recent samples."""
        where = f"workspace {self._options.workspace}"
        if now - self.last_success > 3 * self._options.interval + self._options.timeout:
            return f"{where}: {self.last_error or 'no answer yet'}"
        usage = self.usage
        if usage is None or usage.samples:
            return None
        if not usage.total:
            return f"{where}: no GPU usage in the last {self._options.lookback:.0f} s; {_ENDED}"
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(usage.rejects.items()))
        return f"{where}: {usage.total} records, none about a pod of this cluster ({reasons})"

    async def run(self) -> None:
        """Query until cancelled, then close every connection."""
        pods = PodUids(self._index)
        try:
            while True:
                await self._round(pods)
                now = self._clock()
                wait = max(self._options.interval, self._not_before - now)
                await asyncio.sleep(wait)
        finally:
            pods.close()

    def _client(self) -> Any:
        """Return a client for one round: the next one reads a new CA."""
        session = aiohttp.ClientSession(
            connector=Connector(ssl=self._tls.current()),
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_Answer,
            trust_env=True,
        )
        return self._library.LogsQueryClient(
            self._credential,
            endpoint=self._options.endpoint,
            transport=self._transport(session=session),
            # Azure's own retries would sleep within a round for as long as the server asks.
            retry_total=0,
            permit_redirects=False,
        )

    async def _round(self, pods: PodUids) -> None:
        self.queries += 1
        started = perf_counter()
        try:
            async with asyncio.timeout(self._options.timeout), self._client() as client:
                usage, loss = await self._ask_with_token(client, pods)
        except Exception as error:  # one bad round must not end the source
            self._note_failure(describe_query_error(error, self._errors))
            self._not_before = self._clock() + retry_after(error)
        else:
            self._not_before = 0.0  # else a clock that is set back would extend the wait
            self._note_success(usage, loss)
            await self._deliver(usage)
        self.durations.observe(perf_counter() - started)
        self.settled = True

    async def _ask_with_token(self, client: Any, pods: PodUids) -> tuple[Usage, str]:
        """Query the workspace; try once more with a new token if it rejects the current one."""
        shown = (await self._tokens.current()).text
        try:
            return await self._ask(client, pods)
        except self._errors.HttpResponseError as error:
            if error.status_code != 401 or not self._tokens.note_refusal(shown):
                raise
        return await self._ask(client, pods)

    async def _ask(self, client: Any, pods: PodUids) -> tuple[Usage, str]:
        options = self._options
        result = await client.query_workspace(
            options.workspace,
            insights.kusto(options.cluster),
            timespan=datetime.timedelta(seconds=options.lookback),
            server_timeout=max(1, round(options.timeout)),
        )
        loss = getattr(result, "partial_error", None)
        tables = result.partial_data if loss is not None else result.tables
        if not tables:
            raise SourceError("columns", "the answer has no table")
        table = tables[0]
        usage = insights.read(table.columns, table.rows, pods, self._memo)
        return usage, f"{loss.code}: {loss.message}"[:300] if loss is not None else ""

    async def _deliver(self, usage: Usage) -> None:
        now = self._clock()
        rejects: Mapping[str, int] = usage.rejects
        origins = {f"azure_logs/{node}" for node in usage.samples}
        if not self.partial:
            for origin in self._origins - origins:
                self._sink.forget(origin)
            self._origins = set()
        self._origins |= origins
        for node, samples in usage.samples.items():
            result = ScrapeResult(f"azure_logs/{node}", node, samples, now, rejects)
            await self._turns.run(self._sink.steps(result))
            rejects = {}  # what named no pod has no node: it is counted once
        if rejects:
            result = ScrapeResult("azure_logs", None, [], now, rejects)
            await self._turns.run(self._sink.steps(result))

    def _note_success(self, usage: Usage, loss: str) -> None:
        if self.last_error:
            log.info("workspace answered again", workspace=self._options.workspace)
        if loss and not self.partial:
            log.warning("partial answer", workspace=self._options.workspace, error=loss)
        if not usage.total and (self.usage is None or self.usage.total):
            log.warning("no GPU records", workspace=self._options.workspace, hint=_ENDED)
        self.usage, self.partial = usage, bool(loss)
        self._reason = self.last_error = ""
        self.last_success = self._clock()

    def _note_failure(self, error: SourceError) -> None:
        self.failures[error.reason] += 1
        if error.reason != self._reason:
            log.warning("query failed", workspace=self._options.workspace, error=str(error))
        self._reason, self.last_error = error.reason, str(error)


class _Credential:
    """Our tokens, in the interface of Azure's library (``AsyncTokenCredential``)."""

    def __init__(self, tokens: CachedToken, library: Any) -> None:
        self._tokens = tokens
        self._library = library

    async def get_token(self, *_: str, **__: Any) -> Any:
        """Return the current token; raises CredentialError."""
        token = await self._tokens.current()
        return self._library.AccessToken(token.text, int(token.expires))

    async def close(self) -> None:
        """There is nothing to close."""

    async def __aenter__(self) -> _Credential:
        return self

    async def __aexit__(self, *_: object) -> None:
        return
