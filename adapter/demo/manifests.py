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
from adapter.demo.wallclock import WallClock
from adapter.demo.world import COLLECT, World
from adapter.hpa import PodState
from adapter.pipeline.cluster.optin import PREFIX

EXPORTER_NAMESPACE = "gpu-metrics"
EXPORTER = "dcgm-exporter"
"""The DaemonSet of the exporters."""
# The labels that dcgm-exporter's own chart sets, and by which ``serve`` finds it.
EXPORTER_LABELS = {"app.kubernetes.io/name": "dcgm-exporter"}
_EXPORTER_PORT = "metrics"
_HASH = "6d5f8c7b9"
"""The ``pod-template-hash`` of every service."""


def identity(kind: str, name: str, namespace: str = "") -> str:
    """Return the ``uid`` of an object that is not a pod."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.{namespace}.{kind}"))


def pod_uid(pod: DemoPod, namespace: str) -> str:
    """Return the ``uid`` of a replica. Both clusters have a pod of its name."""
    return str(uuid.uuid5(uuid.UUID(pod.uid), namespace))


def labels(service: str) -> dict[str, str]:
    """Return the labels of a service's pods."""
    return {"app": service, "pod-template-hash": _HASH}


def replicaset(service: str) -> str:
    """Return the name of a service's ReplicaSet."""
    return f"{service}-{_HASH}"


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
    world: World,
    namespace: str,
    exporter_ports: Mapping[str, int],
    times: WallClock,
    server_ports: Mapping[str, int] | None = None,
) -> Sequence[dict[str, Any]]:
    """Return every pod of the cluster, the nodes' exporters included.

    Args:
        world: the simulated cluster.
        namespace: the services' namespace.
        exporter_ports: node -> TCP port on loopback of its exporter.
        times: the time of day of the simulation.
        server_ports: ``namespace/pod`` -> TCP port on loopback of its server page.
    """
    ports = server_ports or {}
    replicas = [
        _pod(pod, namespace, times, ports.get(server_name(namespace, pod.name)))
        for pod in world.fleet.pods.values()
    ]
    exporters = [
        _exporter(node, exporter_ports[node.name], times)
        for node in world.fleet.nodes
        if node.name in exporter_ports
    ]
    return replicas + exporters


def server_name(namespace: str, pod: str) -> str:
    """Return the name under which a pod's server page listens."""
    return f"{namespace}/{pod}"


def pod_spec(resource: str) -> dict[str, Any]:
    """Return the ``spec`` of a replica, as in its Deployment's template."""
    devices = {resource: "1"}
    resources = {"limits": devices, "requests": devices}
    return {
        "containers": [{"name": "server", "image": "simulated", "resources": resources}],
    }


def write(path: Path, items: Sequence[Mapping[str, Any]]) -> None:
    """Write objects as the API lists them. A reader sees the old or the new file, never a part."""
    content = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(content), encoding="utf-8")
    beside.replace(path)


def _pod(pod: DemoPod, namespace: str, times: WallClock, port: int | None) -> dict[str, Any]:
    state = pod_state(pod)
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": namespace,
        "uid": pod_uid(pod, namespace),
        "creationTimestamp": times.text(pod.created),
        "labels": labels(pod.service),
    }
    if port is not None:
        metadata["annotations"] = {f"{PREFIX}scrape": "true", f"{PREFIX}port": str(port)}
    if pod.deleted is not None:
        metadata["deletionTimestamp"] = times.text(pod.deleted)
    spec = pod_spec(pod.resource)
    if pod.node:
        spec["nodeName"] = pod.node.name
    owner = ("apps/v1", "ReplicaSet", replicaset(pod.service))
    return _manifest(metadata, owner, spec, _status(pod, state, times))


def _status(pod: DemoPod, state: PodState, times: WallClock) -> dict[str, Any]:
    """Return the status of a replica, in the words of scheduler and kubelet."""
    if pod.bound is None:
        scheduled = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": no_room(pod.resource),
            "lastTransitionTime": times.text(pod.created),
        }
        return {"phase": state.phase, "conditions": [scheduled]}
    began = times.text(pod.bound)
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": began}
    running = {"startedAt": began}
    return {
        "phase": state.phase,
        "podIP": "127.0.0.1",
        "hostIP": "127.0.0.1",
        "startTime": began,
        "conditions": [
            scheduled,
            {
                "type": "Ready",
                "status": str(state.ready),
                "lastTransitionTime": times.text(pod.since) if state.ready else began,
            },
        ],
        "containerStatuses": [
            {
                "name": "server",
                "image": "simulated",
                "imageID": "",
                "ready": state.ready,
                "restartCount": 0,
                "state": {"running": running},
            }
        ],
    }


def no_room(resource: str) -> str:
    """Return why no node takes a pod, as the scheduler writes it."""
    return f"no node has a free {resource}: Insufficient {resource}."


def exporter_container() -> dict[str, Any]:
    """Return the container of an exporter, as in its DaemonSet's template."""
    # As every duration of a manifest, in simulated time.
    interval = {"name": "DCGM_EXPORTER_INTERVAL", "value": f"{1000 * COLLECT}"}
    return {"name": "exporter", "image": "simulated", "env": [interval]}


def _exporter(node: DemoNode, port: int, times: WallClock) -> dict[str, Any]:
    name, began = f"{EXPORTER}-{node.name}", times.text(node.ready_at)
    ports = [{"name": _EXPORTER_PORT, "containerPort": port}]
    container = {**exporter_container(), "ports": ports}
    return _manifest(
        {
            "name": name,
            "namespace": EXPORTER_NAMESPACE,
            "uid": name,
            "creationTimestamp": began,
            "labels": EXPORTER_LABELS,
        },
        ("apps/v1", "DaemonSet", EXPORTER),
        {
            "nodeName": node.name,
            "containers": [container],
        },
        {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "hostIP": "127.0.0.1",
            "startTime": began,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": began}],
            "containerStatuses": [
                {
                    "name": "exporter",
                    "image": "simulated",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": began}},
                }
            ],
        },
    )


def _manifest(
    metadata: dict[str, Any],
    owner: tuple[str, str, str],
    spec: dict[str, Any],
    status: dict[str, Any],
) -> dict[str, Any]:
    version, kind, name = owner
    reference = {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": identity(kind.lower(), name, metadata["namespace"]),
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [reference]},
        "spec": spec,
        "status": status,
    }
