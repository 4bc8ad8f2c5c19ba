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


def write(path: Path, items: Sequence[Mapping[str, Any]]) -> None:
    """Write pods as the API lists them. A reader sees the old or the new file, never a part."""
    content = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(content), encoding="utf-8")
    beside.replace(path)


def _pod(pod: DemoPod, namespace: str) -> dict[str, Any]:
    state = pod_state(pod)
    metadata = {
        "name": pod.name,
        "namespace": namespace,
        # Both namespaces have a pod of this name.
        "uid": str(uuid.uuid5(uuid.UUID(pod.uid), namespace)),
        "labels": {"app": pod.service, "pod-template-hash": "6d5f8c7b9"},
    }
    if state.deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = pod_spec(pod.resource)
    if pod.node:
        spec["nodeName"] = pod.node.name
    return _manifest(metadata, ("ReplicaSet", f"{pod.service}-6d5f8c7b9"), spec, state)


def _exporter(node: DemoNode, port: int) -> dict[str, Any]:
    name = f"dcgm-exporter-{node.name}"
    ports = [{"name": _EXPORTER_PORT, "containerPort": port}]
    return _manifest(
        {"name": name, "namespace": _EXPORTER_NAMESPACE, "uid": name, "labels": _EXPORTER_LABELS},
        ("DaemonSet", "dcgm-exporter"),
        {"nodeName": node.name, "containers": [{"name": "exporter", "ports": ports}]},
        PodState(name),
    )


def _manifest(
    metadata: dict[str, Any], owner: tuple[str, str], spec: dict[str, Any], state: PodState
) -> dict[str, Any]:
    kind, name = owner
    ready = {"type": "Ready", "status": str(state.ready)}
    status = {"phase": state.phase, "conditions": [ready]}
    if "nodeName" in spec:
        status["podIP"] = "127.0.0.1"
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [reference | {"uid": name}]},
        "spec": spec,
        "status": status,
    }
