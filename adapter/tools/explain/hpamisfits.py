"""Targets of an HPA that do not fit their metrics, each with the command that corrects it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from adapter.answers.api.describedpods import object_is_own, selector_is_own
from adapter.answers.api.serieslabels import parsed, selector_fault
from adapter.answers.keda.manifest import SeenTrigger
from adapter.figures import decimal
from adapter.hpa import HpaSpec, MetricKind, MetricSpec
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.targetfit import (
    AGGREGATE,
    AskedTarget,
    Misfit,
    MisfitKind,
    aggregate_of,
    form_of,
    misfits,
)
from adapter.tools.client.hpacommands import change_hpa, change_scaled_object
from adapter.tools.explain import hpafixes
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpareport import Block

_CATALOG: Final = Catalog()
_OF_KEDA: Final = re.compile(r"s(\d+)-(.+)")
"""``GenerateMetricNameWithIndex`` (``pkg/scalers/scaler.go``) puts the trigger first."""


class _Asked(NamedTuple):
    """A metric of an HPA that the adapter serves, and the trigger from which KEDA has made it."""

    metric: MetricSpec
    name: str
    trigger: SeenTrigger | None


def target_blocks(facts: HpaFacts, spec: HpaSpec) -> Iterator[Block]:
    """Yield the targets that do not fit, and the selectors that select nothing."""
    for asked in _asked(facts, spec):
        for misfit in _misfits(facts, asked):
            guess = f"; did you mean {misfit.number}?" if misfit.kind is MisfitKind.UNIT else ""
            yield Block(f"{misfit.text}{guess}", _fix(facts, asked, misfit))
        yield from _selector(facts, asked)


def runs_away(facts: HpaFacts, spec: HpaSpec) -> bool:
    """Return whether a target makes the HPA ask for too much: a higher maximum does not help."""
    return any(
        misfit.kind.runs_away for asked in _asked(facts, spec) for misfit in _misfits(facts, asked)
    )


def _asked(facts: HpaFacts, spec: HpaSpec) -> Iterator[_Asked]:
    for metric in spec.metrics:
        if metric.kind.of_resources:
            continue
        found = _OF_KEDA.fullmatch(metric.name) if facts.scaled_object else None
        if found is None:
            yield _Asked(metric, metric.name, None)
            continue
        place = int(found[1])
        trigger = next((each for each in facts.triggers if each.place == place), None)
        if trigger is not None and trigger.ours:
            yield _Asked(metric, trigger.metadata.get("metric", ""), trigger)


def _misfits(facts: HpaFacts, asked: _Asked) -> Iterator[Misfit]:
    metric, name, trigger = asked
    known = _CATALOG.metrics.get(name)
    if known is None:
        return
    aggregate = aggregate_of(metric.selector)
    if trigger is not None:
        aggregate = trigger.metadata.get(AGGREGATE, "")
    target = AskedTarget(
        name,
        known.unit,
        known.load,
        form_of(metric.kind, known.over_pods, aggregate),
        metric.target.kind,
        Decimal(metric.target.milli) / 1000,
        known.high,
        _own(facts, asked),
    )
    yield from misfits(target, averaged=metric.kind is MetricKind.PODS)


def _own(facts: HpaFacts, asked: _Asked) -> bool | None:
    reference = facts.hpa["spec"]["scaleTargetRef"]
    target = (str(reference.get("kind")), str(reference.get("name")))
    metric = asked.metric
    if metric.kind is MetricKind.PODS:
        return True
    if metric.described is not None:
        return object_is_own(asked.name, (metric.described.kind, metric.described.name), target)
    selector = parsed(metric.selector)
    if asked.trigger is not None:
        if not asked.trigger.metadata.get("podSelector"):
            return True
        selector = asked.trigger.pods
    return selector_is_own(asked.name, selector, target, _labels(facts))


def _labels(facts: HpaFacts) -> Mapping[str, str] | None:
    """Return the labels of one of the scaled pods; None without one."""
    return next((pod["metadata"].get("labels") or {} for pod in facts.pods), None)


def _fix(facts: HpaFacts, asked: _Asked, misfit: Misfit) -> str:
    if misfit.metric:
        return f"scale on another metric, such as {misfit.metric}, with a target in its unit"
    if facts.scaled_object:
        return _trigger_fix(facts, asked, misfit)
    number = decimal(asked.metric.target.milli / 1000, 3)
    if misfit.type:
        field = misfit.type[:1].lower() + misfit.type[1:]
        at = hpafixes.field(facts, asked.metric, "target")
        return change_hpa(facts.hpa, at, {"type": misfit.type, field: number}).line
    kind = asked.metric.target.kind
    at = hpafixes.field(facts, asked.metric, f"target.{kind[:1].lower()}{kind[1:]}")
    return change_hpa(facts.hpa, at, misfit.number).line


def _trigger_fix(facts: HpaFacts, asked: _Asked, misfit: Misfit) -> str:
    if asked.trigger is None:
        return ""
    at = f"{asked.trigger.path}.{'metricType' if misfit.type else 'metadata.target'}"
    return change_scaled_object(facts.hpa, at, misfit.type or misfit.number).line


def _selector(facts: HpaFacts, asked: _Asked) -> Iterator[Block]:
    """Yield why the selector of the metric never selects a series."""
    selector = parsed(asked.metric.selector) if asked.metric.selector else None
    if asked.trigger is not None or selector is None or asked.name not in _CATALOG.metrics:
        return
    of_pods = asked.metric.kind is MetricKind.EXTERNAL
    for requirement in selector.requirements:
        if why := selector_fault(requirement, of_pods=of_pods):
            at = hpafixes.field(facts, asked.metric, "metric.selector")
            yield Block(f"the selector of {asked.name} selects nothing: {why}", f"correct {at}")
