"""Recorded objects of a cluster, small enough to vary: an HPA, its target, pods and values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from adapter.tools.client.errors import VIEW
from tests.adapter.clientapi import ApiServer, status_of

Json = dict[str, Any]

NOW: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
NS: Final = "chat"
SCALE: Final = f"/apis/apps/v1/namespaces/{NS}/deployments/llm/scale"
HPAS: Final = f"/apis/autoscaling/v2/namespaces/{NS}/horizontalpodautoscalers"
PODS: Final = f"/api/v1/namespaces/{NS}/pods"
EVENTS: Final = f"/api/v1/namespaces/{NS}/events"
GPUPODS: Final = f"{VIEW}/namespaces/{NS}/gpupods"
CUSTOM: Final = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NS}/pods/*"
RESOURCES: Final = f"/apis/metrics.k8s.io/v1beta1/namespaces/{NS}/pods"
EXPORTER: Final = "/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-dcgm-exporter"
GROUP: Final = "/apis/nvidia.com"
OPERATOR: Final[Json] = {
    EXPORTER: {
        "metadata": {
            "namespace": "gpu-operator",
            "name": "nvidia-dcgm-exporter",
            "ownerReferences": [
                {
                    "apiVersion": "nvidia.com/v1",
                    "kind": "ClusterPolicy",
                    "name": "cluster-policy",
                    "controller": True,
                }
            ],
        },
    },
    GROUP: {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
    f"{GROUP}/v1": {"resources": [{"name": "clusterpolicies", "kind": "ClusterPolicy"}]},
    f"{GROUP}/v1/clusterpolicies/cluster-policy": {"metadata": {"name": "cluster-policy"}},
}
"""The exporter of the GPU operator, and the object from which the operator writes it."""
HINT: Final = "set the variable DCGM_EXPORTER_KUBERNETES=true in DaemonSet nvidia-dcgm-exporter"
CHANGES: Final = "DaemonSet/gpu-operator/nvidia-dcgm-exporter"
FIX: Final = (
    "kubectl patch clusterpolicies.nvidia.com cluster-policy --type=merge -p "
    """'{"spec":{"dcgmExporter":{"env":[{"name":"DCGM_EXPORTER_KUBERNETES","value":"true"}]}}}'"""
)


def at(seconds: float) -> str:
    """A time before now, in RFC 3339."""
    return datetime.fromtimestamp(NOW - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def gpu_metric(target: str = "70", name: str = "gpu_utilization") -> Json:
    """A Pods metric."""
    goal = {"type": "AverageValue", "averageValue": target}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": goal}}


def cpu_metric(percent: int = 60) -> Json:
    """A Resource metric."""
    goal = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": goal}}


def container_metric() -> Json:
    """A ContainerResource metric."""
    goal = {"type": "Utilization", "averageUtilization": 60}
    source = {"name": "cpu", "container": "main", "target": goal}
    return {"type": "ContainerResource", "containerResource": source}


def external_metric(target: str = "10", name: str = "queue") -> Json:
    """An External metric."""
    goal = {"type": "AverageValue", "averageValue": target}
    return {"type": "External", "external": {"metric": {"name": name}, "target": goal}}


def condition(kind: str, status: bool, reason: str, message: str = "") -> Json:
    """A condition of an HPA."""
    return {
        "type": kind,
        "status": str(status),
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(600),
    }


WELL: Final = (
    condition("AbleToScale", True, "ReadyForNewScale"),
    condition("ScalingActive", True, "ValidMetricFound"),
    condition("ScalingLimited", False, "DesiredWithinRange"),
)


class World:
    """The cluster of one situation; each method adds to it."""

    def __init__(self, replicas: int = 3) -> None:
        self.replicas = replicas
        self.pods: list[Json] = []
        self.gpupods: list[Json] = []
        self.values: dict[str, dict[str, str]] = {}
        self.usage: list[Json] = []
        self.events: list[Json] = []
        self.hpas: list[Json] = []
        self.answers: Json = {}

    def hpa(
        self,
        *metrics: Json,
        name: str = "llm",
        low: int = 1,
        high: int = 8,
        conditions: tuple[Json, ...] = WELL,
        desired: int | None = None,
        **rest: Any,
    ) -> World:
        """An HPA of the Deployment llm."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
        spec = {"scaleTargetRef": reference, "minReplicas": low, "maxReplicas": high}
        spec |= {"metrics": list(metrics), **rest.pop("spec", {})}
        status: Json = {"conditions": list(conditions)}
        if conditions:
            status["desiredReplicas"] = self.replicas if desired is None else desired
            status["currentReplicas"] = self.replicas
        meta = {"name": name, "namespace": NS, **rest}
        self.hpas.append({"metadata": meta, "spec": spec, "status": status})
        return self

    def pod(
        self,
        name: str,
        value: str = "",
        *,
        node: str = "n1",
        phase: str = "Running",
        why: Json | None = None,
        metric: str = "gpu_utilization",
        gpu: bool = True,
        cpu: str = "",
        request: str = "500m",
        deleting: bool = False,
        conditions: tuple[Json, ...] = (),
        limits: Json | None = None,
    ) -> World:
        """A pod of the Deployment, with its value or the reason why it has none."""
        labels = {"app": "llm"}
        resources: Json = {"requests": {"cpu": request}} if request else {}
        resources |= {"limits": limits} if limits else {}
        ready = {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": at(3500)}
        meta: Json = {"name": name, "namespace": NS, "labels": labels}
        if deleting:
            meta["deletionTimestamp"] = at(5)
        self.pods.append(
            {
                "metadata": meta,
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": "main", "resources": resources}],
                },
                "status": {
                    "phase": phase,
                    "startTime": at(3600),
                    "conditions": [ready, *conditions],
                },
            }
        )
        if gpu:
            self.gpupods.append(_gpupod(meta, node, phase, metric, value, why))
        if value:
            self.values.setdefault(metric, {})[name] = value
        if cpu:
            used = [{"name": "main", "usage": {"cpu": cpu}}]
            row = {"metadata": meta, "timestamp": at(8), "window": "15s", "containers": used}
            self.usage.append(row)
        return self

    def measured(self, name: str, **fields: Any) -> World:
        """Other fields of a pod's usage in metrics.k8s.io; None removes a field."""
        row = next(row for row in self.usage if row["metadata"]["name"] == name)
        for key, value in fields.items():
            row.pop(key)
            row |= {} if value is None else {key: value}
        return self

    def event(
        self, reason: str, message: str, seconds: float, name: str = "llm", kind: str = "Normal"
    ) -> World:
        """An event about the HPA."""
        about = {"kind": "HorizontalPodAutoscaler", "name": name}
        meta = {"name": f"e{len(self.events)}", "namespace": NS}
        row = {"metadata": meta, "involvedObject": about, "reason": reason, "message": message}
        self.events.append(row | {"type": kind, "lastTimestamp": at(seconds), "count": 1})
        return self

    def answer(self, path: str, found: Any) -> World:
        """Another answer of the server."""
        self.answers[path] = found
        return self

    def serve(self, server: ApiServer) -> None:
        """Let a server answer with this cluster."""
        scale = {
            "spec": {"replicas": self.replicas},
            "status": {"replicas": self.replicas, "selector": "app=llm"},
        }
        names = sorted({f"pods/{name}" for name in (*self.values, "gpu_memory_used_bytes")})
        server.answers |= {
            SCALE: scale,
            HPAS: self.hpas,
            "/apis/autoscaling/v2/horizontalpodautoscalers": self.hpas,
            PODS: self.pods,
            EVENTS: self.events,
            **OPERATOR,
            GPUPODS: self.gpupods,
            RESOURCES: self.usage,
            "/apis/custom.metrics.k8s.io/v1beta2": {"resources": [{"name": n} for n in names]},
            f"{CUSTOM}/gpu_utilization": {"items": []},
            **{f"{CUSTOM}/{name}": _values(name, rows) for name, rows in self.values.items()},
            **self.answers,
        }


def _gpupod(meta: Json, node: str, phase: str, metric: str, value: str, why: Json | None) -> Json:
    gpupod: Json = {"metadata": meta, "node": node, "phase": phase, "measured": bool(value)}
    if not value:
        reason = why or {"reason": "pod_not_running"}
        return gpupod | {"reason": reason, "absent": [{**reason, "metrics": [metric]}]}
    number = float(value)
    unit = "percent" if metric == "gpu_utilization" else "requests"
    shared = {"number": number, "unit": unit, "time": at(2)}
    row = {"metric": metric, "value": value, **shared, "windowSeconds": 30}
    index = sum(map(ord, meta["name"])) % 8
    device = {
        "device": f"GPU-{index}",
        "gpu": f"{node}.gpu{index}",
        "node": node,
        "attribution": "exact",
        "values": [{"metrics": [metric], **shared, "series": "DCGM_FI_DEV_GPU_UTIL"}],
    }
    return gpupod | {"metrics": [row], "devices": [device]}


def _values(metric: str, rows: dict[str, str]) -> Json:
    return {
        "items": [
            {
                "describedObject": {"kind": "Pod", "namespace": NS, "name": name},
                "metric": {"name": metric},
                "timestamp": at(2),
                "windowSeconds": 30,
                "value": value,
            }
            for name, value in rows.items()
        ]
    }


NO_PODS_NAMED: Final = {
    "reason": "exporter_names_no_pod",
    "message": "the exporter on node n3 (gpu-operator/dcgm-x2k) answers, but names no pod",
    "hint": HINT,
    "changes": CHANGES,
    "docs": "docs/reasons.md#exporter_names_no_pod",
}

__all__ = ["NOW", "World", "status_of"]
