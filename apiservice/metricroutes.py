"""The routes that serve values: one endpoint per API group, plain functions over bytes.

What a request line asks for is worked out once, when it was first admitted; from then on
it costs a dictionary look-up, and the answer another until the provider's data changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from apiservice.answers import Key, Prepared, PreparedAnswers
from apiservice.durations import Durations
from apiservice.identity import Attributes
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider
from apiservice.routes import Location, custom_query, external_query
from apiservice.values import external_metric_value_list, metric_value_list

Answer = Callable[[float], Prepared]
"""Answers a parsed request as of ``now``; raises an ApiError."""
Source = Callable[[float], tuple[float, bytes]]
"""Asks the provider as of ``now``: when the values expire, and their list."""


class Endpoint:
    """Answers below one API group's versions."""

    def __init__(
        self,
        label: str,
        snapshot: Callable[[], int],
        open_source: Callable[[Location, Mapping[str, str]], Source],
    ) -> None:
        self.label = label
        """What its requests are counted as."""
        self._snapshot = snapshot
        self._open = open_source
        self._answers = PreparedAnswers()

    def route(self, key: Key, where: Location, parameters: Mapping[str, str]) -> Answer:
        """Parse a request; raises an ApiError when it is none of this group's."""
        source = self._open(where, parameters)
        snapshot, answers = self._snapshot, self._answers

        def answer(now: float) -> Prepared:
            version = snapshot()
            prepared = answers.get(key, version, now)
            if prepared is not None:
                return prepared
            expires, body = source(now)
            return answers.put(key, version, expires, body)

        return answer


def custom_endpoint(provider: CustomMetricsProvider) -> Endpoint:
    """``custom.metrics.k8s.io``."""

    def open_source(where: Location, parameters: Mapping[str, str]) -> Source:
        query = custom_query(where.parts, parameters)

        def source(now: float) -> tuple[float, bytes]:
            answer = provider.values(query, now)
            body = metric_value_list(where.version, answer.items, query.metric_selector)
            return answer.expires, body

        return source

    return Endpoint("custom", lambda: provider.version, open_source)


def external_endpoint(provider: ExternalMetricsProvider) -> Endpoint:
    """``external.metrics.k8s.io``."""

    def open_source(where: Location, parameters: Mapping[str, str]) -> Source:
        query = external_query(where.parts, parameters)

        def source(now: float) -> tuple[float, bytes]:
            answer = provider.values(query, now)
            return answer.expires, external_metric_value_list(answer.items)

        return source

    return Endpoint("external", lambda: provider.version, open_source)


class Route(NamedTuple):
    """A GET that was admitted once and parsed: what is left to do for the next one."""

    attributes: Attributes
    answer: Answer
    answered: Durations
    """Where its 200s are counted."""


class RouteCache:
    """Routes by request, bounded; the oldest make room."""

    def __init__(self, entries: int = 4096, longest: int = 2048) -> None:
        self._entries = entries
        self._longest = longest
        self._routes: dict[Key, Route] = {}
        self.get = self._routes.get

    def add(self, key: Key, route: Route) -> None:
        """Keep a route, unless its request line is so long that a few would fill memory."""
        if len(key[0]) + len(key[1]) > self._longest:
            return
        if len(self._routes) >= self._entries:
            del self._routes[next(iter(self._routes))]
        self._routes[key] = route
