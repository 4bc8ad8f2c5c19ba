"""Checks of HPAs: metrics' names, replica counts, behavior, conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from adapter.hpa import ManifestError, from_manifest
from adapter.pipeline.catalog.nearest import nearest_metric
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.tools.client.errors import MissingRight, missing_right
from adapter.tools.client.hpacommands import change_hpa, edit_hpa, grant_controller, replace_row
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.asked import OURS, needs_pods, targets
from adapter.tools.doctor.checks.ours import fix_of_reason, measured
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.scaled import pods_of, workload_of

_LIKE_OURS: Final = re.compile(r"gpu|dcgm|vllm|triton|tgi_|sglang|inference|nv_", re.IGNORECASE)


def metrics(facts: Facts) -> Iterator[tuple[Hpa, HpaMetric]]:
    """Yield the metrics of HPAs that the adapter serves."""
    names = servedmetrics.metrics(facts.settings)
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            if metric.type in OURS and metric.name in names:
                yield hpa, metric


def patch(hpa: Hpa, path: str, value: object) -> str | Fix:
    """Return how one field of an HPA is set so that it lasts; empty for a file."""
    return "" if hpa.origin else change_hpa(hpa.manifest, path, value)


def edit(hpa: Hpa, words: str = "correct it") -> str | Fix:
    """Return how a person changes an HPA so that it lasts; empty for a file."""
    return "" if hpa.origin else edit_hpa(hpa.manifest, words)


@check("GMA401", CheckSection.HPAS, "every HPA asks for a metric that exists")
def unknown_metric(facts: Facts) -> Iterator[Finding]:
    """An HPA names a metric that the adapter does not serve. It reports `FailedGetPodsMetric`.

    Correct the name (`docs/metrics.md`), or add a metric of your own to `metrics` in the settings.
    """
    names = servedmetrics.metrics(facts.settings)
    installed = facts.release.known and facts.release.value is not None
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            if metric.type not in ("Pods", "Object") or metric.name in names:
                continue
            near = nearest_metric(metric.name, names)
            if not (near or installed or _LIKE_OURS.search(metric.name)):
                continue
            guess = f"did you mean {near}?" if near else "docs/metrics.md lists the metrics"
            at = f"{metric.at}.{metric.key}.metric.name"
            yield Finding(
                hpa.subject,
                f"asks for {metric.name!r}, which is not a metric of the adapter; {guess}",
                f"set {at} to {near}" if near else f"correct {at}",
                patch(hpa, at, near) if near else edit(hpa, f"correct {at}"),
            )


@check("GMA405", CheckSection.HPAS, "HPAs have room to scale", Severity.WARNING)
def no_room(facts: Facts) -> Iterator[Finding]:
    """`minReplicas` equals `maxReplicas`, so the HPA never changes anything.

    Raise `maxReplicas`, or delete the HPA.
    """
    for hpa in facts.hpas.read():
        if hpa.high is not None and hpa.low == hpa.high and asks_ours(facts, hpa):
            yield Finding(
                hpa.subject,
                f"minReplicas and maxReplicas are both {hpa.low}: it never scales",
                f"raise spec.maxReplicas to the replicas that you can afford (the command says "
                f"{hpa.high + 1}), or delete the HPA",
                patch(hpa, "spec.maxReplicas", hpa.high + 1),
            )


def asks_ours(facts: Facts, hpa: Hpa) -> bool:
    """Return whether an HPA uses a metric of the adapter."""
    names = servedmetrics.metrics(facts.settings)
    return any(metric.type in OURS and metric.name in names for metric in hpa.metrics)


def _closed(hpa: Hpa, way: str) -> str:
    """Return why the behavior forbids a direction; empty if it does not."""
    rules = hpa.behavior.get(way) or {}
    if rules.get("selectPolicy") == "Disabled":
        return f"spec.behavior.{way}.selectPolicy is Disabled"
    return ""


@check("GMA406", CheckSection.HPAS, "HPAs can scale in", Severity.WARNING)
def never_in(facts: Facts) -> Iterator[Finding]:
    """`behavior.scaleDown.selectPolicy: Disabled` keeps every replica that a peak has added, with
    its GPU, until somebody scales by hand.

    Remove it. To scale in slowly, use a longer `stabilizationWindowSeconds`, or a policy of one pod
    in several minutes.
    """
    for hpa in facts.hpas.read():
        if asks_ours(facts, hpa) and (why := _closed(hpa, "scaleDown")):
            yield Finding(
                hpa.subject,
                f"never scales in: {why}",
                "set spec.behavior.scaleDown.selectPolicy to Max, Kubernetes' default",
                patch(hpa, "spec.behavior.scaleDown.selectPolicy", "Max"),
            )


@check("GMA407", CheckSection.HPAS, "HPAs can scale out", Severity.WARNING)
def never_out(facts: Facts) -> Iterator[Finding]:
    """With `behavior.scaleUp.selectPolicy: Disabled` the HPA never adds a replica.

    Remove it.
    """
    for hpa in facts.hpas.read():
        if asks_ours(facts, hpa) and (why := _closed(hpa, "scaleUp")):
            yield Finding(
                hpa.subject,
                f"never scales out: {why}",
                "set spec.behavior.scaleUp.selectPolicy to Max",
                patch(hpa, "spec.behavior.scaleUp.selectPolicy", "Max"),
            )


@check(
    "GMA408",
    CheckSection.HPAS,
    "something wakes workloads at 0 replicas",
    effect=FindingEffect.FAULT,
)
def never_wakes(facts: Facts) -> Iterator[Finding]:
    """`minReplicas` is 0 and every metric is about the workload's own pods: of type Pods, an Object
    metric of the target, or an External metric that selects its pods. At 0 replicas no metric has a
    value, so the HPA never scales out again. The API server rejects an HPA with nothing but Pods
    metrics. A ScaledObject, whose
    `minReplicaCount` is 0 by default, never wakes if each trigger asks about the workload's own
    pods.

    Set `minReplicas: 1` or `minReplicaCount: 1`, or add a metric that has a value without pods,
    such as the queue of a gateway (`docs/keda.md#scale-to-and-from-zero`).
    """
    for hpa in facts.hpas.read():
        if hpa.low != 0 or hpa.owner:
            continue
        if all(needs_pods(facts, hpa, metric) for metric in hpa.metrics):
            yield Finding(
                hpa.subject,
                "minReplicas is 0, and without a pod none of its metrics has a value",
                "set spec.minReplicas to 1, or add a metric that sees work without a pod, such as "
                "the queue of a gateway",
                patch(hpa, "spec.minReplicas", 1),
                effect=FindingEffect.CAUSE if hpa.current == 0 else None,
            )
    own = Counter(each.subject for each in targets(facts) if each.asked.own)
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        triggers = len(scaled.triggers)
        if scaled.low == 0 and triggers and own[scaled.subject] == triggers == len(scaled.ours):
            target = workload_of(facts, scaled)
            asleep = target is not None and target.spec.replicas == 0
            yield Finding(
                scaled.subject,
                "scales to 0, and without a pod none of its triggers has a value",
                "set spec.minReplicaCount to 1, or add a trigger that sees work without a pod",
                scaled.patch("spec.minReplicaCount", 1),
                effect=FindingEffect.CAUSE if asleep else None,
            )


@check("GMA409", CheckSection.HPAS, "manifests of HPAs are valid")
def invalid(facts: Facts) -> Iterator[Finding]:
    """The API server would reject the manifest, or the controller could not use it (manifests in
    files only).

    Correct the key that the message names.
    """
    if not facts.offline:
        raise NotApplicableError("the API server has accepted the HPAs of the cluster")
    for hpa in facts.hpas.read():
        spec = hpa.manifest.get("spec") or {}
        rows = [row for row in spec.get("metrics") or () if isinstance(row, dict)]
        kept = [row for row in rows if row.get("type") in OURS]
        if rows and not kept:
            continue
        spec = {**spec, "metrics": kept}
        if hpa.low == 0:  # GMA408 judges this
            spec["minReplicas"] = 1
        try:
            from_manifest({**hpa.manifest, "spec": spec})
        except ManifestError as error:
            yield Finding(hpa.subject, str(error), "correct this key of the manifest")


@check("GMA410", CheckSection.HPAS, "HPAs get their metrics", effect=FindingEffect.RESULT)
def failing(facts: Facts) -> Iterator[Finding]:
    """The condition `ScalingActive` says that the HPA controller could not read a metric. The HPA
    keeps its replica count.

    `gpu-metrics-adapter explain hpa` shows each pod's value, and why one has none. HPAs whose
    controller lacks one right are one finding, with the command that grants it.
    """
    facts.live()
    denied: dict[str, list[tuple[Hpa, MissingRight]]] = {}
    for hpa, condition in _failing(facts):
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


@check("GMA454", CheckSection.HPAS, "HPAs do not ask the resource API for GPUs")
def gpu_as_resource(facts: Facts) -> Iterator[Finding]:
    """A metric of type Resource or ContainerResource names a GPU, such as `nvidia.com/gpu`.
    `metrics.k8s.io` has `cpu` and `memory` only, so the HPA reports `FailedGetResourceMetric`.

    Use a Pods metric: `gpu_utilization`, with a target of type `AverageValue`.
    """
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            if metric.type in OURS or not facts.gpu_resources.is_gpu(metric.name):
                continue
            row = {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "gpu_utilization"},
                    "target": {"type": "AverageValue", "averageValue": "70"},
                },
            }
            yield Finding(
                hpa.subject,
                f"asks metrics.k8s.io for {metric.name}, which has cpu and memory only",
                f"replace {metric.at} by a Pods metric, such as gpu_utilization",
                _replace(hpa, metric.at, row),
            )


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
    if measured(facts, ready):
        words = "its ready pods have GPU values: see which metric or selector has none, or whether "
        return f"{words}the condition is older than the values", explain
    return "see why its pods have no value", explain


def _replace(hpa: Hpa, path: str, value: Mapping[str, object]) -> str | Fix:
    """Return how a row of a list is replaced; empty for a file."""
    return "" if hpa.origin else replace_row(hpa.manifest, path, value)


def _grant(facts: Facts, group: str) -> tuple[str, str]:
    """Return the fix for a right that the controller lacked at its last sync, and the command."""
    reviews = facts.hpa_rights.value or ()
    own = [review for review in reviews if review.resource.endswith(f".{group}")]
    if any(not review.allowed for review in own):
        return "grant the right with the command of GMA009", ""
    if own:
        return "nothing, if it has the right by now: it reads metrics again at its next sync", ""
    return "grant the right to the HPA controller", grant_controller(group)


def _failing(facts: Facts) -> Iterator[tuple[Hpa, SeenCondition]]:
    """Yield the HPAs that get none of the adapter's metrics, with the condition that says so."""
    names = servedmetrics.metrics(facts.settings)
    for hpa in facts.hpas.read():
        asked = [m for m in hpa.metrics if m.type in OURS]
        if not any(metric.name in names for metric in asked):
            continue
        for condition in hpa.conditions:
            failed = condition.type == "ScalingActive" and condition.status == "False"
            if failed and condition.reason.startswith("FailedGet"):
                yield hpa, condition
