"""Checks of HPAs: metrics' names, replica counts, behavior, conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from adapter.answers.causes import CauseCode
from adapter.answers.causes.scaling import other_writer
from adapter.figures import age
from adapter.hpa import ManifestError, from_manifest
from adapter.pipeline.catalog.nearest import nearest_metric
from adapter.pipeline.cluster.changes import ChangedObject, scale
from adapter.pipeline.cluster.fixes import Fix, lasting
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.pipeline.cluster.podobjects import SeenWorkload
from adapter.tools.client.errors import MissingRight, missing_right
from adapter.tools.client.hpacommands import change_hpa, edit_hpa, grant_controller, replace_row
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.asked import OURS, targets
from adapter.tools.doctor.checks.ours import fix_of_reason, measured
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.hpacauses import concerns, of_codes
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
    """An HPA names a metric that nobody serves: the name is misspelled, a rule of an adapter is
    missing, or the metrics API has no server. It reports `FailedGetPodsMetric`,
    `FailedGetObjectMetric` or `FailedGetExternalMetric`, and keeps its replicas. A metric that
    another program may serve is reported only while the HPA does not get it.

    Correct the name (`docs/metrics.md`), add a metric of your own to `metrics` in the settings, or
    a rule for it (`docs/migrate-from-prometheus-adapter.md`).
    """
    names = servedmetrics.metrics(facts.settings)
    installed = facts.release.known and facts.release.value is not None
    silent = _without_api(facts)
    for hpa in facts.hpas.read():
        stuck = any(_fails(row) for row in hpa.conditions)
        lacking = stuck and concerns(hpa, workload_of(facts, hpa), names, facts.gpu_resources)
        for metric in hpa.metrics:
            if metric.type not in OURS or metric.name in names:
                continue
            near = nearest_metric(metric.name, names)
            ours = near or installed or _LIKE_OURS.search(metric.name)
            # KEDA names the External metrics of its HPAs; other programs serve theirs.
            foreign = metric.type == "External" and (hpa.owner or not stuck)
            foreign = foreign or (hpa.subject in silent and not near)
            if not foreign and (ours or lacking):
                yield _unserved(hpa, metric, near)


def _without_api(facts: Facts) -> Collection[str]:
    """Return the HPAs whose metrics API has no server, or another one: that is their cause, and
    nobody can say which metrics it would have. None if it is not known."""
    if not (facts.workloads.known and facts.pods.known and facts.apiservices.known):
        return ()
    codes = (CauseCode.METRICS_API_MISSING, CauseCode.METRICS_API_DOWN, CauseCode.METRICS_API_TAKEN)
    return {hpa.subject for hpa, _ in of_codes(facts, *codes)}


def _unserved(hpa: Hpa, metric: HpaMetric, near: str) -> Finding:
    """Return the finding of a metric that the adapter does not serve."""
    at = f"{metric.at}.{metric.key}.metric.name"
    guess = f"did you mean {near}?" if near else "docs/metrics.md lists the metrics"
    words = f"set {at} to {near}" if near else f"correct {at}, or add a rule or metric of this name"
    action = patch(hpa, at, near) if near else edit(hpa, f"correct {at}")
    text = f"asks for {metric.name!r}, which is not a metric of the adapter; {guess}"
    return Finding(hpa.subject, text, words, action)


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
    """`minReplicas` is 0 and every metric is of type Pods. At 0 replicas no metric has a value, so
    the HPA never scales out again; the API server rejects such an HPA. A ScaledObject, whose
    `minReplicaCount` is 0 by default, never wakes if each trigger asks about the workload's own
    pods. An HPA does not wake a target that somebody else scaled to 0 (`ScalingDisabled`), such as
    Argo Rollouts, which empties the Deployment that a Rollout refers to, or the workload's owner.
    A person who has scaled a target to 0, with kubectl or in its manifest, knows it.

    Set `minReplicas: 1` or `minReplicaCount: 1`, or add a metric that has a value without pods,
    such as the queue of a gateway (`docs/keda.md#scale-to-and-from-zero`).
    """
    for hpa in facts.hpas.read():
        yield from _put_to_zero(facts, hpa)
        types = {metric.type for metric in hpa.metrics}
        if hpa.low == 0 and not types & {"Object", "External"} and not hpa.owner:
            yield Finding(
                hpa.subject,
                "minReplicas is 0, and without a pod none of its metrics has a value",
                "set spec.minReplicas to 1, or add an Object or External metric",
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


def _put_to_zero(facts: Facts, hpa: Hpa) -> Iterator[Finding]:
    """Yield that a program scaled the target to 0, and which. A person who did so knows it:
    `explain` and `top` say that the HPA is paused.
    """
    row = next((row for row in hpa.conditions if row.reason == "ScalingDisabled"), None)
    if row is None or hpa.owner or not hpa.low:
        return
    target = workload_of(facts, hpa)
    by = "" if target is None else _scaled_by(target)
    if not by and (target is not None or hpa.kind in ("Deployment", "StatefulSet")):
        return
    since = "" if row.since is None else f" for {age(facts.now - row.since)}"
    text = f"its target {hpa.kind} {hpa.target} is at 0 replicas{since}{by}; an HPA wakes no "
    words = f"scale it to {hpa.low} if it is to serve, or delete the HPA"
    manager = None if target is None else target.metadata.manager
    of = ChangedObject(hpa.kind, hpa.namespace, hpa.target, manager, group=_group_of(hpa))
    action: str | Fix = lasting(of, scale(of, hpa.low))
    if "rollouts-controller" in by:
        words = "let the HPA scale the Rollout that has taken the pods over (scaleTargetRef)"
        action = edit(hpa, "name the Rollout in spec.scaleTargetRef")
    text += "target that somebody else scaled to 0"
    yield Finding(hpa.subject, text, words, action, Severity.WARNING, FindingEffect.FAULT)


def _scaled_by(target: SeenWorkload) -> str:
    """Return the program that set the size: the owner of the workload, or one that writes nothing
    else of it; empty for a person with kubectl, or for the program that applies the manifest."""
    owner = next((row for row in target.metadata.owner_references if row.controller), None)
    writer = other_writer(target.writers)
    if writer is not None and writer.replicas and not writer.template:
        return "" if writer.manager.startswith("kubectl") else f", by {writer.manager}"
    return f", by {owner.kind} {owner.name}" if owner is not None else ""


def _group_of(hpa: Hpa) -> str:
    reference = (hpa.manifest.get("spec") or {}).get("scaleTargetRef") or {}
    return str(reference.get("apiVersion") or "").rpartition("/")[0]


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
    """Yield the HPAs of GPU pods, or on the adapter's metrics, that get no metric, each with the
    condition that says so."""
    names = servedmetrics.metrics(facts.settings)
    for hpa in facts.hpas.read():
        failed = [row for row in hpa.conditions if _fails(row)]
        if failed and concerns(hpa, workload_of(facts, hpa), names, facts.gpu_resources):
            yield from ((hpa, condition) for condition in failed)


def _fails(condition: SeenCondition) -> bool:
    """Return whether a condition says that the HPA gets no metric."""
    failed = condition.type == "ScalingActive" and condition.status == "False"
    return failed and condition.reason.startswith("FailedGet")
