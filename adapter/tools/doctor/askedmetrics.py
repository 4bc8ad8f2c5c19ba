"""The metrics of the adapter that HPAs and ScaledObjects ask for, each with its target.

Whether a target fits is for :mod:`adapter.pipeline.catalog.targetfit` to say. This module knows
where a manifest states it, which pods it is about, and how the manifest is corrected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Set
from decimal import Decimal
from typing import Any, Final, NamedTuple

from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.triggerquery import form_of_query
from adapter.hpa import quantity
from adapter.pipeline.attribution.describedpods import object_is_own, selector_is_own
from adapter.pipeline.attribution.serieslabels import parse_selector
from adapter.pipeline.catalog.metric import Combine
from adapter.pipeline.catalog.targetfit import (
    AGGREGATE,
    AskedTarget,
    Misfit,
    MisfitKind,
    Selects,
    aggregate_of,
    form_of,
    misfits,
    selector_with,
)
from adapter.pipeline.cluster import nodelabels
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.gpuresources import MIG_PREFIX
from adapter.pipeline.cluster.lookup import workload_kind
from adapter.pipeline.cluster.podgroups import selects_of, stated_size
from adapter.pipeline.cluster.workload import workloads
from adapter.tools.client.hpacommands import change_hpa, edit_hpa
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.scaletargets import pods_of, workload_of
from adapter.tools.doctor.servedmetrics import KnownMetric

OURS: Final = ("Pods", "Object", "External")


class SeenTarget(NamedTuple):
    """A target in a manifest."""

    subject: str
    asked: AskedTarget
    averaged: bool
    """The controller itself takes the mean, as for a Pods metric."""
    goal: str
    """The maximum, in words."""
    fix: Callable[[Misfit], tuple[str, str | Fix]]
    """Returns the fix in words, and a command or the change of the object."""

    @property
    def misfits(self) -> Iterator[Misfit]:
        """What does not fit, the most important first."""
        return misfits(self.asked, averaged=self.averaged)


def targets(facts: Facts) -> Iterator[SeenTarget]:
    """Yield the targets of HPAs and ScaledObjects on metrics of the adapter; raises UnreadError.

    An HPA that KEDA has made is left out: its ScaledObject is where a user can change something.
    """
    names = servedmetrics.metrics(facts.settings)
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            known_metric = names.get(metric.name)
            if known_metric is not None and metric.type in OURS and not hpa.owner:
                yield target_of_metric(facts, hpa, metric, known_metric)
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        for trigger in scaled.triggers:
            if (target := _of_trigger(facts, scaled, trigger, names)) is not None:
                yield target


def target_of_metric(
    facts: Facts, hpa: Hpa, metric: HpaMetric, known_metric: KnownMetric
) -> SeenTarget:
    """Return the target of a metric of an HPA, by what is known of the metric."""
    target = AskedTarget(
        metric.name,
        known_metric.unit,
        known_metric.load,
        form_of(metric.type, known_metric.over_pods, aggregate_of(metric.selector)),
        metric.target_type or ("AverageValue" if metric.average is not None else "Value"),
        metric.target,
        known_metric.high,
        _selects_own(facts, hpa, metric),
        on_mig(facts, hpa),
        known_metric.scope,
        _selects(facts, hpa),
        bool(aggregate_of(metric.selector)),
    )
    goal = "its maximum" if hpa.high is None else f"maxReplicas {hpa.high}"
    return SeenTarget(
        hpa.subject,
        target,
        metric.type == "Pods",
        goal,
        lambda misfit: _hpa_fix(hpa, metric, misfit),
    )


def _hpa_fix(hpa: Hpa, metric: HpaMetric, misfit: Misfit) -> tuple[str, str | Fix]:
    path = f"{metric.at}.{metric.key}"
    value: Any
    if misfit.aggregate:
        value = selector_with(metric.selector, misfit.aggregate)
        words = f"set {path}.metric.selector to {json.dumps(value)}"
        return words, "" if hpa.origin else change_hpa(
            hpa.manifest, f"{path}.metric.selector", value
        )
    if misfit.words:
        return misfit.words, "" if hpa.origin else edit_hpa(hpa.manifest, misfit.words)
    if misfit.type:
        field = misfit.type[:1].lower() + misfit.type[1:]
        value = {"type": misfit.type, field: f"{metric.target:f}"}
        words = f'set {path}.target to {{type: {misfit.type}, {field}: "{metric.target:f}"}}'
        words += _per_replica(misfit)
        path = f"{path}.target"
    else:
        path = f"{path}.target.{metric.compared.key}"
        value, words = misfit.number, _number_words(path, misfit)
    return words, "" if hpa.origin else change_hpa(hpa.manifest, path, value)


def _number_words(at: str, misfit: Misfit) -> str:
    if misfit.kind is MisfitKind.RANGE:
        return f'set {at} to a number that the metric exceeds, such as "{misfit.number}"'
    return f'set {at} to "{misfit.number}"'


def _per_replica(misfit: Misfit) -> str:
    if misfit.kind is not MisfitKind.SUM:
        return ""
    return "; the number is then for each replica, so check it"


def _of_trigger(
    facts: Facts,
    scaled: SeenScaledObject,
    trigger: SeenTrigger,
    names: Mapping[str, KnownMetric],
) -> SeenTarget | None:
    """Return the target of a trigger that asks the adapter, or a Prometheus for one series.

    Without an aggregation, KEDA takes the only series of the answer, so there is no form to judge.
    """
    name, form, key = trigger.metadata.get("metric", ""), "", "target"
    factor = Decimal(1)
    if trigger.ours:
        form = form_of("External", Combine.MEAN, trigger.metadata.get(AGGREGATE, ""))
    elif query := form_of_query(trigger.query):
        name, form, factor, key = query.series, query.form, query.factor, "threshold"
    metric = names.get(name) if trigger.ours or trigger.query else None
    if metric is None:
        return None
    try:
        number = quantity.parse(trigger.metadata.get(key, ""))
    except ValueError:
        number = None
    is_own = (
        _trigger_selects_own(facts, scaled, trigger)
        if trigger.ours
        else selector_is_own(name, None, (scaled.kind, scaled.target), None)
    )
    target = AskedTarget(
        *(name, metric.unit, metric.load, form, trigger.metric_type, number, metric.high, is_own),
        on_mig=on_mig(facts, scaled),
        selects=_selects(facts, scaled),
    )
    return SeenTarget(
        scaled.subject,
        target.times(factor),
        averaged=not form,
        goal="its maximum" if scaled.high is None else f"maxReplicaCount {scaled.high}",
        fix=lambda misfit: _trigger_fix(scaled, trigger, key, misfit),
    )


def _trigger_fix(
    scaled: SeenScaledObject, trigger: SeenTrigger, key: str, misfit: Misfit
) -> tuple[str, str | Fix]:
    path = trigger.path
    if misfit.words:
        return misfit.words, scaled.edit
    if misfit.type:
        path = f"{path}.metricType"
        words = f"set {path} to {misfit.type}{_per_replica(misfit)}"
        return words, scaled.patch(path, misfit.type)
    path = f"{path}.metadata.{key}"
    return _number_words(path, misfit), scaled.patch(path, misfit.number)


def _selects_own(facts: Facts, hpa: Hpa, metric: HpaMetric) -> bool | None:
    target = (hpa.kind, hpa.target)
    if metric.type == "Pods":
        return True
    if metric.type == "Object":
        return object_is_own(metric.name, metric.described, target)
    selector = parse_selector(metric.selector)
    return selector_is_own(metric.name, selector, target, _labels(facts, hpa))


def needs_pods(facts: Facts, hpa: Hpa, metric: HpaMetric) -> bool:
    """Return whether a metric has no value while the target has no pod."""
    if metric.type == "Object":
        return metric.described == (hpa.kind, hpa.target)
    if metric.type != "External":
        return True
    # Without a selector, other pods of the namespace may have a value.
    return bool(metric.selector) and _selects_own(facts, hpa, metric) is True


def _trigger_selects_own(
    facts: Facts, scaled: SeenScaledObject, trigger: SeenTrigger
) -> bool | None:
    if not trigger.metadata.get("podSelector"):
        return True
    metric, target = trigger.metadata.get("metric", ""), (scaled.kind, scaled.target)
    return selector_is_own(metric, trigger.pods, target, _labels(facts, scaled))


def on_mig(facts: Facts, scaler: Hpa | SeenScaledObject) -> bool:
    """Return whether the scaled pods are known to hold MIG instances: by their requests, or because
    they run on a node whose GPUs are all cut."""
    workload = workload_of(facts, scaler)
    if workload is None:
        return False
    rows = (row.resources for row in workload.spec.template.spec.containers)
    if any(name.startswith(MIG_PREFIX) for row in rows for name in (*row.limits, *row.requests)):
        return True
    if not (facts.nodes.known and facts.pods.known):
        return False
    cut = facts.once(_cut_nodes, facts.nodes)
    return bool(cut) and any(pod.pod.node in cut for pod in pods_of(facts, workload))


def _selects(facts: Facts, scaler: Hpa | SeenScaledObject) -> Selects:
    """Return which pods of a replica the HPA controller reads, by kind and size of its groups."""
    if selects_of(scaler.kind, None) is Selects.ALL:
        return Selects.ALL
    workload = workload_of(facts, scaler)
    size = workload.group_size if workload is not None else None
    if size is None:
        of = (scaler.kind, scaler.namespace, scaler.target)
        size = facts.once(_sizes, facts.pods).get(of)
    return selects_of(scaler.kind, None, size)


def _sizes(facts: Facts) -> Mapping[tuple[str, str, str], int]:
    """Return kind, namespace and name of what scales groups -> the pods of each group."""
    sizes: dict[tuple[str, str, str], int] = {}
    for pod in facts.pods.read() if facts.pods.known else ():
        size = stated_size(pod.pod.annotations)
        for above in workloads(pod.pod) if size is not None else ():
            _, kind = workload_kind(above.resource, pod.pod)
            sizes[kind, pod.pod.namespace, above.name] = size or 0
    return sizes


def _cut_nodes(facts: Facts) -> Set[str]:
    """Return the nodes of which each GPU is cut: strategy ``single`` offers instances as GPUs."""
    return {
        node.name
        for node in facts.nodes.read()
        if nodelabels.facts(node.metadata.labels).mig_strategy == "single"
    }


def _labels(facts: Facts, scaler: Hpa | SeenScaledObject) -> Mapping[str, str] | None:
    workload = workload_of(facts, scaler)
    if workload is None or workload.members:  # a controller of groups adds labels
        return None
    return workload.spec.template.metadata.labels
