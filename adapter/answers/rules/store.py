"""Ask the store for the values of rules: each query once for all requests that need it.

An answer serves further requests for a short time. If the store fails, its last answer serves
until its values reach the age limit. No value is invented for a store that does not answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import structlog

from adapter.answers.rules import series, vector
from adapter.answers.rules.series import Shapes
from adapter.answers.rules.vector import LEFT_OUT, Vector
from adapter.pipeline.sources.byteroom import ByteRoom
from adapter.pipeline.sources.errors import SourceError, describe
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.queryapi import QueryApi
from apiservice.errors import Unavailable
from apiservice.runtime.bytecache import ByteCache, weight
from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.shares import Asker, NoPlaceError, Shares
from apiservice.runtime.steps import WaitingSteps, run_in_slices, wait_for_result
from apiservice.selfmetrics.durations import SLOW, Durations

log = structlog.get_logger(__name__)

PARALLEL: Final = 10
"""Queries in progress at once; Prometheus itself runs 20 (``--query.max-concurrency``)."""
KEPT: Final = 2
"""Of these, places for queries whose answer serves many requests: those for all objects, and the
discovery of series. They come first."""
CACHE_BYTES: Final = 64 << 20
"""Bytes of the answers that are kept."""
_LOG_EVERY: Final = 30.0
"""Seconds between two lines of the log about failures for one reason."""
_VALUE: Final = 600
"""Bytes of a value beside its texts: the record, its mapping and its numbers."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How long answers serve. Durations in seconds."""

    fresh: float
    """After a good answer."""
    oldest: float
    """The age limit of values while the store fails."""


class RuleAnswer(NamedTuple):
    """A good answer."""

    vector: Vector
    at: float
    """Epoch seconds by the local clock at which it arrived."""
    expires: float
    """Epoch seconds up to which it serves without a new query."""


class RuleStore:
    """Queries the store.

    Args:
        prometheus: how to reach it; ``max_bytes`` bounds one answer, and the others in progress
            together to a quarter of it.
        options: how long answers serve.

    Raises:
        CredentialError: at construction, if a TLS file cannot be used.
    """

    def __init__(
        self,
        prometheus: PrometheusOptions,
        options: StoreOptions,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._prometheus = prometheus
        self._options = options
        self._clock = clock
        self._api = QueryApi(prometheus, clock)
        self.places = Shares(PARALLEL, shared_only=KEPT, seconds=prometheus.timeout)
        """Those of queries in progress."""
        # One answer at a time may exceed the room.
        self._room = ByteRoom(prometheus.max_bytes // 4)
        self._decoding = asyncio.Lock()
        """One answer at a time: its parts take more memory than the answer itself."""
        self._flights: SingleFlight[str, RuleAnswer] = SingleFlight()
        self._answers: ByteCache[str, RuleAnswer] = ByteCache(
            CACHE_BYTES, ttl=options.oldest + options.fresh
        )
        self._logged: dict[str, float] = {}
        """Reason of a failure -> when it was logged last."""
        self.url = self._api.url
        self.queries = 0
        """Queries sent."""
        self.recalled = 0
        """Requests that an earlier answer served."""
        self.failures: Counter[str] = Counter()
        """Failed queries by reason."""
        self.left_out: Counter[str] = Counter(dict.fromkeys(LEFT_OUT, 0))
        """Values of answers that are left out, by reason."""
        self.durations = Durations(SLOW)
        """Durations of queries."""

    @property
    def oldest(self) -> float:
        """The age limit of values while the store fails, in seconds."""
        return self._options.oldest

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    def answer(self, query: str) -> WaitingSteps[RuleAnswer]:
        """Return the answer to a query; it may be some seconds old.

        Raises:
            Unavailable: the store failed, and no answer is young enough.
        """
        last = self._answers.get(query)
        if last is not None and last.expires > self._clock():
            self.recalled += 1
            return last
        try:
            return (
                yield from wait_for_result(
                    self._flights.ask(query, partial(self._fetch_and_keep, query))
                )
            )
        except SourceError as error:
            return self._last(query, error)

    async def fetch(self, query: str, asker: Asker | None = None) -> RuleAnswer:
        """Send a query whose answer the caller keeps.

        Args:
            query: in PromQL.
            asker: whose selector it has; None if it serves everybody. Clients may write many
                selectors.

        Raises:
            SourceError: the store failed.
        """
        places = self.places
        place = places.shared_place() if asker is None else places.place(asker)
        return await self._send_query(query, place)

    def _last(self, query: str, error: SourceError) -> RuleAnswer:
        """Return the last good answer if its values are below the age limit."""
        last, now = self._answers.get(query), self._clock()
        if last is None or now - last.at >= self._options.oldest:
            raise Unavailable(
                f"the query of the rule failed ({error.reason}): {str(error)[:300]}"
            ) from None
        return last._replace(expires=min(now + self._options.fresh, last.at + self._options.oldest))

    async def _fetch_and_keep(self, query: str) -> RuleAnswer:
        answered = await self._send_query(query, self.places.place())
        self._answers.put(query, answered, _size(query, answered.vector))
        return answered

    async def _send_query(self, query: str, place: AbstractAsyncContextManager[None]) -> RuleAnswer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with self._room.hold() as held:
                async with place, asyncio.timeout(self._prometheus.timeout):
                    self.queries += 1
                    answered = await self._api.ask(query, held.take)
                async with self._decoding:
                    decoded = await run_in_slices(vector.decode(answered.body, answered.ahead))
        except Exception as error:
            raise self._count_failure(error, query) from None
        finally:
            self.durations.observe(loop.time() - began)
        self.left_out.update(decoded.left_out)
        now = self._clock()
        return RuleAnswer(decoded, now, now + self._options.fresh)

    def _count_failure(self, error: Exception, query: str | None = None) -> SourceError:
        """Count a failure and return its error; with a query, log it too.

        No frame keeps the error in a variable: with the traceback, which keeps the frames and so
        the answer, that is a cycle.
        """
        if isinstance(error, NoPlaceError):
            cause = SourceError("busy", str(error))
        else:
            cause = self._api.hide_credentials(describe(error))
        self.failures[cause.reason] += 1
        if query is not None:
            self._log(query, cause)
        return cause

    def _log(self, query: str, cause: SourceError) -> None:
        """Log a failure, each reason once in a while: every HPA asks several times a minute."""
        now = self._clock()
        if now - self._logged.get(cause.reason, 0.0) >= _LOG_EVERY:
            self._logged[cause.reason] = now
            error, text = str(cause)[:400], query[:400]
            log.warning("query of a rule failed", reason=cause.reason, error=error, query=text)

    async def shapes(self, selector: str, start: float) -> Shapes:
        """Return the shapes of the series that a selector matches.

        Raises:
            SourceError: the store failed.
        """
        try:
            with self._room.hold() as held:
                async with (
                    self.places.shared_place(),
                    asyncio.timeout(self._prometheus.timeout * 3),
                ):
                    self.queries += 1
                    answered = await self._api.series(selector, start, series.MAX_SERIES, held.take)
                async with self._decoding:
                    return await run_in_slices(series.decode(answered.body))
        except Exception as error:
            raise self._count_failure(error) from None


def _size(query: str, decoded: Vector) -> int:
    return weight(query) + sum(_VALUE + weight(*value.labels.values()) for value in decoded.values)
