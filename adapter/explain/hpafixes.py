"""The fix of each thing that blocks an HPA: a command, where there is one."""

from __future__ import annotations

import shlex
from typing import Final

from adapter.catalog import Catalog
from adapter.catalog.nearest import nearest_metric
from adapter.causes import CauseCode
from adapter.client.access import Json
from adapter.client.hpacommands import one_hpa, patch_hpa, scaled_object
from adapter.cluster.metricsapi import external_path
from adapter.explain.hpafacts import HpaFacts
from adapter.hpa import MetricKind, MetricSpec
from adapter.hpa.spec import source_key

_CATALOG: Final = Catalog()


def stopped(facts: HpaFacts, reason: str) -> str:
    """Return the fix for what stops the controller before any metric."""
    namespace, reference = shlex.quote(facts.namespace), facts.hpa["spec"]["scaleTargetRef"]
    target = shlex.quote(f"{reference['kind'].lower()}/{reference['name']}")
    if reason == "FailedGetScale":
        return _other_target(facts)
    if reason == "AmbiguousSelector" and facts.rivals:
        return _one_hpa(facts)
    if reason == "ScalingDisabled":
        return f"kubectl -n {namespace} scale {target} --replicas=1"
    if reason == "InvalidSelector":
        return "give the scale subresource of the target a selector (status.selector)"
    return ""


def _other_target(facts: HpaFacts) -> str:
    """Return the fix for a target that does not exist; empty if a cause has it."""
    if any(cause.code is CauseCode.WRONG_NAMESPACE for cause in facts.causes):
        return ""
    if len(facts.targets) == 1 and not facts.scaled_object:
        at = "spec.scaleTargetRef.name"
        return patch_hpa(facts.namespace, facts.name, at, facts.targets[0])
    return f"kubectl -n {shlex.quote(facts.namespace)} edit hpa {shlex.quote(facts.name)}"


def _one_hpa(facts: HpaFacts) -> str:
    """Return the fix for several HPAs that control the same pods."""
    hpas = [facts.hpa, *facts.rival_hpas]
    namespace = shlex.quote(facts.namespace)
    targets = sorted(set(map(_target, hpas)))
    if len(targets) > 1:
        # The table shows the selectors, which overlap.
        return f"kubectl -n {namespace} get {' '.join(targets)} -o wide"
    if command := one_hpa(facts.namespace, hpas):
        return command
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


def of_failure(facts: HpaFacts, metric: MetricSpec, error: str) -> str:
    """Return the fix for a metric that has no proposal."""
    namespace = shlex.quote(facts.namespace)
    if metric.kind is MetricKind.PODS and facts.known and metric.name not in facts.known:
        return of_unknown(facts, metric)
    if "missing request for" in error:
        return f"set requests.{metric.name} of every container in the pod template"
    if metric.kind.of_resources:
        return "kubectl get apiservice v1beta1.metrics.k8s.io"
    if metric.kind is MetricKind.EXTERNAL:
        raw = external_path(facts.namespace, metric.name)
        return f"kubectl get --raw {shlex.quote(raw)}"
    if "pods might be unready" in error or "no pods returned" in error:
        return f"kubectl -n {namespace} get pods -l {shlex.quote(_selector(facts))}"
    return "gpu-metrics-adapter doctor"


def of_unknown(facts: HpaFacts, metric: MetricSpec) -> str:
    """Return the fix for a metric that does not exist."""
    near = nearest_metric(metric.name, facts.known or _CATALOG.metrics)
    if near and not facts.scaled_object:
        at = field(facts, metric, "metric.name")
        return patch_hpa(facts.namespace, facts.name, at, near)
    return f"did you mean {near}?" if near else "name a metric that the API lists"


def field(facts: HpaFacts, metric: MetricSpec, path: str) -> str:
    """Return the path of a field of a metric in the HPA."""
    index = facts.spec.metrics.index(metric) if facts.spec is not None else 0
    return f"spec.metrics[{index}].{source_key(metric.kind)}.{path}"


def _selector(facts: HpaFacts) -> str:
    return facts.scale.selector if facts.scale is not None else ""


def raise_max(facts: HpaFacts, replicas: int) -> str:
    """Return a command that raises the maximum, of the ScaledObject if one owns the HPA."""
    if scaled := facts.scaled_object:
        body = f'{{"spec":{{"maxReplicaCount":{replicas}}}}}'
        name = f"scaledobject {shlex.quote(scaled)}"
        return f"kubectl -n {shlex.quote(facts.namespace)} patch {name} --type=merge -p '{body}'"
    return merge(facts, f'{{"spec":{{"maxReplicas":{replicas}}}}}')


def merge(facts: HpaFacts, body: str) -> str:
    """Return a command that merges fields into the HPA."""
    name = f"-n {shlex.quote(facts.namespace)} patch hpa {shlex.quote(facts.name)}"
    return f"kubectl {name} --type=merge -p '{body}'"
