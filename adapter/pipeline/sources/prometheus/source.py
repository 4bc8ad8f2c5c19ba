"""Query an engine with the Prometheus query API: one query per metric group and round.

The groups of a round are queried concurrently and handed over together, by exporter. A scrape
result replaces all earlier samples of its exporter. So if a group fails, the samples of its last
good answer are used, with their own times.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from typing import Final

import structlog

from adapter.pipeline.exposition.samples import ScrapeResult, Sink
from adapter.pipeline.sources.errors import SourceError, describe
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from adapter.pipeline.sources.prometheus.groupstate import GroupState, log_changes
from adapter.pipeline.sources.prometheus.labelsets import NO_ORIGIN, SeriesMemo
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.queryapi import QueryApi, pause_limit
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import AnswerReader
from adapter.pipeline.sources.prometheus.retries import attempts
from adapter.pipeline.sources.prometheus.storedpages import StoredPages
from apiservice.runtime.steps import Steps
from apiservice.runtime.turns import Turns
from apiservice.selfmetrics.durations import SLOW, Durations

log = structlog.get_logger(__name__)

_EMPTY = "check url, tenant and matchers, and that this engine's scrapes include the exporters"
_PARALLEL = 4
"""Queries in progress at once; Prometheus itself runs 20 (``--query.max-concurrency``)."""


class PrometheusSource:
    """Passes one scrape result per exporter and round to the sink.

    ``groups`` is group name -> series names that are queried together. If the settings have a query
    for a group of another name, it is sent too, and its answer must name the series.

    Args:
        wanted: the series that are queried now; it may change. None queries all.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(
        self,
        options: PrometheusOptions,
        sink: Sink,
        groups: Mapping[str, Sequence[str]],
        *,
        wanted: Container[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._wanted = wanted
        self._sink = sink
        self._clock = clock
        self._api = QueryApi(options, clock)
        self._memo = SeriesMemo()
        self._pages = StoredPages()
        self._turns = Turns()
        self._parallel = asyncio.Semaphore(_PARALLEL)
        self._origins: set[str] = set()
        self._empty = False
        self._looked = 0.0
        """When the answers of the last round were processed."""
        self._every = [
            QueryGroup(name, tuple(groups.get(name, ())), options.query.get(name))
            for name in dict.fromkeys((*groups, *options.query))
        ]
        self._states: dict[str, GroupState] = {}
        self.groups: list[GroupState] = []
        """The state of every group that is queried now."""
        self._choose()
        self.failures: Counter[str] = Counter()
        """Failed queries by reason, including retried ones."""
        self.warnings = 0
        """Answers with warnings."""
        self.last_success = 0.0
        """Epoch seconds of the last good answer to any group; 0 before the first."""
        self.durations = Durations(SLOW)
        """Durations of the groups' queries, retries included."""
        self.found: Final = True
        """The store is the only place to query."""
        self.only_servers: Final = False
        self.settled = False
        """Set when a round has been handed over, with or without success."""

    def problem(self, now: float) -> str | None:
        """Return why there is no fresh data, or None if at least one group has a recent answer."""
        if now - self.last_success <= 3 * self._options.interval + self._options.timeout:
            return self._explain_empty()
        errors = {state.last_error for state in self.groups if state.last_error}
        return f"{self._api.url}: {next(iter(errors), 'no answer yet')}"

    def _explain_empty(self) -> str | None:
        """Return why good answers contain no samples, if they show the reason."""
        if any(state.samples for state in self.groups):
            return None
        complaints = (state.complaint for state in self.groups)
        return next((f"{self._api.url}: {text}" for text in complaints if text), None)

    async def run(self) -> None:
        """Query until cancelled, then close every connection."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                await self._round()
                await asyncio.sleep(max(0.0, began + self._options.interval - loop.time()))
        finally:
            await self._api.close()

    async def _round(self) -> None:
        # Groups that fail go last, and those queried longest ago go first, so that a query that
        # hangs does not use up the time of the others in every round.
        self._choose()
        order = sorted(self.groups, key=lambda state: (state.failures > 0, state.queries))
        answers = await asyncio.gather(*(self._ask(state) for state in order))
        self._memo.turn()
        log_changes(self.groups)
        self._log_empty()
        now = self._clock()
        if now < self._looked:
            # The clock was set back: kept samples would count as new until it catches up.
            for state in order:
                state.last = None
        self._looked, since = now, now - self._options.lookback
        for state, answer in zip(order, answers, strict=True):
            if answer.partial and state.last is not None:
                await self._turns.run(answer.complete(state.last, since))
            state.last = answer
            await self._turns.run(answer.accept())
        await self._deliver([state.last for state in self.groups if state.last is not None])

    def _choose(self) -> None:
        """Choose the groups with a wanted series, and write their queries."""
        self.groups = []
        for whole in self._every:
            group = whole if self._wanted is None else whole.narrow_to(self._wanted)
            if group.query is None and not group.series:
                self._states.pop(whole.name, None)
                continue
            state = self._states.get(whole.name)
            if state is None or state.group.series != group.series:
                query = group.promql(self._options.lookback, self._options.matchers)
                state = self._states[whole.name] = GroupState(group, query)
            self.groups.append(state)

    def _log_empty(self) -> None:
        """Log an answer without series. GPU nodes may be scaled to zero, so this is not a
        problem."""
        empty = not any(state.samples or state.last_error for state in self.groups)
        if empty and not self._empty:
            log.warning("no series at all", url=self._api.url, hint=_EMPTY)
        self._empty = empty

    async def _deliver(self, answers: Sequence[QueryAnswer]) -> None:
        """Hand over the samples, one exporter after another."""
        now = self._clock()
        rejects: Counter[str] = Counter()
        for answer in answers:
            rejects += answer.rejects
        origins = dict.fromkeys(origin for answer in answers for origin in answer.origins)
        if rejects and not origins:
            origins = {NO_ORIGIN: None}  # so that rejects are counted without samples
        for origin in self._origins - origins.keys():
            self._sink.forget(origin)
            self._pages.forget(origin)
        self._origins = set(origins)
        for origin in origins:
            await self._turns.run(self._hand_over(origin, answers, now, rejects))
            # Series that could not be read have no origin: count them once, with the first result.
            rejects = Counter()
        for answer in answers:
            answer.forget_earlier()
        self.settled = True

    def _hand_over(
        self, origin: str, answers: Sequence[QueryAnswer], now: float, rejects: Counter[str]
    ) -> Steps[None]:
        samples = yield from self._pages.of(origin, answers)
        yield from self._sink.steps(ScrapeResult(origin, None, samples, now, rejects))

    async def _ask(self, state: GroupState) -> QueryAnswer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        budget = max(self._options.interval, self._options.timeout)
        try:
            async with asyncio.timeout(budget) as limit, self._parallel:
                answer = await self._query_with_retries(state, limit)
        except TimeoutError:  # of the round: the timeout of a single try is a SourceError
            self.failures["timeout"] += 1
            state.note_failure(SourceError("timeout", f"no answer within the round's {budget:g} s"))
            return QueryAnswer(partial=True)
        except Exception as error:  # one group must not end the others
            state.note_failure(describe(error))
            return QueryAnswer(partial=True)
        finally:
            self.durations.observe(loop.time() - began)
        self.last_success = self._clock()
        self.warnings += bool(answer.warnings)
        state.note_success(answer, self.last_success)
        return answer

    async def _query_with_retries(self, state: GroupState, limit: asyncio.Timeout) -> QueryAnswer:
        return await attempts(self._options.retries)(self._query, state, limit)

    async def _query(self, state: GroupState, limit: asyncio.Timeout) -> QueryAnswer:
        state.queries += 1
        read: list[QueryAnswer] = []

        async def read_answer(parts: AsyncIterator[bytes], ahead: float) -> bytes:
            reader = AnswerReader(self._memo, state.group, ahead)
            async for part in pause_limit(parts, limit):
                await self._turns.run(reader.feed(part))
            read.append(await self._turns.run(reader.finish()))
            return b""

        try:
            await self._api.ask(state.query, read=read_answer)
            return _check_whole(read[0], state.group)
        except Exception as error:
            raise self._count_failure(error) from None

    def _count_failure(self, error: Exception) -> SourceError:
        """Count a failure, and return its error. No frame of its traceback keeps it."""
        cause = self._api.hide_credentials(describe(error))
        self.failures[cause.reason] += 1
        return cause


def _check_whole(answer: QueryAnswer, group: QueryGroup) -> QueryAnswer:
    """Return the answer; raise SourceError for values aggregated from a part of the series."""
    if answer.partial and group.combines:
        reason = "; ".join(answer.warnings[:2])[:300] or "reported by the engine"
        raise SourceError(
            "partial",
            f"a partial answer ({reason}): values aggregated from it would be wrong; repair the "
            "store",
        )
    return answer
