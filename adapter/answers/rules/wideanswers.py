"""Ask each rule once for all objects, in an interval, while somebody requests its metric.

Requests are answered from the last answer. What cannot be asked for all objects, or whose answer is
too large or ambiguous, is asked for each request: the caller does that.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from cachetools import LRUCache

from adapter.answers.rules.promql import ObjectKey, Widened
from adapter.answers.rules.promqltokens import NotWidenedError
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.store import RuleStore
from adapter.answers.rules.widening import wide_query, widen
from adapter.answers.rules.widevalues import (
    OBJECTS,
    SEVERAL,
    AmbiguousError,
    WideAnswer,
    fold_vector,
)
from adapter.pipeline.sources.errors import SourceError
from apiservice.errors import Unavailable
from apiservice.labels.selector import Selector
from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.shares import ASKER, Asker
from apiservice.runtime.steps import WaitingSteps, run_in_slices, wait_for_result

log = structlog.get_logger(__name__)

MAX_QUERIES: Final = 500
"""Queries for all objects that are kept current."""
MAX_SELECTORS: Final = 8
"""Metric selectors of one metric that have such a query of their own."""
KEPT_BYTES: Final = 64 << 20
"""Estimated bytes of all kept answers."""
IDLE: Final = 6
"""Intervals without a request after which a query is no longer sent; at least a minute."""
RETRY: Final = 300.0
"""Seconds after which a query for all objects that was given up is tried again."""
_SHORTEST_IDLE: Final = 60.0
_TICK: Final = 0.25
_LOG_EVERY: Final = 30.0
"""Seconds between two lines of the log for one reason."""
_PLANS: Final = 4096

OFF: Final = "off"
TEMPLATE: Final = "template"
SELECTORS: Final = "selectors"
QUERIES: Final = "queries"
MEMORY: Final = "memory"
FAILED: Final = "failed"
NARROW: Final = (OFF, TEMPLATE, SELECTORS, QUERIES, MEMORY, OBJECTS, SEVERAL, FAILED)
"""Why a request sends a query of its own."""

_STORE_FAILS: Final = frozenset({"connect", "tls", "credential", "denied", "redirect", "busy"})
"""Failures that a query for one object would have too."""


@dataclass(frozen=True, slots=True)
class WideOptions:
    """Durations in seconds."""

    enabled: bool
    interval: float
    """Between two queries for the same values."""
    oldest: float
    """The age limit of values while the store fails."""


@dataclass(slots=True)
class _Query:
    text: str
    key: ObjectKey
    metric: tuple[MetricRule, str, ObjectKey]
    asker: Asker | None
    """Who asked last, if it has a metric selector, which a client writes."""
    used: float
    """When a request needed it last, in epoch seconds like all times here."""
    sent: float = 0.0
    answer: WideAnswer | None = None
    reason: str = ""
    """Why requests send queries of their own; empty if they do not."""
    failure: str = ""
    """What the store answered last instead of values."""
    until: float = 0.0
    """When it is tried again."""


class WideAnswers:
    """The answers for all objects, kept current.

    Args:
        store: returns what answers queries.
        options: of the settings.
    """

    def __init__(
        self,
        store: Callable[[], RuleStore],
        options: WideOptions,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._idle = max(_SHORTEST_IDLE, IDLE * options.interval)
        self._plans: LRUCache[tuple[MetricRule, str, ObjectKey], Widened | str] = LRUCache(_PLANS)
        self._queries: dict[str, _Query] = {}
        self._flights: SingleFlight[str, None] = SingleFlight()
        self._logged: dict[str, float] = {}
        self.served = 0
        """Requests that were answered without a query of their own."""
        self.narrow: Counter[str] = Counter(dict.fromkeys(NARROW, 0))
        """Requests that sent or shared a query of their own, by reason."""

    @property
    def queries(self) -> int:
        """Queries that are kept current."""
        return sum(not query.reason for query in self._queries.values())

    @property
    def objects(self) -> int:
        """Values in the kept answers."""
        answers = [query.answer for query in self._queries.values() if query.answer is not None]
        return sum(len(space) for answer in answers for space in answer.spaces.values())

    def answer(
        self, rule: MetricRule, series: str, key: ObjectKey, selector: Selector
    ) -> WaitingSteps[WideAnswer | None]:
        """Return the values of all objects; None if the request must send its own query.

        Raises:
            BadQuery: PromQL cannot express the selector.
            Unavailable: the store failed, and no answer is young enough.
        """
        query = self._query(rule, series, key, selector)
        if isinstance(query, str):
            self.narrow[query] += 1
            return None
        query.used = self._clock()
        if query.asker is not None:
            query.asker = ASKER.get()
        if not query.reason and not self._is_young(query):
            yield from wait_for_result(self._flights.ask(query.text, partial(self._refresh, query)))
        if query.reason:
            self.narrow[query.reason] += 1
            return None
        if query.answer is None or self._is_too_old(query.answer):
            raise Unavailable(f"the query of {rule.name} for all objects failed: {query.failure}")
        self.served += 1
        return query.answer

    def last(
        self, rule: MetricRule, series: str, key: ObjectKey, selector: Selector
    ) -> WideAnswer | None:
        """Return the last answer if it is below the age limit: a query of a request failed."""
        query = self._query(rule, series, key, selector)
        if isinstance(query, str) or query.answer is None or self._is_too_old(query.answer):
            return None
        return query.answer

    async def run(self) -> None:
        """Keep the answers current until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for query in self._due_queries():
                    question = partial(self._refresh, query)
                    group.create_task(self._flights.ask(query.text, question))
                await asyncio.sleep(_TICK)

    def _due_queries(self) -> list[_Query]:
        """Forget the queries that nobody needs, and return those to send now."""
        now, due = self._clock(), []
        for query in list(self._queries.values()):
            if now - query.used >= self._idle:
                del self._queries[query.text]
            elif now >= (query.until if query.reason else query.sent + self._options.interval):
                query.sent, query.until = now, now + RETRY
                due.append(query)
        return due

    def _is_too_old(self, answer: WideAnswer) -> bool:
        return self._clock() - answer.at >= self._options.oldest

    def _is_young(self, query: _Query) -> bool:
        """Return whether the answer serves while the next one is on its way."""
        now, interval = self._clock(), self._options.interval
        if query.answer is None or self._is_too_old(query.answer):
            return False
        return now - query.answer.at < 2 * interval or now - query.sent < interval

    def _query(
        self, rule: MetricRule, series: str, key: ObjectKey, selector: Selector
    ) -> _Query | str:
        """Return the query for all objects, or why there is none."""
        if not self._options.enabled:
            return OFF
        metric = (rule, series, key)
        plan = self._plan(metric)
        if isinstance(plan, str):
            return TEMPLATE
        text = wide_query(plan, key, selector)
        existing = self._queries.get(text)
        if existing is not None:
            return existing
        if len(self._queries) >= MAX_QUERIES:
            return QUERIES
        same = sum(query.metric == metric for query in self._queries.values())
        if not selector.empty and same >= MAX_SELECTORS:
            return SELECTORS
        asker = None if selector.empty else ASKER.get()
        made = self._queries[text] = _Query(text, key, metric, asker, self._clock())
        return made

    def _plan(self, metric: tuple[MetricRule, str, ObjectKey]) -> Widened | str:
        plan = self._plans.get(metric)
        if plan is None:
            try:
                plan = widen(*metric)
            except NotWidenedError as error:
                plan = str(error)
            self._plans[metric] = plan
        return plan

    async def _refresh(self, query: _Query) -> None:
        query.sent = self._clock()
        try:
            fetched = await self._store().fetch(query.text, query.asker)
            answer = await run_in_slices(
                fold_vector(
                    fetched.vector, query.key, fetched.at, fetched.at + self._options.interval
                )
            )
        except AmbiguousError as error:
            self._give_up(query, error.reason, "")
            return
        except SourceError as error:
            query.failure = f"({error.reason}): {str(error)[:300]}"
            # Where a client's selector gets no place, each request has the place of its namespace.
            asker_busy = error.reason == "busy" and query.asker is not None
            if asker_busy or error.reason not in _STORE_FAILS:
                self._give_up(query, FAILED, query.failure)
            return
        others = (other.answer for other in self._queries.values() if other is not query)
        if answer.size + sum(other.size for other in others if other) > KEPT_BYTES:
            self._give_up(query, MEMORY, "")
            return
        query.answer, query.reason = answer, ""

    def _give_up(self, query: _Query, reason: str, error: str) -> None:
        """Let requests send their own queries for a while."""
        if reason != FAILED:
            query.answer = None
        query.reason, now = reason, self._clock()
        query.until = now + RETRY
        if now - self._logged.get(reason, -RETRY) >= _LOG_EVERY:
            self._logged[reason] = now
            log.warning(
                "a rule is asked for each request",
                rule=query.metric[0].name,
                reason=reason,
                error=error,
                query=query.text[:400],
                hint=f"tried again after {RETRY:.0f} s; rules.widen turns such queries off",
            )
