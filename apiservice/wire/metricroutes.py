"""The routes that serve values: one endpoint per API group, plain functions over bytes.

What a request line asks for is worked out once, when it was first admitted; from then on
it costs a dictionary look-up, and the answer another until the provider's data changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from apiservice.identity import Attributes
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider
from apiservice.runtime.bytecache import weight
from apiservice.runtime.steps import Steps, Unfinished, paced
from apiservice.selfmetrics.durations import Durations
from apiservice.wire.answers import Key, Prepared, PreparedAnswers
from apiservice.wire.metricvalues import external_metric_value_list, metric_value_list
from apiservice.wire.routes import Location, custom_query, external_query

_ROUTE = 2048
"""Bytes that a route takes beside its texts and selectors: the query, two functions and what
they hold, a slot (1,830 by tracemalloc on CPython 3.11, rounded up)."""

_SLICES: Final = 12
"""Slices of work (24 ms) that an answer may take before it counts as large."""

Source = Callable[[float], Steps[tuple[float, bytes]]]
"""Asks the provider as of ``now``: when the values expire, and their list."""


class Asked(NamedTuple):
    """A parsed request."""

    key: Key
    version: Callable[[], int]
    """The provider's."""
    source: Source
    answers: PreparedAnswers

    def recall(self, now: float) -> Prepared | None:
        """The prepared answer, where it holds now."""
        return self.answers.get(self.key, self.version(), now)

    async def prepare(self, now: float, slices: int | None = None) -> Prepared:
        """Prepare the answer as of ``now``.

        Raises:
            ApiError: the provider's.
            Unfinished: it takes more than ``slices``.
        """
        version = self.version()
        expires, body = await paced(self.source(now), slices=slices)
        return self.answers.put(self.key, version, expires, body)

    async def soon(self, now: float) -> Prepared | None:
        """The answer; None where it takes long to prepare."""
        prepared = self.recall(now)
        if prepared is not None:
            return prepared
        try:
            return await self.prepare(now, _SLICES)
        except Unfinished:
            return None


class Endpoint:
    """Answers below one API group's versions."""

    def __init__(
        self,
        label: str,
        snapshot: Callable[[], int],
        open_source: Callable[[Location, Mapping[str, str]], tuple[Source, int]],
    ) -> None:
        self.label = label
        """What its requests are counted as."""
        self._snapshot = snapshot
        self._open = open_source
        self._answers = PreparedAnswers()

    def route(self, key: Key, where: Location, parameters: Mapping[str, str]) -> tuple[Asked, int]:
        """Parse a request; raises an ApiError when it is none of this group's.

        Returns:
            What answers it, and the bytes of its selectors.
        """
        source, size = self._open(where, parameters)
        return Asked(key, self._snapshot, source, self._answers), size


def custom_endpoint(provider: CustomMetricsProvider) -> Endpoint:
    """``custom.metrics.k8s.io``."""

    def open_source(where: Location, parameters: Mapping[str, str]) -> tuple[Source, int]:
        query = custom_query(where.parts, parameters)

        def source(now: float) -> Steps[tuple[float, bytes]]:
            answer = yield from provider.values(query, now)
            body = yield from metric_value_list(where.version, answer.items, query.metric_selector)
            return answer.expires, body

        return source, query.object_selector.bytes + query.metric_selector.bytes

    return Endpoint("custom", lambda: provider.version, open_source)


def external_endpoint(provider: ExternalMetricsProvider) -> Endpoint:
    """``external.metrics.k8s.io``."""

    def open_source(where: Location, parameters: Mapping[str, str]) -> tuple[Source, int]:
        query = external_query(where.parts, parameters)

        def source(now: float) -> Steps[tuple[float, bytes]]:
            answer = yield from provider.values(query, now)
            return answer.expires, (yield from external_metric_value_list(answer.items))

        return source, query.selector.bytes

    return Endpoint("external", lambda: provider.version, open_source)


class Route(NamedTuple):
    """A GET that was admitted once and parsed: what is left to do for the next one."""

    attributes: Attributes
    asked: Asked
    answered: Durations
    """Where its 200s are counted."""
    bytes: int
    """What its selectors take."""


class RouteCache:
    """Routes by request, bounded in bytes; the oldest make room.

    No least-recently-used order is kept: a hit costs one look-up in a dictionary.
    """

    def __init__(self, limit: int = 16 << 20, largest: int = 1 << 16) -> None:
        self._limit = limit
        self._largest = largest
        self._routes: dict[Key, Route] = {}
        self.get = self._routes.get
        self.bytes = 0
        """What the routes take."""

    def add(self, key: Key, route: Route) -> None:
        """Keep a route, unless it is so large that a few would fill the cache."""
        size = _size(key, route)
        if size > self._largest:
            return
        self._drop(key)
        while self.bytes + size > self._limit:
            self._drop(next(iter(self._routes)))
        self._routes[key] = route
        self.bytes += size

    def _drop(self, key: Key) -> None:
        if (dropped := self._routes.pop(key, None)) is not None:
            self.bytes -= _size(key, dropped)


def _size(key: Key, route: Route) -> int:
    return weight(key, route.attributes) + route.bytes + _ROUTE
