"""Asks any engine with Prometheus' query API: one query per metric group and round.

The groups of a round are asked side by side and handed over together, by exporter: a
batch replaces all that its exporter said before, so the rows of a group that failed this
time come from its last good answer, with the times they had then.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
import structlog
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from adapter.batch import Batch, Row, Sink
from adapter.sources import promql
from adapter.sources.errors import SourceError, describe
from adapter.sources.promql import Answer, QueryGroup, SeriesMemo
from adapter.sources.queryapi import PrometheusOptions, QueryApi

__all__ = ["GroupState", "PrometheusOptions", "PrometheusSource"]

log = structlog.get_logger(__name__)

_RETRIED = frozenset({"connect", "timeout", "protocol", "truncated", "unavailable"})
_BIG_ANSWER = 1 << 20
"""Answers above this many bytes are read beside the event loop."""
_UNNAMED = (
    "aggregations and functions drop __name__: keep it with by (__name__, ...) or give it with "
    'label_replace(..., "__name__", "SERIES", "", "")'
)
_PARALLEL = 4
"""Queries under way at once; Prometheus itself runs 20 (``--query.max-concurrency``)."""


@dataclass(slots=True)
class GroupState:
    """How asking for a group has gone, for metrics and doctor. Times are epoch seconds."""

    group: QueryGroup
    query: str
    queries: int = 0
    failures: int = 0
    """Failed rounds in a row."""
    last_success: float = 0.0
    last_error: str = ""
    reason: str = ""
    duration: float = 0.0
    """Seconds of the last round, retries included."""
    rows: int = 0
    """Samples of the last good answer."""
    size: int = 0
    """Bytes of the last answer, decompressed."""
    warnings: tuple[str, ...] = ()
    """What the engine had to say about the last good answer."""
    partial: bool = False
    """The last good answer lacked series that exist."""
    unnamed: int = 0
    """Series of the last good answer that did not say which metric they are of."""
    newest: Mapping[str, list[Row]] = field(default_factory=dict)
    """Origin -> newest samples of the last good answer."""


class PrometheusSource:
    """Feeds the sink with one batch per exporter and round.

    ``groups`` says which series are asked for together: group name -> series names. A
    query for a group of another name is asked too, and has to name its series itself.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(
        self,
        options: PrometheusOptions,
        sink: Sink,
        groups: Mapping[str, Sequence[str]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._sink = sink
        self._clock = clock
        self._api = QueryApi(options)
        self._memo = SeriesMemo()
        self._decoding = asyncio.Lock()
        self._parallel = asyncio.Semaphore(_PARALLEL)
        self._origins: set[str] = set()
        self.groups = [
            GroupState(group, group.promql(options.lookback, options.matchers))
            for group in _groups(groups, options.query)
        ]
        """How every group fares."""
        self.failures: Counter[str] = Counter()
        """Failed queries by reason, retried ones included."""
        self.warnings = 0
        """Answers that came with warnings."""
        self.last_success = 0.0
        """Epoch seconds of the last good answer to any group; 0 before the first."""
        self.settled = False
        """A whole round has been handed over, with or without success."""

    def problem(self, now: float) -> str | None:
        """Why there is no fresh data; None when at least one group was answered lately."""
        if now - self.last_success <= 3 * self._options.interval + self._options.timeout:
            return self._nothing_in_it()
        errors = {state.last_error for state in self.groups if state.last_error}
        return f"{self._api.url}: {next(iter(errors), 'no answer yet')}"

    def _nothing_in_it(self) -> str | None:
        """Why good answers bring no rows at all, where they say so themselves."""
        if any(state.rows for state in self.groups):
            return None
        said = [_complaint(state) for state in self.groups]
        return next((f"{self._api.url}: {text}" for text in said if text), None)

    async def run(self) -> None:
        """Ask until cancelled; then every connection is closed."""
        headers = {"User-Agent": "gpu-metrics-adapter", "Accept-Encoding": "gzip"}
        async with aiohttp.ClientSession(
            auto_decompress=False, headers=headers | dict(self._options.headers)
        ) as session:
            loop = asyncio.get_running_loop()
            while True:
                began = loop.time()
                await self._round(session)
                await asyncio.sleep(max(0.0, began + self._options.interval - loop.time()))

    async def _round(self, session: aiohttp.ClientSession) -> None:
        answers = await asyncio.gather(*(self._ask(session, state) for state in self.groups))
        self._memo.turn()
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        rejects: Counter[str] = Counter()
        since = self._clock() - self._options.lookback
        for state, answer in zip(self.groups, answers, strict=True):
            if answer.partial:
                standing = _younger(state.newest, since)
                answer.rows = {**standing, **answer.rows}
                answer.newest = {**standing, **answer.newest}
            for origin, some in answer.rows.items():
                rows[origin].extend(some)
            rejects += answer.rejects
            state.newest = answer.newest
        await self._deliver(rows, rejects)

    async def _deliver(self, rows: Mapping[str, list[Row]], rejects: Mapping[str, int]) -> None:
        now = self._clock()
        for origin in self._origins - rows.keys():
            self._sink.forget(origin)
        self._origins = set(rows)
        for origin, some in rows.items():
            # What could not be read has no origin: it is counted once, with the first.
            self._sink.ingest(Batch(origin, None, some, now, rejects))
            rejects = {}
            await asyncio.sleep(0)  # a thousand exporters must not hold up the answers
        self.settled = True

    async def _ask(self, session: aiohttp.ClientSession, state: GroupState) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        budget = max(self._options.interval, self._options.timeout)
        try:
            async with self._parallel, asyncio.timeout(budget):
                answer = await self._retrying(session, state)
        except Exception as error:  # whatever one group does, the others go on
            self._failed(state, describe(error))
            return Answer(partial=True)
        finally:
            state.duration = loop.time() - began
        self._succeeded(state, answer)
        return answer

    async def _retrying(self, session: aiohttp.ClientSession, state: GroupState) -> Answer:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._options.retries + 1),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(_worth_another_try),
            reraise=True,
        )
        return await attempts(self._query, session, state)

    async def _query(self, session: aiohttp.ClientSession, state: GroupState) -> Answer:
        state.queries += 1
        try:
            body = await self._api.ask(session, state.query)
            state.size = len(body)
            async with self._decoding:
                if len(body) < _BIG_ANSWER:
                    return promql.decode(body, self._memo, state.group)
                return await asyncio.to_thread(promql.decode, body, self._memo, state.group)
        except Exception as error:
            cause = describe(error)
            self.failures[cause.reason] += 1
            raise cause from error

    def _succeeded(self, state: GroupState, answer: Answer) -> None:
        if state.last_error:
            log.info("query answered again", group=state.group.name, after=state.failures)
        if answer.warnings:
            self.warnings += 1
        if answer.warnings != state.warnings:
            log.warning("query warnings", group=state.group.name, warnings=answer.warnings[:5])
        unnamed = answer.rejects["unnamed_series"]
        if unnamed and not state.unnamed:
            log.warning("query drops the metric's name", group=state.group.name, mend=_UNNAMED)
        state.partial, state.unnamed = answer.partial, unnamed
        state.failures, state.last_error, state.reason = 0, "", ""
        state.warnings = answer.warnings
        state.rows = sum(map(len, answer.rows.values()))
        state.last_success = self.last_success = self._clock()

    def _failed(self, state: GroupState, error: SourceError) -> None:
        if state.reason != error.reason:
            log.warning("query failed", group=state.group.name, error=str(error))
        state.failures += 1
        state.reason, state.last_error = error.reason, str(error)


def _complaint(state: GroupState) -> str:
    """What is wrong with a good answer; empty if nothing is."""
    group = state.group.name
    if state.unnamed:
        return f"query.{group}: {state.unnamed} series without a name; {_UNNAMED}"
    if state.partial:
        return f"group {group}: a partial answer: {'; '.join(state.warnings[:2])[:300]}"
    return ""


def _groups(
    series: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> Iterator[QueryGroup]:
    for name in dict.fromkeys((*series, *queries)):
        yield QueryGroup(name, tuple(series.get(name, ())), queries.get(name))


def _younger(newest: Mapping[str, list[Row]], since: float) -> dict[str, list[Row]]:
    """The origins that were heard from after ``since``."""
    return {
        origin: rows for origin, rows in newest.items() if any(row.time > since for row in rows)
    }


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, SourceError) and error.reason in _RETRIED
