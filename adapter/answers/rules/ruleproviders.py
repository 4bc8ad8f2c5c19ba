"""Serve the metrics of rules beside those of GPUs. The settings decide about a name of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from adapter.answers.rules.custom import RuleMetrics
from adapter.answers.rules.external import RuleExternalMetrics
from apiservice.provider import (
    Answer,
    CustomMetricsProvider,
    ExternalMetricsProvider,
    ExternalQuery,
    ExternalValue,
    MetricResource,
    MetricValue,
    ObjectQuery,
)
from apiservice.runtime.steps import WaitingSteps

log = structlog.get_logger(__name__)

_SHOWN: Final = 20
"""Names in a line of the log."""


class CustomWithRules:
    """Implements :class:`apiservice.provider.CustomMetricsProvider` with two providers.

    Args:
        first: the built-in metrics.
        rules: the metrics of rules.
        prefer_rules: whether rules win for a metric of both.
    """

    def __init__(
        self, first: CustomMetricsProvider, rules: RuleMetrics, *, prefer_rules: bool
    ) -> None:
        self._first = first
        self._rules = rules
        self._prefer_rules = prefer_rules
        self._seen: tuple[object, object] = (None, None)
        self._rows: Sequence[MetricResource] = ()
        self._both: frozenset[MetricResource] = frozenset()

    @property
    def version(self) -> int:
        """See :class:`apiservice.provider.CustomMetricsProvider`."""
        return self._first.version + self._rules.version

    @property
    def both(self) -> int:
        """Metrics that both providers have, counted once for each resource."""
        self.resources()
        return len(self._both)

    def resources(self) -> Sequence[MetricResource]:
        """Return the metrics of both; one row for a metric of both."""
        mine, others = self._first.resources(), self._rules.resources()
        if self._seen[0] is not mine or self._seen[1] is not others:
            self._seen = (mine, others)
            self._rows = tuple(dict.fromkeys((*mine, *others)))
            self._compare(frozenset(mine) & frozenset(others))
        return self._rows

    def _compare(self, both: frozenset[MetricResource]) -> None:
        if both != self._both and both:
            names = sorted({f"{row.resource}/{row.metric}" for row in both})
            log.warning(
                "metrics of rules and of the catalogue have the same name",
                metrics=names[:_SHOWN],
                count=len(names),
                served_by="rules" if self._prefer_rules else "catalogue",
                hint="rules.prefer decides",
            )
        self._both = both

    def values(self, query: ObjectQuery, now: float) -> WaitingSteps[Answer[MetricValue]]:
        """See :meth:`apiservice.provider.CustomMetricsProvider.values`."""
        return (yield from self._provider(query).values(query, now))

    def _provider(self, query: ObjectQuery) -> CustomMetricsProvider:
        if not self._rules.serves(query):
            return self._first
        if self._prefer_rules:
            return self._rules
        self.resources()
        mine = any(
            (row.resource, row.metric) == (query.resource, query.metric) for row in self._both
        )
        return self._first if mine else self._rules


class ExternalWithRules:
    """Implements :class:`apiservice.provider.ExternalMetricsProvider` with two providers.

    Args:
        first: the built-in metrics.
        rules: the metrics of rules.
        prefer_rules: whether rules win for a metric of both.
    """

    def __init__(
        self, first: ExternalMetricsProvider, rules: RuleExternalMetrics, *, prefer_rules: bool
    ) -> None:
        self._first = first
        self._rules = rules
        self._prefer_rules = prefer_rules
        self._seen: tuple[object, object] = (None, None)
        self._names: Sequence[str] = ()
        self._mine: frozenset[str] = frozenset()
        self._both: frozenset[str] = frozenset()

    @property
    def version(self) -> int:
        """See :class:`apiservice.provider.ExternalMetricsProvider`."""
        return self._first.version + self._rules.version

    @property
    def both(self) -> int:
        """Metrics that both providers have."""
        self.metrics()
        return len(self._both)

    def metrics(self) -> Sequence[str]:
        """Return the metrics of both."""
        mine, others = self._first.metrics(), self._rules.metrics()
        if mine != self._seen[0] or self._seen[1] is not others:
            self._seen = (mine, others)
            self._mine = frozenset(mine)
            self._names = tuple(dict.fromkeys((*mine, *others)))
            self._compare(self._mine & frozenset(name.lower() for name in others))
        return self._names

    def _compare(self, both: frozenset[str]) -> None:
        if both != self._both and both:
            log.warning(
                "external metrics of rules and of the catalogue have the same name",
                metrics=sorted(both)[:_SHOWN],
                count=len(both),
                served_by="rules" if self._prefer_rules else "catalogue",
                hint="rules.prefer decides",
            )
        self._both = both

    def values(self, query: ExternalQuery, now: float) -> WaitingSteps[Answer[ExternalValue]]:
        """See :meth:`apiservice.provider.ExternalMetricsProvider.values`."""
        return (yield from self._provider(query).values(query, now))

    def _provider(self, query: ExternalQuery) -> ExternalMetricsProvider:
        if not self._rules.serves(query):
            return self._first
        self.metrics()
        if self._prefer_rules or query.metric.lower() not in self._mine:
            return self._rules
        return self._first
