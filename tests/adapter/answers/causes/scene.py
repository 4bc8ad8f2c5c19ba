"""A cluster of one situation, as its API server shows it, small enough to vary."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from adapter.answers.causes import Cause, ClusterFacts, KubeKey, causes_of, scaler_of
from adapter.pipeline.cluster.objects import ApiService, ResourceSlice, SeenEvent, SeenNode, read
from adapter.pipeline.cluster.podobjects import read_pod
from adapter.pipeline.cluster.workloadobjects import read_workload
from apiservice.labels.selector import parse

Json = dict[str, Any]

NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
NS: Final = "chat"
GPU: Final = "nvidia.com/gpu"


def ago(seconds: float) -> str:
    """A time before now, in RFC 3339."""
    return datetime.fromtimestamp(NOW - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def owned(kind: str, name: str) -> Json:
    """The field of an object that a controller owns."""
    version = "leaderworkerset.x-k8s.io/v1" if kind == "LeaderWorkerSet" else "apps/v1"
    version = "v1" if kind == "Pod" else version
    row = {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [row]}


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    """The status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "main", "ready": False, "state": state, **more}


def ended(reason: str, seconds: float, code: int = 1, message: str = "") -> Json:
    """How a container ended."""
    row = {"reason": reason, "exitCode": code, "finishedAt": ago(seconds), "message": message}
    return {"lastState": {"terminated": row}}


class Scene:
    """An HPA of Deployment llm with its ReplicaSet; each method adds to it."""

    def __init__(
        self, kind: str = "Deployment", replicas: int = 2, *, chain: bool = True, **spec: Any
    ) -> None:
        self.kind, self.replicas = kind, replicas
        self.hpa: Json = {
            "metadata": {"name": "llm", "namespace": NS, "creationTimestamp": ago(86400)},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "llm"},
                "minReplicas": 1,
                "maxReplicas": 8,
                "metrics": [{"type": "Pods", "pods": {"metric": {"name": "gpu_utilization"}}}],
            },
            "status": {"conditions": [{"type": "AbleToScale", "status": "True"}]},
        }
        self.workloads: list[tuple[str, Json]] = []
        self.pods: list[Json] = []
        self.events: list[Json] = []
        self.nodes: list[Json] | None = None
        self.slices: list[Json] = []
        self.facts: Json = {}
        if chain:
            self.workload(kind, "llm", replicas=replicas, **spec)
        if chain and kind == "Deployment":
            self.workload("ReplicaSet", "llm-7f9", replicas=replicas, **owned(kind, "llm"))

    def workload(self, kind: str, name: str, **more: Any) -> Scene:
        """A workload; fields that the spec has go there, the others into the metadata."""
        status = more.pop("status", {})
        labels = more.pop("labels", {"app": "llm"})
        container = {"name": "main", "resources": {"limits": {GPU: "1", "memory": "16Gi"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        template["spec"] |= more.pop("pod", {})
        spec = {"selector": {"matchLabels": labels}, "template": template}
        spec |= {key: more.pop(key) for key in ("replicas", "strategy") if key in more}
        meta = {"name": name, "namespace": NS, **more}
        self.workloads.append((kind, {"metadata": meta, "spec": spec, "status": status}))
        return self

    def status(self, name: str, *conditions: Json) -> Scene:
        """Conditions of a workload."""
        for _, row in self.workloads:
            if row["metadata"]["name"] == name:
                row["status"] = {"conditions": list(conditions)}
        return self

    def pod(self, name: str, *containers: Json, **more: Any) -> Scene:
        """A pod of the ReplicaSet that runs and is ready, unless its containers say otherwise."""
        owner = more.pop("owner", ("ReplicaSet", "llm-7f9"))
        gpus = more.pop("gpus", "1")
        labels = more.pop("labels", {"app": "llm", "pod-template-hash": "7f9"})
        limits = {"memory": more.pop("memory", "16Gi"), **({GPU: gpus} if gpus else {})}
        meta = {"name": name, "namespace": NS, "uid": name, "labels": labels}
        meta |= owned(*owner) if owner else {}
        ready = more.pop("ready", not containers)
        since = more.pop("since", 3600.0)
        row = {"type": "Ready", "status": str(ready), "lastTransitionTime": ago(since)}
        image = "registry.example/llm:1"
        main = {"name": "main", "image": image, "resources": {"limits": limits}}
        meta |= more.pop("meta", {})
        status = {
            "phase": more.pop("phase", "Running"),
            "startTime": ago(since),
            "containerStatuses": list(containers) or [{"name": "main", "ready": ready}],
            "conditions": [row, *more.pop("conditions", ())],
            **more.pop("status", {}),
        }
        spec = {"nodeName": more.pop("on", "n1"), "containers": [main], **more}
        self.pods.append({"metadata": meta, "spec": spec, "status": status})
        return self

    def pending(self, name: str, message: str, seconds: float = 600.0, **more: Any) -> Scene:
        """A pod of the ReplicaSet without a node."""
        row = {
            "type": "PodScheduled",
            "status": "False",
            "reason": more.pop("reason", "Unschedulable"),
            "message": message,
            "lastTransitionTime": ago(seconds),
        }
        return self.pod(name, phase="Pending", on="", conditions=[row], ready=False, **more)

    def node(
        self, name: str, capacity: str = "8", allocatable: str | None = None, **more: Any
    ) -> Scene:
        """A node with GPUs."""
        offers = capacity if allocatable is None else allocatable
        labels = more.pop("labels", {})
        status = {"capacity": {GPU: capacity}, "allocatable": {GPU: offers}}
        status |= more.pop("status", {})
        meta = {"name": name, "labels": labels}
        row = {"metadata": meta, "spec": more, "status": status}
        self.nodes = [*(self.nodes or ()), row]
        return self

    def event(
        self, kind: str, name: str, reason: str, message: str, seconds: float, times: int = 1
    ) -> Scene:
        """An event."""
        row = {
            "metadata": {"name": f"e{len(self.events)}", "namespace": NS},
            "involvedObject": {"kind": kind, "name": name, "namespace": NS},
            "reason": reason,
            "message": message,
            "count": times,
            "firstTimestamp": ago(seconds + 60 * times),
            "lastTimestamp": ago(seconds),
        }
        self.events.append(row)
        return self

    def know(self, **facts: Any) -> Scene:
        """Further facts."""
        self.facts |= facts
        return self

    def apiservices(self, *rows: tuple[str, Mapping[str, str]]) -> Scene:
        """The registered APIs, each with its condition ``Available``."""
        apis = {}
        for name, condition in rows:
            row = {"type": "Available", "lastTransitionTime": ago(600), **condition}
            service = {"namespace": "kube-system", "name": "metrics-server"}
            manifest = {
                "metadata": {"name": name},
                "spec": {"service": service},
                "status": {"conditions": [row]},
            }
            apis[name] = read(manifest, ApiService)
        return self.know(apiservices=apis)

    def served(self, name: str) -> Scene:
        """The Service of the registered APIs."""
        rows = {}
        for key, row in self.facts["apiservices"].items():
            service = replace(row.spec.service, name=name)
            rows[key] = replace(row, spec=replace(row.spec, service=service))
        return self.know(apiservices=rows)

    def elsewhere(self, namespace: str) -> Scene:
        """A Deployment llm of another namespace."""
        return self.know(elsewhere=[KubeKey(namespace, "Deployment", "llm")])

    def metrics(self, kind: str, name: str) -> Scene:
        """Another metric of the HPA."""
        key = kind[0].lower() + kind[1:]
        body = {"metric": {"name": name}} if kind in ("External", "Pods") else {"name": name}
        self.hpa["spec"]["metrics"] = [{"type": kind, key: body}]
        return self

    def cluster(self) -> ClusterFacts:
        """The facts."""
        return ClusterFacts(
            NOW,
            workloads=[read_workload(*row) for row in self.workloads],
            pods=[read_pod(row) for row in self.pods],
            events=[read(row, SeenEvent) for row in self.events],
            nodes=None if self.nodes is None else [read(row, SeenNode) for row in self.nodes],
            **{"slices": [read(row, ResourceSlice) for row in self.slices] or None, **self.facts},
        )

    def causes(self) -> list[Cause]:
        """What causes are found."""
        missing = not self.workloads
        return causes_of(
            self.cluster(),
            scaler_of(self.hpa),
            replicas=None if missing else self.replicas,
            selector=None if missing else parse("app=llm"),
        )
