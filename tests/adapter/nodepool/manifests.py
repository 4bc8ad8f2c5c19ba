"""Manifests as the API server sends them, with the fields that the controller reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adapter.nodepool.model import names
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.home import Home
from adapter.nodepool.seen import (
    autoscalers,
    headroom,
    jobs,
    karpenter,
    nodes,
    priorityclasses,
    status,
    workloads,
)
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfo, PodInfoDecoder
from adapter.nodepool.seen.priorityclasses import PriorityClass

Object = dict[str, Any]

HOME = Home("gpu-metrics", frozenset({"dra"}))
"""The namespace of the controller, and one that may have headroom with claims."""
T0 = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
GPU = "nvidia.com/gpu"
POOL = {"agentpool": "gput4"}
SPEC: Object = {
    "nodeSelector": POOL,
    "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: "1"}}}],
}


def raw(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def node(
    name: str,
    allocatable: Mapping[str, str] | None = None,
    labels: Mapping[str, str] = POOL,
    *,
    ready: str = "True",
    created: str = "2025-12-31T00:00:00Z",
    **spec: Any,
) -> nodes.NodeInfo:
    amounts = allocatable or {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "4"}
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": created}
    return nodes.decode(
        raw(
            {
                "metadata": {
                    "name": name,
                    "labels": dict(labels),
                    "creationTimestamp": created,
                },
                "spec": spec,
                "status": {"allocatable": amounts, "conditions": [condition]},
            }
        )
    )


def pod(
    name: str,
    on: str = "",
    spec: Object | None = None,
    owner: tuple[str, str] = ("ReplicaSet", "inference-abc"),
    namespace: str = "team",
    labels: Mapping[str, str] | None = None,
    **meta: Any,
) -> PodInfo:
    kind, of = owner
    version = "batch/v1" if kind == "Job" else "apps/v1"
    conditions = [{"type": "Ready", "status": "True" if on else "False"}]
    return PodInfoDecoder("gpu-metrics-adapter-headroom").decode(
        raw(
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": f"uid-{name}",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"pod-template-hash": "abc"} if labels is None else dict(labels),
                    "ownerReferences": [
                        {"apiVersion": version, "kind": kind, "name": of, "controller": True}
                    ],
                    **meta,
                },
                "spec": {**(spec or SPEC), **({"nodeName": on} if on else {})},
                "status": {"phase": "Running" if on else "Pending", "conditions": conditions},
            }
        )
    )


def deployment(
    replicas: int = 2, name: str = "inference", **spec: Any
) -> workloads.ScalableWorkload:
    template = {"spec": {**SPEC, **spec}}
    return workloads.decoder("Deployment")(
        raw(
            {
                "metadata": {"name": name, "namespace": "team"},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": name}},
                    "template": template,
                },
                "status": {"replicas": replicas},
            }
        )
    )


def hpa(
    metrics: Sequence[Object] | None = None,
    target: Object | None = None,
    name: str = "inference",
    **meta: Any,
) -> autoscalers.HpaInfo:
    average = {"type": "AverageValue", "averageValue": "50"}
    rows = metrics or [
        {"type": "Pods", "pods": {"metric": {"name": "gpu_utilization"}, "target": average}}
    ]
    reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"}
    return autoscalers.decode(
        raw(
            {
                "metadata": {"name": name, "namespace": "team", **meta},
                "spec": {
                    "scaleTargetRef": reference,
                    "minReplicas": 1,
                    "maxReplicas": 8,
                    "metrics": list(rows),
                },
                "status": {"desiredReplicas": 2, "currentReplicas": 2},
            }
        )
    )


def job(name: str, *, parallelism: int = 1, suspend: bool = False, **status: Any) -> jobs.JobInfo:
    return jobs.decode(
        raw(
            {
                "metadata": {"name": name, "namespace": "team"},
                "spec": {
                    "parallelism": parallelism,
                    "completions": parallelism,
                    "suspend": suspend,
                    "template": {"spec": SPEC},
                },
                "status": status,
            }
        )
    )


def priority_class(value: int = -10, policy: str = "Never") -> PriorityClass:
    return priorityclasses.decode(
        raw(
            {
                "metadata": {"name": "gpu-metrics-adapter-headroom"},
                "value": value,
                "preemptionPolicy": policy,
            }
        )
    )


def nodepool(name: str = "gpu", **status: Any) -> karpenter.NodePool:
    return karpenter.decode_pool(
        raw(
            {
                "metadata": {"name": name},
                "spec": {"limits": {GPU: "64"}},
                "status": status,
            }
        )
    )


def nodeclaim(name: str, ready: str | None, pool: str = "gpu") -> karpenter.NodeClaim:
    done = {"type": "Initialized", "status": "True" if ready else "Unknown"}
    return karpenter.decode_claim(
        raw(
            {
                "metadata": {
                    "name": name,
                    "labels": {"karpenter.sh/nodepool": pool},
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "status": {"conditions": [done | ({"lastTransitionTime": ready} if ready else {})]},
            }
        )
    )


def found(
    method: ProvisioningMethod, obj: Object, status_of: Object | None = None
) -> headroom.HeadroomObject:
    """A headroom object as a watch delivers it after it was applied."""
    meta = {"uid": "uid-headroom", **obj["metadata"], "managedFields": managed(obj)}
    return headroom.decoder(method, HOME)(raw({**obj, "metadata": meta, "status": status_of or {}}))


def managed(obj: Object, manager: str = names.MANAGER, operation: str = "Apply") -> list[Object]:
    """``managedFields`` of an object that one manager wrote alone."""
    return [{"manager": manager, "operation": operation, "fieldsV1": _fields(obj)}]


def _fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return {}
    return {f"f:{name}": _fields(inner) for name, inner in value.items()}


STATUS = """\
time: 2026-01-01 00:00:07.5 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
    nodeCounts:
      registered: {total: 5, ready: 5, notStarted: 0, unready: {total: 0, resourceUnready: 0}}
      longUnregistered: 0
      unregistered: 0
    lastProbeTime: "2026-01-01T00:00:07.5Z"
    lastTransitionTime: "2025-12-31T20:00:00Z"
  scaleUp:
    status: NoActivity
    lastProbeTime: "2026-01-01T00:00:07.5Z"
    lastTransitionTime: "2025-12-31T20:00:00Z"
nodeGroups:
- name: aks-gput4-12345678-vmss
  health:
    status: Healthy
    nodeCounts:
      registered: {total: 2, ready: 2, notStarted: 0, unready: {total: 0, resourceUnready: 0}}
      longUnregistered: 0
      unregistered: 0
    cloudProviderTarget: 2
    minSize: 1
    maxSize: 6
    lastProbeTime: 2026-01-01T00:00:07.5Z
    lastTransitionTime: 2025-12-31T20:00:00Z
  scaleUp:
    status: Backoff
    backoffInfo:
      errorCode: QUOTA_EXCEEDED
      errorMessage: "Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 2.0"
    lastProbeTime: 2026-01-01T00:00:07.5Z
    lastTransitionTime: 2026-01-01T00:00:00Z
  scaleDown:
    status: NoCandidates
    lastProbeTime: 2026-01-01T00:00:07.5Z
    lastTransitionTime: 2025-12-31T20:00:00Z
- name: aks-system-12345678-vmss
  health:
    status: Healthy
    nodeCounts:
      registered: {total: 3, ready: 3, notStarted: 0, unready: {total: 0, resourceUnready: 0}}
      longUnregistered: 0
      unregistered: 0
    cloudProviderTarget: 3
    minSize: 3
    maxSize: 3
    lastProbeTime: 2026-01-01T00:00:07.5Z
    lastTransitionTime: 2025-12-31T20:00:00Z
  scaleUp:
    status: NoActivity
    lastProbeTime: 2026-01-01T00:00:07.5Z
    lastTransitionTime: 2025-12-31T20:00:00Z
"""
"""``data.status`` of the cluster-autoscaler's ConfigMap, 1.30 and later."""


def cluster(**tables: Sequence[Any]) -> ClusterTables:
    """A cluster of these objects; other collections are empty."""
    made = ClusterTables()
    for name, items in tables.items():
        getattr(made, name).replace(items)
    return made


def autoscaler_status(document: str = STATUS) -> status.AutoscalerStatus:
    return status.decode(raw({"metadata": {"name": status.NAME}, "data": {"status": document}}))
