"""Asks any engine with Prometheus' query API: one query per metric group and round.

The groups of a round are asked side by side and handed over together, by exporter: a
scrape result replaces all that its exporter said before, so the samples of a group that failed this
time come from its last good answer, with the times they had then.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import aiohttp
import structlog
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from adapter.exposition.samples import Sample, ScrapeResult, Sink
from adapter.sources.errors import SourceError, describe
from adapter.sources.prometheus.answer import NO_ORIGIN, QueryAnswer, SeriesMemo, decode
from adapter.sources.prometheus.groupstate import GroupState, tell
from adapter.sources.prometheus.options import PrometheusOptions
from adapter.sources.prometheus.queryapi import QueryApi
from adapter.sources.prometheus.querygroup import QueryGroup
from apiservice.selfmetrics.durations import SLOW, Durations

__all__ = ["PrometheusOptions", "PrometheusSource"]

log = structlog.get_logger(__name__)

_RETRIED = frozenset({"connect", "timeout", "protocol", "truncated", "unavailable"})
_BIG_ANSWER = 1 << 20
"""Answers above this many bytes are read beside the event loop."""
_EMPTY = "check url, tenant and matchers, and that this engine's scrapes include the exporters"
_PARALLEL = 4
"""Queries under way at once; Prometheus itself runs 20 (``--query.max-concurrency``)."""


class PrometheusSource:
    """Feeds the sink with one scrape result per exporter and round.

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
        self._api = QueryApi(options, clock)
        self._memo = SeriesMemo()
        self._decoding = asyncio.Lock()
        self._parallel = asyncio.Semaphore(_PARALLEL)
        self._origins: set[str] = set()
        self._empty = False
        self._looked = 0.0
        """When the last round's answers were gone through."""
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
        self.durations = Durations(SLOW)
        """What a group took, retries included."""
        self.found: Final = True
        """The store is the one place to ask."""
        self.settled = False
        """A whole round has been handed over, with or without success."""

    def problem(self, now: float) -> str | None:
        """Why there is no fresh data; None when at least one group was answered lately."""
        if now - self.last_success <= 3 * self._options.interval + self._options.timeout:
            return self._nothing_in_it()
        errors = {state.last_error for state in self.groups if state.last_error}
        return f"{self._api.url}: {next(iter(errors), 'no answer yet')}"

    def _nothing_in_it(self) -> str | None:
        """Why good answers bring no samples at all, where they say so themselves."""
        if any(state.samples for state in self.groups):
            return None
        said = (state.complaint for state in self.groups)
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
        # Those that fail go last, what was asked least first: what hangs must not use up every
        # round's time before the others.
        order = sorted(self.groups, key=lambda state: (state.failures > 0, state.queries))
        answers = await asyncio.gather(*(self._ask(session, state) for state in order))
        self._memo.turn()
        tell(self.groups)
        self._tell_of_nothing()
        samples: defaultdict[str, list[Sample]] = defaultdict(list)
        rejects: Counter[str] = Counter()
        now = self._clock()
        if now < self._looked:
            # The clock was set back: what stands would pass for new until it has caught up.
            for state in order:
                state.newest = {}
        self._looked, since = now, now - self._options.lookback
        for state, answer in zip(order, answers, strict=True):
            if answer.partial:
                standing = _younger(state.newest, since)
                answer.samples = {**standing, **answer.samples}
                answer.newest = {**standing, **answer.newest}
            for origin, some in answer.samples.items():
                samples[origin].extend(some)
            answer.accept()
            rejects += answer.rejects
            state.newest = answer.newest
        await self._deliver(samples, rejects)

    def _tell_of_nothing(self) -> None:
        """GPU nodes may be scaled to zero, so it is no problem; most often it is a mistake."""
        empty = not any(state.samples or state.last_error for state in self.groups)
        if empty and not self._empty:
            log.warning("no series at all", url=self._api.url, hint=_EMPTY)
        self._empty = empty

    async def _deliver(
        self, samples: Mapping[str, list[Sample]], rejects: Mapping[str, int]
    ) -> None:
        now = self._clock()
        if rejects and not samples:
            samples = {NO_ORIGIN: []}  # so that they are counted all the same
        for origin in self._origins - samples.keys():
            self._sink.forget(origin)
        self._origins = set(samples)
        for origin, some in samples.items():
            # What could not be read has no origin: it is counted once, with the first.
            self._sink.ingest(ScrapeResult(origin, None, some, now, rejects))
            rejects = {}
            await asyncio.sleep(0)  # a thousand exporters must not hold up the answers
        self.settled = True

    async def _ask(self, session: aiohttp.ClientSession, state: GroupState) -> QueryAnswer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        budget = max(self._options.interval, self._options.timeout)
        try:
            async with asyncio.timeout(budget), self._parallel:
                answer = await self._retrying(session, state)
        except TimeoutError:  # not a try's own: those are SourceErrors, and counted
            self.failures["timeout"] += 1
            state.failed(SourceError("timeout", f"no answer within the round's {budget:g} s"))
            return QueryAnswer(partial=True)
        except Exception as error:  # whatever one group does, the others go on
            state.failed(describe(error))
            return QueryAnswer(partial=True)
        finally:
            state.duration = loop.time() - began
            self.durations.observe(state.duration)
        self.last_success = self._clock()
        self.warnings += bool(answer.warnings)
        state.succeeded(answer, self.last_success)
        return answer

    async def _retrying(self, session: aiohttp.ClientSession, state: GroupState) -> QueryAnswer:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._options.retries + 1),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(_worth_another_try),
            reraise=True,
        )
        return await attempts(self._query, session, state)

    async def _query(self, session: aiohttp.ClientSession, state: GroupState) -> QueryAnswer:
        state.queries += 1
        try:
            answered = await self._api.ask(session, state.query)
            state.size = len(answered.body)
            return await self._decoded(answered.body, state.group, answered.ahead)
        except Exception as error:
            cause = self._api.discreet(describe(error))
            self.failures[cause.reason] += 1
            raise cause from error

    async def _decoded(self, body: bytes, group: QueryGroup, ahead: float) -> QueryAnswer:
        async with self._decoding:
            if len(body) < _BIG_ANSWER:
                answer = decode(body, self._memo, group, ahead)
            else:
                answer = await asyncio.to_thread(decode, body, self._memo, group, ahead)
        if answer.partial and group.combines:
            raise SourceError("partial", _partial(answer))
        return answer


def _partial(answer: QueryAnswer) -> str:
    said = "; ".join(answer.warnings[:2])[:300] or "the engine says so"
    return f"a partial answer ({said}): what is combined of it would be wrong; repair the store"


def _groups(
    series: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> Iterator[QueryGroup]:
    for name in dict.fromkeys((*series, *queries)):
        yield QueryGroup(name, tuple(series.get(name, ())), queries.get(name))


def _younger(newest: Mapping[str, list[Sample]], since: float) -> dict[str, list[Sample]]:
    """The origins that were heard from after ``since``."""
    return {
        origin: samples
        for origin, samples in newest.items()
        if any(sample.time > since for sample in samples)
    }


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, SourceError) and error.reason in _RETRIED
