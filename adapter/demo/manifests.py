"""The simulated cluster's pods as manifests, in the file that ``serve`` reads.

The manifests have the shape of the Kubernetes API, so that ``cluster.pods_file`` gets what
``kubectl get pods -o json`` would print.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapter.demo.fleet import DemoPod, Stage
from adapter.demo.hardware import DemoNode
from adapter.demo.world import World
from adapter.hpa import PodState

_EXPORTER_NAMESPACE = "gpu-metrics"
# The labels that dcgm-exporter's own chart sets, and by which ``serve`` finds it.
_EXPORTER_LABELS = {"app.kubernetes.io/name": "dcgm-exporter"}
_EXPORTER_PORT = "metrics"


def pod_state(pod: DemoPod) -> PodState:
    """Return the pod as the HPA controller sees it."""
    pending = pod.stage is Stage.PENDING
    return PodState(
        name=pod.name,
        phase="Pending" if pending else "Running",
        ready=pod.stage is Stage.READY,
        deleting=pod.stage is Stage.TERMINATING,
    )


def pod_list(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return manifests as the API lists them."""
    return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": list(items)}


def pods(
    world: World, namespace: str, exporter_ports: Mapping[str, int]
) -> Sequence[dict[str, Any]]:
    """Return every pod of the cluster, the nodes' exporters included.

    Args:
        world: the simulated cluster.
        namespace: the services' namespace.
        exporter_ports: node -> TCP port on loopback of its exporter.
    """
    replicas = [_pod(pod, namespace) for pod in world.fleet.pods.values()]
    exporters = [
        _exporter(node, exporter_ports[node.name])
        for node in world.fleet.nodes
        if node.name in exporter_ports
    ]
    return replicas + exporters


def pod_spec(resource: str) -> dict[str, Any]:
    """Return the ``spec`` of a replica, as in its Deployment's template."""
    devices = {resource: "1"}
    return {
        "containers": [{"name": "server", "resources": {"limits": devices, "requests": devices}}]
    }


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Replace ``path`` atomically: a reader sees the old or the new file, never a part."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(content), encoding="utf-8")
    beside.replace(path)


def _pod(pod: DemoPod, namespace: str) -> dict[str, Any]:
    state = pod_state(pod)
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": namespace,
        # Both namespaces have a pod of this name.
        "uid": str(uuid.uuid5(uuid.UUID(pod.uid), namespace)),
        "labels": {"app": pod.service, "pod-template-hash": "6d5f8c7b9"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{pod.service}-6d5f8c7b9",
                "uid": f"{namespace}-{pod.service}-6d5f8c7b9",
                "controller": True,
            }
        ],
    }
    if state.deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = pod_spec(pod.resource)
    status: dict[str, Any] = {"phase": state.phase, "conditions": [_ready(state.ready)]}
    if pod.node:
        spec["nodeName"] = pod.node.name
        status["podIP"] = "127.0.0.1"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _exporter(node: DemoNode, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"dcgm-exporter-{node.name}",
            "namespace": _EXPORTER_NAMESPACE,
            "uid": f"dcgm-exporter-{node.name}",
            "labels": _EXPORTER_LABELS,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "dcgm-exporter",
                    "uid": "dcgm-exporter",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node.name,
            "containers": [
                {"name": "exporter", "ports": [{"name": _EXPORTER_PORT, "containerPort": port}]}
            ],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.1", "conditions": [_ready(ready=True)]},
    }


def _ready(ready: bool) -> dict[str, str]:
    return {"type": "Ready", "status": "True" if ready else "False"}
