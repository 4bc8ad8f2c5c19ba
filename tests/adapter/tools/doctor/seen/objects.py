"""Builders of manifests: everything that a case does not mention is fine."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
NS = "serving"
VLLM = "vllm/vllm-openai:v0.10.0"
SCALER = "gpu-metrics-adapter.gpu-metrics.svc:6000"


def meta(name: str) -> Manifest:
    """The metadata of an object."""
    return {"name": name, "namespace": NS}


def workload(
    name: str = "llm", image: str = VLLM, *, probe: bool = True, gpu: bool = True, **more: Any
) -> Manifest:
    """A Deployment of an inference server; ``claim`` names a claim, ``replicas`` is in the spec."""
    container: Manifest = {"name": "server", "image": image}
    if gpu:
        container["resources"] = {"limits": {more.pop("resource", "nvidia.com/gpu"): 1}}
    if probe:
        container["readinessProbe"] = {"httpGet": {"path": "/health", "port": 8000}}
    container |= more.pop("container", {})
    pod: Manifest = {"containers": [container]}
    if claim := more.pop("claim", ""):
        pod["volumes"] = [{"name": "model", "persistentVolumeClaim": {"claimName": claim}}]
    spec: Manifest = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
    }
    kind = more.pop("kind", "Deployment")
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta(name), "spec": spec | more}


def claim(name: str, *modes: str) -> Manifest:
    """A PersistentVolumeClaim."""
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": "200Gi"}}}
    row = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta(name)}
    return row | {"spec": spec}


def hpa(*metrics: Manifest, name: str = "llm", target: str = "llm", **more: Any) -> Manifest:
    """An HPA of a Deployment."""
    reference = {"apiVersion": "apps/v1", "kind": more.pop("kind", "Deployment"), "name": target}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 8}
    row = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta(name),
    }
    return row | {"spec": spec | {"metrics": list(metrics)} | more}


def average(number: str | float) -> Manifest:
    """A target of type AverageValue."""
    return {"type": "AverageValue", "averageValue": number}


def value(number: str | float) -> Manifest:
    """A target of type Value."""
    return {"type": "Value", "value": number}


def pods(name: str, target: Manifest, **selector: str) -> Manifest:
    """A Pods metric."""
    return {"type": "Pods", "pods": {"metric": _metric(name, selector), "target": target}}


def external(name: str, target: Manifest, **selector: str) -> Manifest:
    """An External metric."""
    return {"type": "External", "external": {"metric": _metric(name, selector), "target": target}}


def about(kind: str, of: str, name: str, target: Manifest) -> Manifest:
    """An Object metric."""
    version = "apps/v1" if kind in ("Deployment", "StatefulSet") else "v1"
    described = {"apiVersion": version, "kind": kind, "name": of}
    source = {"describedObject": described, "metric": {"name": name}, "target": target}
    return {"type": "Object", "object": source}


def resource(name: str, kind: str = "Resource", **more: Any) -> Manifest:
    """A Resource or ContainerResource metric."""
    target = {"type": "Utilization", "averageUtilization": 80}
    key = kind[:1].lower() + kind[1:]
    return {"type": kind, key: {"name": name, "target": target, **more}}


def _metric(name: str, selector: dict[str, str]) -> Manifest:
    return {"name": name, "selector": {"matchLabels": selector}} if selector else {"name": name}


def scaled(*triggers: Manifest, name: str = "llm", target: str = "llm", **more: Any) -> Manifest:
    """A ScaledObject of a Deployment."""
    spec = {"scaleTargetRef": {"name": target}, "minReplicaCount": 1, "maxReplicaCount": 8}
    row = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    row |= {"metadata": meta(name) | more.pop("meta", {})}
    return row | {"spec": spec | {"triggers": list(triggers)} | more}


def trigger(metric: str, target: str, **more: Any) -> Manifest:
    """A trigger for the adapter; ``row`` has the keys of the trigger itself."""
    row = more.pop("row", {})
    metadata = {"scalerAddress": SCALER, "metric": metric, "target": target}
    return {"type": "external", "metadata": metadata | more, **row}


def query(promql: str, threshold: str, **more: Any) -> Manifest:
    """A trigger for a Prometheus."""
    row = more.pop("row", {})
    metadata = {"serverAddress": "http://prometheus.monitoring:9090", "query": promql}
    metadata |= {"threshold": threshold, "ignoreNullValues": "false"}
    return {"type": "prometheus", "metadata": metadata | more, **row}
