"""Checks of what HPAs scale: the target exists, has pods and GPUs, and belongs to one HPA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adapter.catalog.metric import Scope
from adapter.causes import CauseCode
from adapter.client.hpacommands import one_hpa
from adapter.cluster.changes import edit as change_object
from adapter.cluster.fixes import lasting
from adapter.cluster.pod import Pod
from adapter.doctor import servedmetrics
from adapter.doctor.changed import workload
from adapter.doctor.checks.hpas import edit, metrics, patch
from adapter.doctor.facts import Facts, Hpa
from adapter.doctor.hpacauses import asks_gpu, of_codes
from adapter.doctor.model import CheckSection, Finding, Severity, check
from adapter.doctor.scaled import pods_of, target_of

_READ: Final = ("Deployment", "StatefulSet")
"""Kinds of scale targets that are read."""
_QUEUES: Final = frozenset(
    field
    for name in ("inference_requests_waiting", "inference_requests_running")
    for formula in servedmetrics.CATALOG.metrics[name].formulas
    for field in formula.fields
)
_SATURATED: Final = 85


@check("GMA421", CheckSection.HPAS, "the scale targets of HPAs exist")
def no_target(facts: Facts) -> Iterator[Finding]:
    """The HPA scales an object that does not exist. It reports `FailedGetScale`. An HPA scales
    objects of its own namespace only: if another namespace has the target, it is named.

    Correct `scaleTargetRef`, create the HPA in the other namespace, or delete the HPA.
    """
    facts.live()
    workloads = facts.workloads.read()
    moved = {hpa.subject: cause for hpa, cause in of_codes(facts, CauseCode.WRONG_NAMESPACE)}
    for hpa in facts.hpas.read():
        if hpa.kind not in _READ or target_of(facts, hpa) is not None:
            continue
        if (cause := moved.get(hpa.subject)) is not None:
            yield Finding(hpa.subject, cause.text, cause.fix, cause.command)
            continue
        names = [
            each.metadata.name
            for each in workloads
            if each.metadata.namespace == hpa.namespace and each.kind == hpa.kind
        ]
        there = f"; there is {', '.join(sorted(names)[:3])}" if names else ""
        at = "spec.scaleTargetRef.name"
        yield Finding(
            hpa.subject,
            f"its target {hpa.kind} {hpa.target} does not exist{there}",
            f"set {at} to an existing {hpa.kind}, or delete the HPA",
            patch(hpa, at, names[0]) if len(names) == 1 else edit(hpa, f"correct {at}"),
        )


@check("GMA422", CheckSection.HPAS, "the pods of HPAs match what the metrics select")
def nothing_selected(facts: Facts) -> Iterator[Finding]:
    """An HPA's target selects no pod although it should have replicas, or the `selector` of its
    metric matches no pod. The metric has no value.

    Correct the selector. A Pods metric normally needs none: the HPA asks for the pods of its
    target.
    """
    facts.live()
    for hpa, metric in metrics(facts):
        if metric.selector is None or metric.type != "External":
            continue
        labels = metric.selector.get("matchLabels") or {}
        wanted = {key: value for key, value in labels.items() if key not in _OWN_LABELS}
        here = [each.pod for each in facts.pods.read() if each.pod.ref.namespace == hpa.namespace]
        if wanted and not any(_has(pod, wanted) for pod in here):
            said = ",".join(f"{key}={value}" for key, value in sorted(wanted.items()))
            yield Finding(
                hpa.subject,
                f"the selector of {metric.name} matches no pod of the namespace: {said}",
                f"correct {metric.at}.{metric.key}.metric.selector",
                f"kubectl -n {hpa.namespace} get pods --show-labels",
            )
    yield from _without_pods(facts)


_OWN_LABELS: Final = frozenset(
    (
        *("pod", "node", "workload", "workload_kind", "device", "model", "mig_profile"),
        *("container", "sharing", "attribution", "aggregate"),
    )
)
"""Labels that external metrics define: docs/external-metrics.md."""


def _has(pod: Pod, wanted: Mapping[str, str]) -> bool:
    return all(pod.labels.get(key) == value for key, value in wanted.items())


_REFUSED: Final = (CauseCode.QUOTA, CauseCode.POD_SECURITY, CauseCode.ADMISSION)
"""Causes of missing pods that checks of their own find."""


def _without_pods(facts: Facts) -> Iterator[Finding]:
    refused = {hpa.subject for hpa, _ in of_codes(facts, *_REFUSED)}
    for hpa in dict.fromkeys(hpa.subject for hpa, _ in metrics(facts)):
        found = next(each for each in facts.hpas.read() if each.subject == hpa)
        target = target_of(facts, found)
        if target is None or not target.spec.replicas or pods_of(facts, target):
            continue
        if hpa in refused:
            continue
        yield Finding(
            hpa,
            f"its target {found.kind} {found.target} wants {target.spec.replicas} replicas and "
            "has no pod",
            "see why no pod is created",
            f"kubectl -n {found.namespace} describe {found.kind.lower()} {found.target}",
        )


@check("GMA423", CheckSection.HPAS, "one autoscaler scales each workload")
def two_autoscalers(facts: Facts) -> Iterator[Finding]:
    """Two HPAs, or an HPA and a ScaledObject, scale one workload. Each sets the replica count that
    its own metrics call for, so the count moves back and forth. The HPA controller reports
    `AmbiguousSelector` and scales none of them.

    Put all metrics into one HPA or one ScaledObject: the largest count of all metrics applies.
    """
    found: dict[tuple[str, str, str], list[Hpa]] = defaultdict(list)
    for hpa in facts.hpas.read():
        found[hpa.namespace, hpa.kind, hpa.target].append(hpa)
    scaled = facts.scaledobjects.value if facts.scaledobjects.known else ()
    for each in scaled or ():
        hpas = found.get((each.namespace, each.kind, each.target), [])
        own = [hpa for hpa in hpas if not hpa.owner]
        for hpa in own:
            names = ", ".join(metric.name for metric in hpa.metrics)
            yield Finding(
                hpa.subject,
                f"ScaledObject {each.name} scales {hpa.kind} {hpa.target} too",
                f"add a trigger for {names} to the ScaledObject, then delete hpa {hpa.name}",
                each.edit(f"add a trigger for {names}"),
            )
    for hpas in found.values():
        own = sorted((hpa for hpa in hpas if not hpa.owner), key=lambda hpa: hpa.name)
        if len(own) > 1:
            yield _twice(own)


def _twice(hpas: Sequence[Hpa]) -> Finding:
    first, *others = hpas
    names = " and ".join(f"hpa {hpa.name}" for hpa in others)
    scale = "scales" if len(others) == 1 else "scale"
    manifests = [hpa.manifest for hpa in hpas]
    return Finding(
        first.subject,
        f"{names} {scale} {first.kind} {first.target} too",
        f"move the metrics of {names} into hpa {first.name}, and delete {names}",
        "" if any(hpa.origin for hpa in hpas) else one_hpa(manifests) or "",
    )


@check(
    "GMA424", CheckSection.HPAS, "workloads that scale on GPU metrics have GPUs", Severity.WARNING
)
def no_gpu(facts: Facts) -> Iterator[Finding]:
    """The HPA asks for a GPU metric, and the pods of its target request no GPU in their spec. The
    adapter serves GPU metrics only for pods that request one, because exporters name pods
    wrongly otherwise.

    Request the GPU in the pod template (`limits: {nvidia.com/gpu: 1}`), or use a metric of the
    inference server.
    """
    names = servedmetrics.metrics(facts.settings)
    resources = facts.gpu_resources
    seen = set()
    for hpa, metric in metrics(facts):
        if names[metric.name].scope is not Scope.DEVICE or metric.type != "Pods":
            continue
        target = target_of(facts, hpa)
        if target is None or hpa.subject in seen or asks_gpu(target, resources):
            continue
        seen.add(hpa.subject)
        kind, name = hpa.kind.lower(), hpa.target
        of = workload(facts, hpa.kind, hpa.namespace, name)
        yield Finding(
            hpa.subject,
            f"asks for {metric.name}, and the pods of {kind} {name} request no GPU",
            "request the GPU in the pod template, or use a metric of the inference server",
            "" if hpa.origin else lasting(of, change_object(of, "request the GPU")),
        )


@check("GMA425", CheckSection.HPAS, "servers with a queue scale on it", Severity.WARNING)
def saturated(facts: Facts) -> Iterator[Finding]:
    """The HPA scales an inference server on GPU utilization with a target of 85 % or more. A
    server that batches requests keeps its GPU busy at low load, so utilization says little about
    waiting requests. The server exposes its queue, which does.

    Use `inference_requests_waiting` or `inference_requests_running`, alone or beside utilization.
    """
    pages = facts.server_pages.read()
    for hpa, metric in metrics(facts):
        utilization = metric.name.startswith("gpu_utilization")
        if not utilization or metric.target is None or metric.target < _SATURATED:
            continue
        names = {each.name for each in hpa.metrics}
        target = target_of(facts, hpa)
        if target is None or any(name.startswith("inference_") for name in names):
            continue
        keys = [each.key for each in pods_of(facts, target)]
        if any(key in pages and pages[key].fields & _QUEUES for key in keys):
            row = {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "inference_requests_running"},
                    "target": {"type": "AverageValue", "averageValue": "16"},
                },
            }
            yield Finding(
                hpa.subject,
                f"scales at {metric.target} % utilization, and its pods report their queue",
                "add the metric inference_requests_running or inference_requests_waiting",
                patch(hpa, f"spec.metrics.{len(hpa.metrics)}", row),
            )
