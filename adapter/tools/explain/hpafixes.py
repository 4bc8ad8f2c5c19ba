"""The fix of each thing that blocks an HPA: a command, where there is one."""

from __future__ import annotations

import shlex
from decimal import Decimal
from typing import Final
from urllib.parse import quote

from adapter.answers.causes import CauseCode
from adapter.hpa import MetricKind, MetricSpec
from adapter.hpa.spec import source_key
from adapter.pipeline.attribution.reasons import doctor
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.pipeline.cluster.changes import ChangedObject, scale
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.metricsapi import CUSTOM, NEWEST, external_path, value_path
from adapter.tools.client.access import Json
from adapter.tools.client.hpacommands import change_hpa, edit_hpa, one_hpa, scaled_object
from adapter.tools.explain.hpafacts import HpaFacts

_CATALOG: Final = built_in()


def stop_fix(facts: HpaFacts, reason: str) -> str:
    """Return the fix for what stops the controller before any metric."""
    reference = facts.hpa["spec"]["scaleTargetRef"]
    if reason == "FailedGetScale":
        return _target_fix(facts)
    if reason == "AmbiguousSelector" and facts.rivals:
        return _one_hpa(facts)
    if reason == "ScalingDisabled":
        of = facts.target or ChangedObject(
            str(reference["kind"]), facts.namespace, str(reference["name"])
        )
        return make_lasting(of, scale(of, 1)).line
    if reason == "InvalidSelector":
        return "give the scale subresource of the target a selector (status.selector)"
    return ""


def _target_fix(facts: HpaFacts) -> str:
    """Return the fix for a target that the controller cannot scale."""
    if any(cause.code is CauseCode.WRONG_NAMESPACE for cause in facts.causes):
        return ""  # the cause has the fix
    problem = facts.no_scale
    if problem is not None and problem.version:
        return change_hpa(facts.hpa, "spec.scaleTargetRef.apiVersion", problem.version).line
    if problem is not None and problem.fix:
        return problem.fix
    if len(facts.targets) == 1:
        return change_hpa(facts.hpa, "spec.scaleTargetRef.name", facts.targets[0]).line
    return edit_hpa(facts.hpa, "correct spec.scaleTargetRef").line


def _one_hpa(facts: HpaFacts) -> str:
    """Return the fix for several HPAs that control the same pods."""
    hpas = [facts.hpa, *facts.rival_hpas]
    namespace = shlex.quote(facts.namespace)
    targets = sorted(set(map(_target, hpas)))
    if len(targets) > 1:
        # The table shows the selectors, which overlap.
        return f"kubectl -n {namespace} get {' '.join(targets)} -o wide"
    if (fix := one_hpa(hpas)) is not None:
        return fix.line
    scaled = next(filter(None, map(scaled_object, hpas)))
    others = [str(hpa["metadata"]["name"]) for hpa in hpas if not scaled_object(hpa)]
    if not others:
        return f"kubectl -n {namespace} get scaledobjects"
    return (
        f"add triggers for the metrics of {', '.join(others)} to ScaledObject {scaled}, then "
        f"`kubectl -n {namespace} delete hpa {' '.join(map(shlex.quote, others))}`"
    )


def _target(hpa: Json) -> str:
    reference = hpa["spec"]["scaleTargetRef"]
    return shlex.quote(f"{reference['kind'].lower()}/{reference['name']}")


def failure_fix(facts: HpaFacts, metric: MetricSpec, error: str) -> str:
    """Return the fix for a metric that has no proposal."""
    namespace = shlex.quote(facts.namespace)
    if metric.kind is MetricKind.PODS and facts.known and metric.name not in facts.known:
        return unknown_metric_fix(facts, metric)
    if metric.kind.of_resources:
        return _resource_fix(facts, metric, error)
    if metric.kind is MetricKind.EXTERNAL:
        raw = external_path(facts.namespace, metric.name)
        return f"kubectl get --raw {shlex.quote(raw)}"
    if "pods might be unready" in error or "no pods returned" in error:
        return f"kubectl -n {namespace} get pods -l {shlex.quote(_selector(facts))}"
    return _silence_fix(facts, metric)


def _resource_fix(facts: HpaFacts, metric: MetricSpec, error: str) -> str:
    if "missing request for" in error:
        return _request(facts, metric, error)
    containers = _containers(facts)
    if not metric.container or not containers or metric.container in containers:
        return "kubectl get apiservice v1beta1.metrics.k8s.io"
    path = field(facts, metric, "container")
    if len(containers) == 1:
        return change_hpa(facts.hpa, path, containers[0]).line
    return f"name a container of the pods in {path}: {', '.join(containers)}"


def _containers(facts: HpaFacts) -> list[str]:
    """Return the names of the containers of the target's pods."""
    rows = (row for pod in facts.pods for row in pod["spec"].get("containers") or ())
    return sorted({str(row.get("name")) for row in rows})


_SIDECARS: Final = {
    "istio-proxy": "the annotations sidecar.istio.io/proxyCPU and proxyMemory",
    "linkerd-proxy": "the annotations config.linkerd.io/proxy-cpu-request and proxy-memory-request",
    "daprd": "the annotations dapr.io/sidecar-cpu-request and sidecar-memory-request",
}
"""Container that a mesh adds to pods -> what sets its requests (istio/istio issues 13977 and 35905,
linkerd/linkerd2 issue 1480)."""


def _request(facts: HpaFacts, metric: MetricSpec, error: str) -> str:
    """Return how containers get a request: the HPA needs one of each, also of a sidecar."""
    words = (
        f"set requests.{metric.name} of every container in the pod template, or scale on the "
        "container of the server alone (type ContainerResource)"
    )
    added = next((name for name in _SIDECARS if name in error), "")
    if added:
        words += f"; {added} is added by a mesh: {_SIDECARS[added]} of the pod template set its own"
    return words


def _silence_fix(facts: HpaFacts, metric: MetricSpec) -> str:
    """Return what shows why the metrics API has no value."""
    if any(answer.problem is not None and answer.problem.status >= 500 for answer in facts.values):
        return API_DOWN
    try:
        return f"kubectl get --raw {shlex.quote(_reason_path(facts, metric))}"
    except (KeyError, ValueError):
        return f"correct {field(facts, metric, 'metric.selector')}"


API_DOWN: Final = doctor("GMA004", "GMA006", "GMA007", "GMA008")
"""The fix for a metrics API that does not answer."""


def _reason_path(facts: HpaFacts, metric: MetricSpec) -> str:
    """Return a path of which the adapter's answer says why there is no value.

    For one pod, the answer has the reason; for a selection, the pods without a value are left out.
    """
    if metric.kind is not MetricKind.PODS or not facts.pods:
        return value_path(metric, _selector(facts), facts.namespace, NEWEST)
    pod = quote(str(facts.pods[0]["metadata"]["name"]), safe="")
    name = quote(metric.name, safe="")
    return f"{CUSTOM}/{NEWEST}/namespaces/{quote(facts.namespace, safe='')}/pods/{pod}/{name}"


def unknown_metric_fix(facts: HpaFacts, metric: MetricSpec) -> str:
    """Return the fix for a metric that does not exist."""
    target = Decimal(metric.target.milli) / 1000
    near = nearest_metrics(metric.name, facts.known or _CATALOG.metrics, target)
    if near.meant and not facts.scaled_object:
        return change_hpa(facts.hpa, field(facts, metric, "metric.name"), near.meant).line
    if near.meant:
        return near.question
    return "; ".join(filter(None, ("name a metric that the API lists", near.question)))


def field(facts: HpaFacts, metric: MetricSpec, path: str) -> str:
    """Return the path of a field of a metric in the HPA."""
    index = facts.spec.metrics.index(metric) if facts.spec is not None else 0
    return f"spec.metrics[{index}].{source_key(metric.kind)}.{path}"


def _selector(facts: HpaFacts) -> str:
    return facts.scale.selector if facts.scale is not None else ""


def raise_max(facts: HpaFacts, replicas: int) -> str:
    """Return what raises the maximum, of the ScaledObject if one owns the HPA."""
    return change_hpa(facts.hpa, "spec.maxReplicas", replicas).line


def open_policy(facts: HpaFacts, direction: str) -> str:
    """Return what lets the HPA scale in a direction: ``scaleUp`` or ``scaleDown``."""
    return change_hpa(facts.hpa, f"spec.behavior.{direction}.selectPolicy", "Max").line
