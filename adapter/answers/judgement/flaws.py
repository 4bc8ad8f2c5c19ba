"""Flaws of an HPA's manifest: targets that do not fit their metrics, selectors of nothing.

Every surface asks here, so a list calls an HPA impaired where an explanation does. Whether a target
fits is for :mod:`adapter.pipeline.catalog.targetfit` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from adapter.hpa import quantity
from adapter.pipeline.attribution.describedpods import object_is_own, selector_is_own
from adapter.pipeline.attribution.serieslabels import parse_selector, selector_faults
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.targetfit import (
    AGGREGATE,
    AskedTarget,
    Misfit,
    MisfitKind,
    Selects,
    aggregate_of,
    form_of,
    misfits,
)
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.pipeline.cluster.podgroups import selects_of
from apiservice.labels.selector import Selector

_OF_KEDA: Final = re.compile(r"s(\d+)-(.+)")
"""``GenerateMetricNameWithIndex`` (keda ``pkg/scalers/scaler.go``) puts the trigger first."""


class AskedTrigger(Protocol):
    """A trigger of the ScaledObject that owns an HPA."""

    @property
    def place(self) -> int:
        """From 0."""

    @property
    def ours(self) -> bool:
        """Whether its scaler is the adapter."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """As the manifest has it."""

    @property
    def pods(self) -> Selector | None:
        """Its podSelector; None if it is not valid."""


class Flaw(NamedTuple):
    """What is wrong with one metric of an HPA."""

    place: int
    """Of the metric, from 0."""
    text: str
    """On one line, without the HPA's name."""
    misfit: Misfit | None = None
    """How the target does not fit; None if the selector is wrong."""
    trigger: int | None = None
    """Place of the trigger from which KEDA has made the metric; None without one."""

    @property
    def runs_away(self) -> bool:
        """Whether the HPA asks for too much: a higher maximum does not help."""
        return self.misfit is not None and self.misfit.kind.runs_away


class _Asked(NamedTuple):
    """A metric that the adapter serves."""

    place: int
    shown: ShownMetric
    name: str
    """As the catalogue has it."""
    metric: Metric
    trigger: AskedTrigger | None


def flaws_of(
    hpa: ShownHpa,
    metrics: Mapping[str, Metric],
    labels: Mapping[str, str] | None,
    triggers: Sequence[AskedTrigger] = (),
    *,
    on_mig: bool = False,
    selects: Selects | None = None,
) -> list[Flaw]:
    """Return the flaws of an HPA's metrics, in the order of its spec.

    Args:
        hpa: the HPA.
        metrics: of the adapter, by name.
        labels: of the scaled pods; None if they are not known.
        triggers: of the ScaledObject that owns the HPA, as far as it was read.
        on_mig: the scaled pods are known to hold MIG instances.
        selects: the pods of a replica that the controller reads; None if ``labels`` show it, as
            those that all pods of the workload have.
    """
    flaws: list[Flaw] = []
    if selects is None:
        selects = selects_of(hpa.kind, labels)
    for served in _served_metrics(hpa, metrics, triggers):
        trigger_place = served.trigger.place if served.trigger is not None else None
        for misfit in _misfits(hpa, served, labels, selects, on_mig=on_mig):
            guess = f"; did you mean {misfit.number}?" if misfit.kind is MisfitKind.UNIT else ""
            flaws.append(Flaw(served.place, f"{misfit.text}{guess}", misfit, trigger_place))
        if served.trigger is None:
            flaws += _selector_flaws(served)
    return flaws


def _served_metrics(
    hpa: ShownHpa, metrics: Mapping[str, Metric], triggers: Sequence[AskedTrigger]
) -> Iterator[_Asked]:
    for place, shown in enumerate(hpa.metrics):
        if not shown.custom or not shown.target_type:
            continue
        name, trigger = shown.name, None
        made = _OF_KEDA.fullmatch(name) if hpa.scaled_object else None
        if made is not None:
            trigger = next((row for row in triggers if row.place == int(made[1])), None)
            if trigger is None or not trigger.ours:
                continue
            name = trigger.metadata.get("metric", "")
        if (metric := metrics.get(name)) is not None:
            yield _Asked(place, shown, name, metric, trigger)


def _misfits(
    hpa: ShownHpa,
    served_metric: _Asked,
    labels: Mapping[str, str] | None,
    selects: Selects,
    *,
    on_mig: bool,
) -> Iterator[Misfit]:
    _, shown, name, metric, trigger = served_metric
    aggregate = aggregate_of(shown.selector)
    if trigger is not None:
        aggregate = trigger.metadata.get(AGGREGATE, "")
    try:
        number = quantity.parse(shown.target)
    except ValueError:
        number = None
    target = AskedTarget(
        name,
        metric.unit,
        metric.load,
        form_of(shown.type, metric.over_pods, aggregate),
        shown.target_type,
        number,
        metric.high,
        _is_own(hpa, served_metric, labels),
        on_mig,
        metric.scope,
        selects,
        bool(aggregate),
    )
    yield from misfits(target, averaged=shown.type == "Pods")


def _is_own(hpa: ShownHpa, served_metric: _Asked, labels: Mapping[str, str] | None) -> bool | None:
    """Return whether the metric is about the pods that are scaled; None if it is not known."""
    _, shown, name, _, trigger = served_metric
    target = (hpa.kind, hpa.scales.name)
    if shown.type == "Pods":
        return True
    if shown.type == "Object":
        return object_is_own(name, shown.described, target)
    selector = parse_selector(shown.selector)
    if trigger is not None:
        if not trigger.metadata.get("podSelector"):
            return True
        selector = trigger.pods
    return selector_is_own(name, selector, target, labels)


def _selector_flaws(served_metric: _Asked) -> Iterator[Flaw]:
    """Yield why the selector of the metric never selects a series, or promises nothing."""
    if not served_metric.shown.selector and not served_metric.metric.promised:
        return
    selector = parse_selector(served_metric.shown.selector or {})
    if not selector:
        return
    for why in selector_faults(selector, served_metric.name, served_metric.shown.type):
        yield Flaw(served_metric.place, f"the selector of {served_metric.name} {why}")
