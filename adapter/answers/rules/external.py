"""Answer external metrics from rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.answers.rules.matchers import valid_name
from adapter.answers.rules.registry import ExternalMetric, Registry
from adapter.answers.rules.store import RuleStore
from apiservice.errors import MetricNotFound, MetricUnknown
from apiservice.provider import Answer, ExternalQuery, ExternalValue
from apiservice.runtime.steps import WaitingSteps, parts

_STEP = 64


class RuleExternalMetrics:
    """Implements :class:`apiservice.provider.ExternalMetricsProvider`.

    Args:
        registry: returns the current metrics.
        store: returns what answers queries.
    """

    def __init__(
        self,
        registry: Callable[[], Registry],
        store: Callable[[], RuleStore],
        version: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._store = store
        self._version = version
        self._listed: tuple[Registry | None, Sequence[str]] = (None, ())

    @property
    def version(self) -> int:
        """See :class:`apiservice.provider.ExternalMetricsProvider`."""
        return self._version()

    def metrics(self) -> Sequence[str]:
        """Return the names of the rules' metrics, as the rules write them."""
        registry = self._registry()
        if self._listed[0] is not registry:
            self._listed = (registry, tuple(sorted(registry.external)))
        return self._listed[1]

    def serves(self, query: ExternalQuery) -> bool:
        """Return whether a rule makes the metric."""
        return self._registry().find_external(query.metric) is not None

    def values(self, query: ExternalQuery, now: float) -> WaitingSteps[Answer[ExternalValue]]:
        """See :meth:`apiservice.provider.ExternalMetricsProvider.values`.

        Raises:
            MetricUnknown: no rule makes the metric.
            MetricNotFound: no namespace can have this name.
            BadQuery: PromQL cannot express the selector.
            Unavailable: the store failed, and no answer is young enough.
        """
        metric = self._registry().find_external(query.metric)
        if metric is None:
            raise MetricUnknown(query.metric)
        if not valid_name(query.namespace):
            raise MetricNotFound(query.metric)
        namespace, label = _limits(query, metric)
        promql = metric.rule.external_query(metric.series, namespace, label, query.selector)
        answered = yield from self._store().answer(promql)
        items: list[ExternalValue] = []
        for some in parts(answered.vector.values, _STEP):
            items += [
                ExternalValue(query.metric, value.labels, value.milli, int(value.time), None)
                for value in some
            ]
            yield None
        return Answer(items, answered.expires)


def _limits(query: ExternalQuery, metric: ExternalMetric) -> tuple[str | None, str]:
    """Return the namespace that limits the query, and its label."""
    if not metric.rule.text.namespaced:
        return None, ""
    if metric.namespace_label is None:
        # Without it, the query would read the series of every namespace.
        raise MetricNotFound(
            query.metric,
            why=f"{metric.rule.name} maps no label to namespaces; fix: add an override for it, or "
            "set resources.namespaced to false",
        )
    return query.namespace, metric.namespace_label
