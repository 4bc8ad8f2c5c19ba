"""Answer custom metrics from rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.answers.rules.matchers import valid_name
from adapter.answers.rules.objects import ObjectNames
from adapter.answers.rules.promql import ObjectKey
from adapter.answers.rules.registry import CustomMetric, Registry
from adapter.answers.rules.rule import MetricRule, RuleObjects
from adapter.answers.rules.store import RuleStore
from adapter.answers.rules.vector import Value
from adapter.answers.rules.wideanswers import WideAnswers
from adapter.answers.rules.widevalues import WideAnswer
from apiservice.errors import MetricNotFound, MetricUnknown, Unavailable
from apiservice.labels.selector import Selector
from apiservice.provider import (
    Answer,
    MetricResource,
    MetricValue,
    ObjectQuery,
    ObjectReference,
)
from apiservice.runtime.steps import Steps, WaitingSteps, parts

_STEP = 64


class RuleMetrics:
    """Implements :class:`apiservice.provider.CustomMetricsProvider`.

    Args:
        registry: returns the current metrics.
        store: returns what answers queries.
        names: lists objects.
        version: changes with the registry.
        wide: answers without a query for each request.
    """

    def __init__(
        self,
        registry: Callable[[], Registry],
        store: Callable[[], RuleStore],
        names: ObjectNames,
        version: Callable[[], int],
        wide: WideAnswers,
    ) -> None:
        self._registry = registry
        self._store = store
        self._wide = wide
        self._names = names
        self._version = version

    @property
    def version(self) -> int:
        """See :class:`apiservice.provider.CustomMetricsProvider`."""
        return self._version() + self._names.version

    def resources(self) -> Sequence[MetricResource]:
        """Return the metrics of the rules; empty before the first discovery."""
        return self._registry().resources

    def serves(self, query: ObjectQuery) -> bool:
        """Return whether a rule makes the metric of the resource."""
        return self._find_metric(query) is not None

    def _find_metric(self, query: ObjectQuery) -> CustomMetric | None:
        namespaced = query.namespace is not None
        return self._registry().find(query.resource, query.metric, namespaced=namespaced)

    def values(self, query: ObjectQuery, now: float) -> WaitingSteps[Answer[MetricValue]]:
        """See :meth:`apiservice.provider.CustomMetricsProvider.values`.

        Raises:
            MetricUnknown: no rule makes the metric.
            MetricNotFound: no object is selected, or the one named object has no value.
            BadQuery: PromQL cannot express the metric selector.
            Unavailable: the store failed, and no answer is young enough.
        """
        metric = self._find_metric(query)
        if metric is None:
            raise MetricUnknown(query.metric, query.resource)
        names = yield from self._select_names(query, metric)
        objects = _objects(query, metric, names)
        wide = yield from self._wide.answer(*_wide_query_key(query, metric))
        if wide is not None:
            return (yield from _answer_from_wide(query, metric, names, wide))
        try:
            return (yield from self._answer_narrow(query, metric, objects))
        except Unavailable:
            last = self._wide.last(*_wide_query_key(query, metric))
            if last is None:
                raise
            return (yield from _answer_from_wide(query, metric, names, last))

    def _answer_narrow(
        self, query: ObjectQuery, metric: CustomMetric, objects: RuleObjects
    ) -> WaitingSteps[Answer[MetricValue]]:
        """Answer with a query for the objects of the request."""
        names = objects.names
        promql = metric.rule.query(metric.series, objects, query.metric_selector)
        answered = yield from self._store().answer(promql)
        if answered.vector.scalar:
            raise Unavailable(
                f"{metric.rule.name}: metricsQuery returns a scalar; a metric of objects needs a "
                f"vector with the label {metric.label}"
            )
        by_name: dict[str, Value] = {}
        for value in answered.vector.values:
            by_name[value.labels.get(metric.label, "")] = value
        items: list[MetricValue] = []
        for some in parts(names, _STEP):
            items += [
                _item(query, metric, name, by_name[name].milli, by_name[name].time)
                for name in some
                if name in by_name
            ]
            yield None
        if query.name is not None and not items:
            raise MetricNotFound(
                query.metric, query.resource, query.name, _why(metric, answered.vector.left_out)
            )
        return Answer(items, answered.expires)

    def _select_names(
        self, query: ObjectQuery, metric: CustomMetric
    ) -> WaitingSteps[Sequence[str]]:
        if query.name is not None:
            names: Sequence[str] = (query.name,)
        else:
            selector: Selector = query.object_selector
            names = yield from self._names.names(metric.kind, query.namespace, selector)
        if not names or not all(map(valid_name, (*names, query.namespace or names[0]))):
            raise MetricNotFound(query.metric, query.resource, query.name)
        return names


def _objects(query: ObjectQuery, metric: CustomMetric, names: Sequence[str]) -> RuleObjects:
    if query.namespace is None:
        return RuleObjects(metric.label, names, None)
    if metric.namespace_label is None:
        # Without it, the query would read the objects of every namespace.
        raise MetricNotFound(
            query.metric,
            query.resource,
            query.name,
            f"{metric.rule.name} maps no label to namespaces; fix: add an override for it",
        )
    return RuleObjects(metric.label, names, query.namespace, metric.namespace_label)


def _wide_query_key(
    query: ObjectQuery, metric: CustomMetric
) -> tuple[MetricRule, str, ObjectKey, Selector]:
    """Return what names the query for all objects."""
    space = None if query.namespace is None else metric.namespace_label
    return metric.rule, metric.series, ObjectKey(metric.label, space), query.metric_selector


def _answer_from_wide(
    query: ObjectQuery, metric: CustomMetric, names: Sequence[str], wide: WideAnswer
) -> Steps[Answer[MetricValue]]:
    """Select the objects of the request from the values of all objects."""
    namespace = query.namespace or ""
    values = wide.spaces.get(namespace, {})
    items: list[MetricValue] = []
    for some in parts(names, _STEP):
        items += [
            _item(query, metric, name, values[name], wide.time) for name in some if name in values
        ]
        yield None
    if query.name is not None and not items:
        reason = wide.left_out.get((namespace, query.name))
        why = _why(metric, {} if reason is None else {reason: 1})
        raise MetricNotFound(query.metric, query.resource, query.name, why)
    return Answer(items, wide.expires)


def _item(
    query: ObjectQuery, metric: CustomMetric, name: str, milli: int, time: float
) -> MetricValue:
    kind = metric.kind
    described = ObjectReference(kind.kind, name, query.namespace, kind.api_version)
    return MetricValue(described, query.metric, milli, int(time), None)


def _why(metric: CustomMetric, left_out: dict[str, int]) -> str:
    reasons = ", ".join(reason for reason, count in sorted(left_out.items()) if count)
    if reasons:
        return f"{metric.rule.name} gives a value that is left out ({reasons})"
    return f"the query of {metric.rule.name} returns nothing with its {metric.label}"
