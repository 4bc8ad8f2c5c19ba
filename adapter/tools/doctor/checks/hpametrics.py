"""Checks of what HPAs ask for: metrics that nobody serves, and those without a value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from adapter.answers.causes import CauseCode
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.tools.client.errors import MissingRight, missing_right
from adapter.tools.client.hpacommands import grant_controller, replace_row
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.askedmetrics import OURS
from adapter.tools.doctor.checks.hpas import edit, patch
from adapter.tools.doctor.checks.ours import are_measured, fix_of_reason
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.hpacauses import concerns, of_codes
from adapter.tools.doctor.model import CheckSection, Finding, FindingEffect, check
from adapter.tools.doctor.scaletargets import pods_of, workload_of

_LIKE_OURS: Final = re.compile(r"gpu|dcgm|vllm|triton|tgi_|sglang|inference|nv_", re.IGNORECASE)
_UNKNOWN: Final = "could not find the metric"
"""What a metrics API answers for a metric that it does not have (``k8s.io/metrics`` and
``custom-metrics-apiserver/pkg/provider/errors.go``), as the HPA controller repeats it."""


@check("GMA401", CheckSection.HPAS, "every HPA asks for a metric that exists")
def unknown_metric(facts: Facts) -> Iterator[Finding]:
    """An HPA names a metric that nobody serves (`FailedGetPodsMetric`, `FailedGetObjectMetric`,
    `FailedGetExternalMetric`), and keeps its replica count.

    Correct the name (`docs/metrics.md`), add it to `metrics` in the settings, or serve it by a rule
    (`docs/rules.md`) or another metrics server (`docs/delegation.md`).
    """
    names, silent = servedmetrics.metrics(facts.settings), _hpas_without_api(facts)
    for hpa in facts.hpas.read():
        for metric in _unserved_metrics(facts, hpa, names, silent):
            near = nearest_metrics(metric.name, names, metric.target)
            guess = near.question or "docs/metrics.md lists the metrics"
            meant = near.meant
            who = (
                "no metrics API serves"
                if _is_refused(hpa, metric)
                else "the adapter does not serve"
            )
            path = f"{metric.at}.{metric.key}.metric.name"
            correct = f"correct {path}, or let a rule or another server serve it (docs/rules.md)"
            yield Finding(
                hpa.subject,
                f"asks for {metric.name!r}, which {who}; {guess}",
                f"set {path} to {meant}" if meant else correct,
                patch(hpa, path, meant) if meant else edit(hpa, f"correct {path}"),
            )


def _unserved_metrics(
    facts: Facts, hpa: Hpa, names: Mapping[str, Any], silent: Collection[str]
) -> Iterator[HpaMetric]:
    """Yield the metrics of an HPA that nobody serves.

    The HPA controller knows: it has a value, or says that a metrics API has no such metric. Without
    its word, a name counts that is like one of the adapter's, or any while nobody else can have it.
    KEDA names the External metrics of its HPAs, and other programs serve theirs.

    Args:
        silent: HPAs whose metrics API has no server. Nobody can say which metrics it would have.
    """
    for metric in hpa.metrics:
        if metric.type not in OURS or metric.name in names or metric.has_value:
            continue
        near = nearest_metrics(metric.name, names).exist
        if hpa.subject in silent and not near:
            continue
        refused = _is_refused(hpa, metric) and _concerns(facts, hpa)
        alike = near or bool(_LIKE_OURS.search(metric.name))
        if metric.type == "External":
            if not hpa.owner and (refused or (alike and any(_failures(hpa)))):
                yield metric
        elif refused or alike or _is_only_server(facts):
            yield metric


def _hpas_without_api(facts: Facts) -> Collection[str]:
    """Return the HPAs whose metrics API has no server, or another one: that is their cause, and
    nobody can say which metrics it would have. Empty if it is not known."""
    if not (facts.workloads.known and facts.pods.known and facts.apiservices.known):
        return ()
    codes = (CauseCode.METRICS_API_MISSING, CauseCode.METRICS_API_DOWN, CauseCode.METRICS_API_TAKEN)
    return {hpa.subject for hpa, _ in of_codes(facts, *codes)}


def _is_only_server(facts: Facts) -> bool:
    """Return whether the adapter is the only server of Pods and Object metrics."""
    settings = facts.settings
    return (
        _is_installed(facts) and settings.rules.file is None and not settings.delegation.delegates
    )


def _is_installed(facts: Facts) -> bool:
    return facts.release.known and facts.release.value is not None


def _concerns(facts: Facts, hpa: Hpa) -> bool:
    """Return whether the adapter is installed, or the HPA is of GPU pods or on its metrics."""
    names = servedmetrics.metrics(facts.settings)
    target = workload_of(facts, hpa)
    return _is_installed(facts) or concerns(hpa, target, names, facts.gpu_resources)


def _is_refused(hpa: Hpa, metric: HpaMetric) -> bool:
    """Return whether the HPA controller says that a metrics API has no such metric."""
    pattern = re.compile(rf"{_UNKNOWN} {re.escape(metric.name)}(?![^ ])")
    return any(pattern.search(condition.message) for condition in _failures(hpa))


def _failures(hpa: Hpa) -> Iterator[SeenCondition]:
    """Yield the conditions by which the HPA controller says that it has no metric."""
    for condition in hpa.conditions:
        failed = condition.type == "ScalingActive" and condition.status == "False"
        if failed and condition.reason.startswith("FailedGet"):
            yield condition


@check("GMA410", CheckSection.HPAS, "HPAs get their metrics", effect=FindingEffect.RESULT)
def failing_metrics(facts: Facts) -> Iterator[Finding]:
    """The HPA controller cannot read a metric (condition `ScalingActive`).

    `gpu-metrics-adapter explain hpa` shows each pod's value, and why one has none.
    """
    facts.require_cluster()
    denied: dict[str, list[tuple[Hpa, MissingRight]]] = {}
    for hpa, condition in _failing_hpas(facts):
        right = missing_right(condition.message)
        if right is not None:
            denied.setdefault(right.group, []).append((hpa, right))
            continue
        yield Finding(
            hpa.subject, f"{condition.reason}: {condition.message}", *_without_metric(facts, hpa)
        )
    for group, rows in denied.items():
        (hpa, right), *others = rows
        yield Finding(
            hpa.subject,
            f"the HPA controller reads no metric: {right.user} may not {right.verb} {right.full}",
            *_grant(facts, group),
            effect=FindingEffect.CAUSE,
            concerns=tuple(other.subject for other, _ in others),
        )


_RESOURCE_TYPES: Final = ("Resource", "ContainerResource")
_RESOURCES: Final = ("cpu", "memory")
"""What metrics-server has of a container (kubernetes-sigs/metrics-server ``pkg/storage``)."""


@check("GMA454", CheckSection.HPAS, "HPAs do not ask the resource API for GPUs")
def gpu_as_resource(facts: Facts) -> Iterator[Finding]:
    """A metric of type Resource or ContainerResource names a GPU, such as `nvidia.com/gpu` or
    `gpu`. `metrics.k8s.io` has `cpu` and `memory` only: the HPA reports `FailedGetResourceMetric`.

    Use a Pods metric, such as `gpu_utilization`.
    """
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            resource = metric.type in _RESOURCE_TYPES and metric.name not in ("", *_RESOURCES)
            if not resource or metric.has_value:
                continue
            message = f"asks metrics.k8s.io for {metric.name}, which has cpu and memory only"
            yield Finding(hpa.subject, message, *_without_resource(facts, hpa, metric))


def _without_resource(facts: Facts, hpa: Hpa, metric: HpaMetric) -> tuple[str, str | Fix]:
    """Return the fix of a metric of a resource that nobody measures: a Pods metric in percent."""
    gpu = facts.gpu_resources.is_gpu(metric.name)
    served = servedmetrics.metrics(facts.settings).items()
    percents = [name for name, row in served if row.unit is Unit.PERCENT]
    near = "" if gpu else nearest_metrics(metric.name, percents).meant
    if not (gpu or near or _LIKE_OURS.search(metric.name)):
        words = f"name cpu or memory in {metric.at}.{metric.key}.name, or use a Pods metric"
        return words, edit(hpa, words)
    name = near or "gpu_utilization"
    words = f"replace {metric.at} by a Pods metric, such as {name}"
    if metric.percent is None:
        return words, edit(hpa, words)
    target = {"type": "AverageValue", "averageValue": str(metric.percent)}
    row = {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}
    return f"{words} with averageValue {metric.percent}", _replace(hpa, metric.at, row)


def _without_metric(facts: Facts, hpa: Hpa) -> tuple[str, str | Fix]:
    """Return what to do about an HPA without a metric: about its pods' reason, if it is known."""
    explain = f"gpu-metrics-adapter explain hpa {hpa.name} -n {hpa.namespace}"
    target = workload_of(facts, hpa)
    pods = pods_of(facts, target) if target is not None and facts.pods.known else []
    if not pods:
        return "see why its pods have no value", explain
    ready = [pod for pod in pods if pod.runs and pod.pod.ready]
    if not ready:
        return "see why none of its pods is ready: only ready pods have values", explain
    lacking = {row.key: row for row in facts.without_value.value or ()}
    if why := next((lacking[pod.key] for pod in ready if pod.key in lacking), None):
        advice, action = fix_of_reason(facts, why)
        return f"its pods have no value ({why.reason}): {advice}", action
    if are_measured(facts, ready):
        words = "its ready pods have GPU values: see which metric or selector has none, or whether "
        return f"{words}the condition is older than the values", explain
    return "see why its pods have no value", explain


def _replace(hpa: Hpa, path: str, value: Mapping[str, object]) -> str | Fix:
    """Return how a row of a list is replaced; empty for a file."""
    return "" if hpa.origin else replace_row(hpa.manifest, path, value)


def _grant(facts: Facts, group: str) -> tuple[str, str]:
    """Return the fix for a right that the controller lacked at its last sync, and the command."""
    reviews = facts.hpa_rights.value or ()
    group_reviews = [review for review in reviews if review.resource.endswith(f".{group}")]
    if any(not review.allowed for review in group_reviews):
        return "grant the right with the command of GMA009", ""
    if group_reviews:
        return "nothing, if it has the right by now: it reads metrics again at its next sync", ""
    return "grant the right to the HPA controller", grant_controller(group)


def _failing_hpas(facts: Facts) -> Iterator[tuple[Hpa, SeenCondition]]:
    """Yield the HPAs that get no metric, each with the condition that says so."""
    for hpa in facts.hpas.read():
        asks = any(metric.type in OURS for metric in hpa.metrics)
        if asks and _concerns(facts, hpa):
            yield from ((hpa, condition) for condition in _failures(hpa))
