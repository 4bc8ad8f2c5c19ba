"""The metrics that the rules make of the series in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.kinds import KindTable, ResourceKind
from adapter.answers.rules.labels import NAMESPACES, ROOT, ResourceLabels
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.series import SeriesShape
from apiservice.provider import GroupResource, MetricResource
from apiservice.runtime.steps import Steps

K = TypeVar("K")

MAX_METRICS: Final = 20_000
"""Metrics of one API, counted once for each resource."""
_STEP: Final = 64


class CustomMetric(NamedTuple):
    """A metric of a resource's objects."""

    rule: MetricRule
    series: str
    kind: ResourceKind
    label: str
    """The label with the objects' names."""
    namespace_label: str | None
    """The label with their namespace; None if the rule has none."""


class ExternalMetric(NamedTuple):
    """An external metric."""

    rule: MetricRule
    series: str
    namespace_label: str | None


class Registry(NamedTuple):
    """All metrics at one time."""

    kinds: KindTable
    custom: Mapping[tuple[GroupResource, str], CustomMetric]
    external: Mapping[str, ExternalMetric]
    resources: Sequence[MetricResource] = ()
    """The rows of discovery."""
    lower: Mapping[str, str] = {}
    """The lower-case name of an external metric -> its name."""
    left_out: int = 0
    """Metrics beyond the bound."""
    unknown: Sequence[tuple[MetricRule, str, GroupResource]] = ()
    """Overrides of labels to resources that the cluster does not have."""
    failed: Sequence[tuple[MetricRule, str]] = ()
    """Rules that are left out, and why: the program fails on them."""

    def find(
        self, resource: GroupResource, metric: str, *, namespaced: bool
    ) -> CustomMetric | None:
        """Return what answers a request; None if no rule does."""
        kind = self.kinds.find(resource)
        if kind is None or namespaced == (kind.name in ROOT):
            return None
        return self.custom.get((kind.name, metric))

    def find_external(self, metric: str) -> ExternalMetric | None:
        """Return what answers a request; client-go sends names in lower case."""
        return self.external.get(metric) or self.external.get(self.lower.get(metric, ""))


EMPTY: Final = Registry(KindTable(()), {}, {})


def build(
    custom: Sequence[tuple[MetricRule, Sequence[SeriesShape]]],
    external: Sequence[tuple[MetricRule, Sequence[SeriesShape]]],
    kinds: KindTable,
) -> Steps[Registry]:
    """Return the metrics of the rules' series. Of two rules for one metric, the later one counts.

    Args:
        custom: rules and the series that each selects, in the order of the file.
        external: the same of ``externalRules``.
        kinds: the cluster's resources.
    """
    metrics: dict[tuple[GroupResource, str], CustomMetric] = {}
    outside: dict[str, ExternalMetric] = {}
    unknown: list[tuple[MetricRule, str, GroupResource]] = []
    failed: list[tuple[MetricRule, str]] = []
    left_out = 0
    for rules, add in (
        (custom, partial(_add_custom, metrics)),
        (external, partial(_add_external, outside)),
    ):
        for rule, shapes in rules:
            try:
                with raise_unexpected_as(RuleFailure):
                    left_out += yield from _collect(rule, shapes, kinds, unknown, add)
            except RuleFailure as error:
                failed.append((rule, str(error)))
                _forget(rule, metrics)
                _forget(rule, outside)
    rows = [
        MetricResource(resource, metric, namespaced=resource not in ROOT)
        for resource, metric in sorted(metrics)
    ]
    lower = {name.lower(): name for name in sorted(outside, reverse=True)}
    return Registry(kinds, metrics, outside, tuple(rows), lower, left_out, tuple(unknown), failed)


def _forget(rule: MetricRule, metrics: dict[K, CustomMetric] | dict[K, ExternalMetric]) -> None:
    """Remove the metrics of a rule."""
    for key in [key for key, metric in metrics.items() if metric.rule is rule]:
        del metrics[key]


class RuleFailure(Exception):  # noqa: N818 - a mistake of this program, which costs the rule
    """The metrics of a rule cannot be made; the text says why."""


def _collect(
    rule: MetricRule,
    shapes: Sequence[SeriesShape],
    kinds: KindTable,
    unknown: list[tuple[MetricRule, str, GroupResource]],
    add: Callable[[MetricRule, SeriesShape, ResourceLabels], int],
) -> Steps[int]:
    """Add the metrics of every series of a rule; return how many are beyond the bound."""
    left_out = 0
    labels = ResourceLabels(rule, kinds)
    unknown += [(rule, label, wanted) for label, wanted in labels.unknown]
    for place, shape in enumerate(shapes):
        if place % _STEP == 0:
            yield
        left_out += add(rule, shape, labels)
    return left_out


def _add_custom(
    metrics: dict[tuple[GroupResource, str], CustomMetric],
    rule: MetricRule,
    shape: SeriesShape,
    labels: ResourceLabels,
) -> int:
    metric = rule.metric(shape.name) if rule.admits(shape.name) else ""
    if not metric:
        return 0
    left_out = 0
    for name in shape.labels:
        kind = labels.resource(name)
        if kind is None:
            continue
        key = (kind.name, metric)
        if key not in metrics and len(metrics) >= MAX_METRICS:
            left_out += 1
            continue
        label = labels.label(kind.name, shape.labels) or name
        space = labels.label(NAMESPACES, shape.labels)
        metrics[key] = CustomMetric(rule, shape.name, kind, label, space)
    return left_out


def _add_external(
    metrics: dict[str, ExternalMetric], rule: MetricRule, shape: SeriesShape, labels: ResourceLabels
) -> int:
    metric = rule.metric(shape.name) if rule.admits(shape.name) else ""
    if not metric:
        return 0
    if metric not in metrics and len(metrics) >= MAX_METRICS:
        return 1
    metrics[metric] = ExternalMetric(rule, shape.name, labels.label(NAMESPACES, shape.labels))
    return 0
