"""The routes that serve metric values: one endpoint per API group.

A request line is parsed once, when it is first admitted. After that it costs a dictionary lookup,
and the answer costs another until the provider's data changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter, thread_time
from typing import Final, NamedTuple

from apiservice.identity import Attributes
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider
from apiservice.runtime.bytecache import ENTRY, ByteCache, weight
from apiservice.runtime.steps import Unfinished, WaitingSteps, run_in_slices
from apiservice.selfmetrics.durations import Durations
from apiservice.wire.answers import Key, Prepared, PreparedAnswers
from apiservice.wire.metricvalues import external_metric_value_list, metric_value_list
from apiservice.wire.routes import ResourcePath, custom_query, external_query

_ROUTE = 2048 - ENTRY
"""Bytes of a route beside its texts and selectors: the query, two functions and what they hold
(1,830 by tracemalloc on CPython 3.11, rounded up)."""

_SLICES: Final = 12
"""Slices of work (24 ms) that an answer may take before it counts as large."""

Source = Callable[[float], WaitingSteps[tuple[float, bytes]]]
"""Asks the provider as of ``now``. Returns when the values expire, and the list of them."""


class Asked(NamedTuple):
    """A parsed request."""

    key: Key
    version: Callable[[], int]
    """The provider's version."""
    source: Source
    answers: PreparedAnswers

    def recall(self, now: float) -> Prepared | None:
        """Return the prepared answer if it is still valid."""
        return self.answers.get(self.key, self.version(), now)

    async def prepare(self, now: float, slices: int | None = None) -> Prepared:
        """Prepare the answer as of ``now``.

        Raises:
            ApiError: raised by the provider.
            Unfinished: the answer takes more than ``slices``.
        """
        version = self.version()
        # What counts is the work: a busy machine makes no small answer a large one.
        clock = perf_counter if slices is None else thread_time
        expires, body = await run_in_slices(self.source(now), clock=clock, slices=slices)
        return self.answers.put(self.key, version, expires, body)

    async def fresh(self, clock: Callable[[], float]) -> Prepared:
        """Return the prepared answer if it is still valid, else prepare it."""
        now = clock()
        return self.recall(now) or await self.prepare(now)

    async def soon(self, now: float) -> Prepared | None:
        """Return the answer, or None if it takes long to prepare."""
        prepared = self.recall(now)
        if prepared is not None:
            return prepared
        try:
            return await self.prepare(now, _SLICES)
        except Unfinished:
            return None


class Endpoint:
    """The routes below one API group's versions."""

    def __init__(
        self,
        label: str,
        snapshot: Callable[[], int],
        open_source: Callable[[ResourcePath, Mapping[str, str]], tuple[Source, int]],
    ) -> None:
        self.label = label
        """The route under which its requests are counted."""
        self._snapshot = snapshot
        self._open = open_source
        self._answers = PreparedAnswers()

    def route(
        self, key: Key, where: ResourcePath, parameters: Mapping[str, str]
    ) -> tuple[Asked, int]:
        """Parse a request. Raise an ApiError if this group does not serve it.

        Returns:
            What answers the request, and the bytes of its selectors.
        """
        source, size = self._open(where, parameters)
        return Asked(key, self._snapshot, source, self._answers), size


def custom_endpoint(provider: CustomMetricsProvider) -> Endpoint:
    """Return the endpoint of ``custom.metrics.k8s.io``."""

    def open_source(where: ResourcePath, parameters: Mapping[str, str]) -> tuple[Source, int]:
        query = custom_query(where.parts, parameters)

        def source(now: float) -> WaitingSteps[tuple[float, bytes]]:
            answer = yield from provider.values(query, now)
            body = yield from metric_value_list(where.version, answer.items, query.metric_selector)
            return answer.expires, body

        return source, query.object_selector.bytes + query.metric_selector.bytes

    return Endpoint("custom", lambda: provider.version, open_source)


def external_endpoint(provider: ExternalMetricsProvider) -> Endpoint:
    """Return the endpoint of ``external.metrics.k8s.io``."""

    def open_source(where: ResourcePath, parameters: Mapping[str, str]) -> tuple[Source, int]:
        query = external_query(where.parts, parameters)

        def source(now: float) -> WaitingSteps[tuple[float, bytes]]:
            answer = yield from provider.values(query, now)
            return answer.expires, (yield from external_metric_value_list(answer.items))

        return source, query.selector.bytes

    return Endpoint("external", lambda: provider.version, open_source)


class Route(NamedTuple):
    """A GET that was parsed and admitted once, with what the next one needs."""

    attributes: Attributes
    asked: Asked
    answered: Durations
    """Where its responses with 200 are counted."""
    bytes: int
    """Bytes of its selectors."""


class RouteCache:
    """Routes by request, bounded in bytes; the oldest are evicted."""

    def __init__(self, limit: int = 16 << 20, largest: int = 1 << 16) -> None:
        self._largest = largest
        self._routes: ByteCache[Key, Route] = ByteCache(limit, first_in=True)
        self.get = self._routes.get

    @property
    def bytes(self) -> int:
        """Bytes of the routes."""
        return self._routes.bytes

    def add(self, key: Key, route: Route) -> None:
        """Cache a route, unless it is so large that a few would fill the cache."""
        size = weight(key, route.attributes) + route.bytes + _ROUTE
        if size <= self._largest:
            self._routes.put(key, route, size)
