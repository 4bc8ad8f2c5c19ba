"""Checks of what HPAs scale: the target exists, has pods and GPUs, and has a scale to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Final

from adapter.answers.causes import CauseCode
from adapter.pipeline.attribution.serieslabels import (
    OWN_LABELS,
    parse_selector,
    selector_faults,
    selects_value,
)
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.cluster.changes import edit as change_object
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.pod import Pod
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.askedselectors import invalid_selectors, selectors
from adapter.tools.doctor.changedobjects import workload
from adapter.tools.doctor.checks.hpas import REQUESTS_ROW, asks_ours, edit, metrics, patch
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.hpacauses import asks_gpu, of_codes
from adapter.tools.doctor.model import CheckSection, Finding, FindingEffect, Severity, check
from adapter.tools.doctor.scaletargets import pods_of, selection, target_of
from apiservice.labels.requirement import Requirement, predicate

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
    """The target does not exist (`FailedGetScale`), or is in another namespace: an HPA scales
    objects of its own namespace only.

    Correct `scaleTargetRef`, create the HPA in the other namespace, or delete the HPA.
    """
    facts.require_cluster()
    workloads = facts.workloads.read()
    moved = {hpa.subject: cause for hpa, cause in of_codes(facts, CauseCode.WRONG_NAMESPACE)}
    for hpa in facts.hpas.read():
        if hpa.kind not in _READ or target_of(facts, hpa) is not None:
            continue
        if (cause := moved.get(hpa.subject)) is not None:
            yield Finding(hpa.subject, cause.text, cause.fix, cause.command)
            continue
        names = [
            candidate.metadata.name
            for candidate in workloads
            if candidate.metadata.namespace == hpa.namespace and candidate.kind == hpa.kind
        ]
        choices = f"; there is {', '.join(sorted(names)[:3])}" if names else ""
        path = "spec.scaleTargetRef.name"
        yield Finding(
            hpa.subject,
            f"its target {hpa.kind} {hpa.target} does not exist{choices}",
            f"set {path} to an existing {hpa.kind}, or delete the HPA",
            patch(hpa, path, names[0]) if len(names) == 1 else edit(hpa, f"correct {path}"),
        )


@check("GMA422", CheckSection.HPAS, "the pods of HPAs match what the metrics select")
def nothing_selected(facts: Facts) -> Iterator[Finding]:
    """An HPA's target selects no pod although it should have replicas, or the `selector` of its
    External metric matches no pod.

    Correct the selector. A Pods metric normally needs none.
    """
    facts.require_cluster()
    taken = _hpas_of_others(facts)
    for hpa, metric in metrics(facts):
        if metric.selector is None or metric.type != "External" or hpa.subject in taken:
            continue
        selector = parse_selector(metric.selector)
        wanted = (
            [
                row
                for row in selector.requirements
                if row.key not in OWN_LABELS and not selects_value(row.key, metric.name)
            ]
            if selector
            else []
        )
        pods = [pod.pod for pod in selection(facts).within(hpa.namespace)]
        if wanted and not any(_has_labels(pod, wanted) for pod in pods):
            requirements = ",".join(map(_words, wanted))
            yield Finding(
                hpa.subject,
                f"the selector of {metric.name} matches no pod of the namespace: {requirements}",
                f"correct {metric.at}.{metric.key}.metric.selector",
                f"kubectl -n {hpa.namespace} get pods --show-labels",
            )
    yield from _targets_without_pods(facts)


def _hpas_of_others(facts: Facts) -> Set[str]:
    """Return the HPAs whose External metrics another program answers for (GMA444): it has other
    labels. Empty if the cluster was not read."""
    if not (facts.workloads.known and facts.pods.known and facts.apiservices.known):
        return frozenset()
    return {hpa.subject for hpa, _ in of_codes(facts, CauseCode.METRICS_API_TAKEN)}


def _has_labels(pod: Pod, wanted: Sequence[Requirement]) -> bool:
    return all(predicate(row)(pod.labels) for row in wanted)


def _words(row: Requirement) -> str:
    if row.op in ("in", "notin"):
        return f"{row.key} {row.op} ({','.join(row.values)})"
    return f"!{row.key}" if row.op == "!" else f"{row.key}{row.op}{''.join(row.values)}"


_REFUSED: Final = (CauseCode.QUOTA, CauseCode.POD_SECURITY, CauseCode.ADMISSION)
"""Causes of missing pods that checks of their own find."""


def _targets_without_pods(facts: Facts) -> Iterator[Finding]:
    refused = {hpa.subject for hpa, _ in of_codes(facts, *_REFUSED)}
    for subject in dict.fromkeys(hpa.subject for hpa, _ in metrics(facts)):
        hpa = next(hpa for hpa in facts.hpas.read() if hpa.subject == subject)
        target = target_of(facts, hpa)
        if target is None or not target.spec.replicas or pods_of(facts, target):
            continue
        if subject in refused:
            continue
        yield Finding(
            subject,
            f"its target {hpa.kind} {hpa.target} wants {target.spec.replicas} replicas and "
            "has no pod",
            "see why no pod is created",
            f"kubectl -n {hpa.namespace} describe {hpa.kind.lower()} {hpa.target}",
            effect=FindingEffect.RESULT,
        )


@check("GMA414", CheckSection.HPAS, "selectors of metrics name labels that series have")
def selects_no_series(facts: Facts) -> Iterator[Finding]:
    """The `selector` of a metric is not valid, or has a key that no series has, or a value that its
    key never has, so the metric has no value. `modelName` and `UUID` of dcgm-exporter are `model`
    and `device` here.

    Use the labels of `docs/external-metrics.md#labels`. The selector of a Pods or Object metric,
    and `metricSelector` of a trigger, select devices: `attribution`, `container`, `device`,
    `mig_profile`, `model`, `sharing`. That of `inference_slo_ratio` states a latency promise
    (docs/inference.md#promise-a-latency).
    """
    for hpa, metric, why in invalid_selectors(facts):
        path = metric.selector_path
        yield Finding(
            hpa.subject,
            f"{path} is not valid: {why}; the API server accepts it, and the HPA controller reads "
            f"no {metric.name} (FailedGet{metric.type}Metric)",
            f"correct {path}",
            edit(hpa, f"correct {path}"),
        )
    taken = _hpas_of_others(facts)
    for selector in selectors(facts):
        if selector.kind == "External" and selector.subject in taken:
            continue
        for why in selector_faults(selector.selector, selector.metric, selector.kind):
            message = f"the selector of {selector.metric} {why}"
            yield Finding(selector.subject, message, f"correct {selector.at}", selector.command)


_STOPPED: Final = ("FailedGetScale", "InvalidSelector", "AmbiguousSelector")
_OTHERS: Final = {
    "FailedGetScale": "see whether the target exists, and has a scale subresource",
    "InvalidSelector": "give the scale subresource of the target a selector (status.selector)",
    "AmbiguousSelector": "let one HPA scale these pods, or give the workloads other labels",
}


@check(
    "GMA455",
    CheckSection.HPAS,
    "the HPA controller can read the targets of HPAs",
    effect=FindingEffect.RESULT,
)
def stopped_hpas(facts: Facts) -> Iterator[Finding]:
    """The HPA controller cannot read the scale of the target (`FailedGetScale`), the target has no
    valid selector (`InvalidSelector`), or the selector matches pods that another HPA scales too
    (`AmbiguousSelector`).

    Correct what the condition says. See also GMA421 and GMA423.
    """
    facts.require_cluster()
    hpas = facts.hpas.read()
    number = Counter((hpa.namespace, hpa.kind, hpa.target) for hpa in hpas)
    for hpa in hpas:
        if not (asks_ours(facts, hpa) or hpa.owner):
            continue
        found_elsewhere = {
            "AmbiguousSelector": number[hpa.namespace, hpa.kind, hpa.target] > 1,
            "FailedGetScale": hpa.kind in _READ and target_of(facts, hpa) is None,
        }
        for row in hpa.conditions:
            if row.status != "False" or row.reason not in _STOPPED:
                continue
            if found_elsewhere.get(row.reason):
                continue
            yield Finding(
                hpa.subject,
                " ".join(f"{row.reason}: {row.message}".split()),
                _OTHERS[row.reason],
                f"gpu-metrics-adapter explain hpa {hpa.name} -n {hpa.namespace}",
            )


@check(
    "GMA424",
    CheckSection.HPAS,
    "workloads that scale on GPU metrics have GPUs",
    Severity.WARNING,
    effect=FindingEffect.CAUSE,
)
def no_gpu(facts: Facts) -> Iterator[Finding]:
    """The HPA asks for a GPU metric, and the pods of its target request no GPU. The adapter serves
    GPU metrics only for pods that request one.

    Request the GPU in the pod template (`limits: {nvidia.com/gpu: 1}`), or use a metric of the
    inference server.
    """
    names = servedmetrics.metrics(facts.settings)
    resources = facts.gpu_resources
    reported = set()
    for hpa, metric in metrics(facts):
        if names[metric.name].scope is not Scope.DEVICE or metric.type != "Pods":
            continue
        target = target_of(facts, hpa)
        if target is None or hpa.subject in reported or asks_gpu(target, resources):
            continue
        reported.add(hpa.subject)
        kind, name = hpa.kind.lower(), hpa.target
        of = workload(facts, hpa.kind, hpa.namespace, name)
        yield Finding(
            hpa.subject,
            f"asks for {metric.name}, and the pods of {kind} {name} request no GPU",
            "request the GPU in the pod template, or use a metric of the inference server",
            "" if hpa.origin else make_lasting(of, change_object(of, "request the GPU")),
        )


@check("GMA425", CheckSection.HPAS, "servers with a queue scale on it", Severity.WARNING)
def saturated_servers(facts: Facts) -> Iterator[Finding]:
    """The HPA scales an inference server on GPU utilization with a target of 85 % or more. A server
    that batches keeps its GPU busy at low load.

    Use `inference_requests_waiting` or `inference_requests_running`, alone or beside utilization.
    """
    pages = facts.server_pages.read()
    for hpa, metric in metrics(facts):
        utilization = metric.name.startswith("gpu_utilization")
        if not utilization or metric.target is None or metric.target < _SATURATED:
            continue
        names = {row.name for row in hpa.metrics}
        target = target_of(facts, hpa)
        if target is None or any(name.startswith("inference_") for name in names):
            continue
        keys = [pod.key for pod in pods_of(facts, target)]
        if any(key in pages and pages[key].fields & _QUEUES for key in keys):
            yield Finding(
                hpa.subject,
                f"scales at {metric.target} % utilization, and its pods report their queue",
                "add the metric inference_requests_running or inference_requests_waiting",
                patch(hpa, f"spec.metrics.{len(hpa.metrics)}", REQUESTS_ROW),
            )
