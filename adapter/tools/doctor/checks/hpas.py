"""Checks of HPAs: replica counts and behavior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from adapter.answers.causes.scaling import other_writer
from adapter.answers.keda import sleep
from adapter.figures import age
from adapter.hpa import ManifestError, from_manifest
from adapter.pipeline.catalog.serverkind import RUNNING
from adapter.pipeline.cluster.changes import ChangedObject, scale
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.client.hpacommands import change_hpa, edit_hpa
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.askedmetrics import OURS, needs_pods
from adapter.tools.doctor.checks.scaledobjects import concerns_scaledobject
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.scaletargets import workload_of

REQUESTS_ROW: Final[dict[str, Any]] = {
    "type": "Pods",
    "pods": {
        "metric": {"name": RUNNING},
        "target": {"type": "AverageValue", "averageValue": "16"},
    },
}
"""The metric of an HPA that follows the load of a server."""


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


@check("GMA405", CheckSection.HPAS, "HPAs have room to scale", Severity.WARNING)
def no_room(facts: Facts) -> Iterator[Finding]:
    """`minReplicas` equals `maxReplicas`, so the HPA never changes anything.

    Raise `maxReplicas`, or delete the HPA.
    """
    for hpa in facts.hpas.read():
        if hpa.high is not None and hpa.low == hpa.high and asks_ours(facts, hpa):
            finding = Finding(
                hpa.subject,
                f"minReplicas and maxReplicas are both {hpa.low}: it never scales",
                "raise spec.maxReplicas to the replicas that you can afford, or delete the HPA",
                patch(hpa, "spec.maxReplicas", hpa.high + 1),
            )
            if finding.command:
                words = f"afford (the command says {hpa.high + 1})"
                finding = finding._replace(advice=finding.advice.replace("afford", words))
            yield finding


def asks_ours(facts: Facts, hpa: Hpa) -> bool:
    """Return whether an HPA uses a metric of the adapter."""
    names = servedmetrics.metrics(facts.settings)
    return any(metric.type in OURS and metric.name in names for metric in hpa.metrics)


def _why_closed(hpa: Hpa, way: str) -> str:
    """Return why the behavior forbids a direction; empty if it does not."""
    rules = hpa.behavior.get(way) or {}
    if rules.get("selectPolicy") == "Disabled":
        return f"spec.behavior.{way}.selectPolicy is Disabled"
    return ""


@check("GMA406", CheckSection.HPAS, "HPAs can scale in", Severity.WARNING)
def never_in(facts: Facts) -> Iterator[Finding]:
    """With `behavior.scaleDown.selectPolicy: Disabled` the HPA never removes a replica, nor its
    GPU.

    Remove it. To scale in slowly, use a longer `stabilizationWindowSeconds`, or a policy of one pod
    in several minutes.
    """
    for hpa in facts.hpas.read():
        if asks_ours(facts, hpa) and (why := _why_closed(hpa, "scaleDown")):
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
        if asks_ours(facts, hpa) and (why := _why_closed(hpa, "scaleUp")):
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
    """`minReplicas` is 0 (a ScaledObject's `minReplicaCount` by default), and every metric is about
    the workload's own pods: of type Pods, an Object metric of the target, or an External metric or
    trigger that selects its pods. At 0 replicas no metric has a value, so nothing scales it out
    again. Or another program than the HPA scaled it to 0 (`ScalingDisabled`), such as Argo
    Rollouts, which empties the Deployment that a Rollout refers to. A target that a person scaled
    to 0 is not reported.

    Set `minReplicas: 1` or `minReplicaCount: 1`, or add a metric that has a value without pods,
    such as the queue of a gateway (`docs/keda.md#scale-to-and-from-zero`).
    """
    for hpa in facts.hpas.read():
        yield from _put_to_zero(facts, hpa)
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
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        target = workload_of(facts, scaled)
        labels = None if target is None else target.spec.template.metadata.labels
        cause = sleep.never_wakes(scaled, labels)
        if cause is not None and concerns_scaledobject(facts, scaled, target):
            asleep = target is not None and target.spec.replicas == 0
            effect = FindingEffect.CAUSE if asleep else None
            yield Finding(scaled.subject, cause.text, cause.fix, cause.command, effect=effect)


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
    of = ChangedObject(
        hpa.kind, hpa.namespace, hpa.target, manager, group=hpa.version.rpartition("/")[0]
    )
    action: str | Fix = make_lasting(of, scale(of, hpa.low))
    if "rollouts-controller" in by:
        words = "let the HPA scale the Rollout that has taken the pods over (scaleTargetRef)"
        action = edit(hpa, "name the Rollout in spec.scaleTargetRef")
    text += "target that somebody else scaled to 0"
    yield Finding(hpa.subject, text, words, action, Severity.WARNING, FindingEffect.FAULT)


def _scaled_by(target: SeenWorkload) -> str:
    """Return the program that set the size: the owner of the workload, or one that writes nothing
    else of it; empty for a person with kubectl, or for the program that applies the manifest."""
    owner = target.metadata.controller
    writer = other_writer(target.writers)
    if writer is not None and writer.replicas and not writer.template:
        return "" if writer.manager.startswith("kubectl") else f", by {writer.manager}"
    return f", by {owner.kind} {owner.name}" if owner is not None else ""


@check("GMA409", CheckSection.HPAS, "manifests of HPAs are valid")
def invalid_manifests(facts: Facts) -> Iterator[Finding]:
    """The API server rejects the manifest, or the controller cannot use it (with `-f` only).

    Correct the key that the message names.
    """
    if not facts.offline:
        raise NotApplicableError("the API server has accepted the HPAs of the cluster")
    for hpa in facts.hpas.read():
        # GMA408 judges a minimum of 0.
        spec = {**hpa.manifest["spec"]} | ({"minReplicas": 1} if hpa.low == 0 else {})
        try:
            from_manifest({**hpa.manifest, "spec": spec})
        except ManifestError as error:
            yield Finding(hpa.subject, str(error), "correct this key of the manifest")
