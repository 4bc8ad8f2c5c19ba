"""The Deployments, ReplicaSets and DaemonSet above the simulated pods as manifests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adapter.demo.fleet import Stage
from adapter.demo.manifests import (
    EXPORTER,
    EXPORTER_LABELS,
    EXPORTER_NAMESPACE,
    exporter_container,
    identity,
    labels,
    pod_spec,
    replicaset,
)
from adapter.demo.state import DemoCluster, DemoState

Json = dict[str, Any]


def deployments(state: DemoState) -> Iterator[Json]:
    """Yield the Deployments of the services."""
    for cluster, name in _services(state):
        counts = _counts(cluster, name)
        yield {
            "metadata": _metadata(state, "deployment", name, cluster.namespace, {"app": name}),
            "spec": {
                "replicas": cluster.world.wanted[name],
                "selector": {"matchLabels": {"app": name}},
                "template": _template(cluster, name, {"app": name}),
                "strategy": {"type": "RollingUpdate"},
            },
            "status": {
                **counts,
                "updatedReplicas": counts["replicas"],
                "unavailableReplicas": counts["replicas"] - counts["readyReplicas"],
                "observedGeneration": 1,
                "conditions": [
                    {
                        "type": "Available",
                        "status": "True",
                        "reason": "MinimumReplicasAvailable",
                        "message": "Deployment has minimum availability.",
                        "lastTransitionTime": state.times.text(cluster.world.start),
                    }
                ],
            },
        }


def replicasets(state: DemoState) -> Iterator[Json]:
    """Yield one ReplicaSet for each Deployment."""
    for cluster, name in _services(state):
        pod_labels = labels(name)
        metadata = _metadata(state, "replicaset", replicaset(name), cluster.namespace, pod_labels)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": identity("deployment", name, cluster.namespace),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        yield {
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": {
                "replicas": cluster.world.wanted[name],
                "selector": {"matchLabels": pod_labels},
                "template": _template(cluster, name, pod_labels),
            },
            "status": {**_counts(cluster, name), "observedGeneration": 1},
        }


def daemonsets(state: DemoState) -> Iterator[Json]:
    """Yield the DaemonSet of the exporters."""
    count = len(state.exporters.ports)
    yield {
        "metadata": _metadata(state, "daemonset", EXPORTER, EXPORTER_NAMESPACE, EXPORTER_LABELS),
        "spec": {
            "selector": {"matchLabels": EXPORTER_LABELS},
            "template": {
                "metadata": {"labels": EXPORTER_LABELS},
                "spec": {"containers": [exporter_container()]},
            },
        },
        "status": {
            "desiredNumberScheduled": count,
            "currentNumberScheduled": count,
            "updatedNumberScheduled": count,
            "numberAvailable": count,
            "numberReady": count,
            "numberMisscheduled": 0,
            "observedGeneration": 1,
        },
    }


def scale(deployment: Json) -> Json:
    """Return the ``scale`` subresource of a Deployment."""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            key: value
            for key, value in deployment["metadata"].items()
            if key in ("name", "namespace", "uid", "creationTimestamp")
        },
        "spec": {"replicas": deployment["spec"]["replicas"]},
        "status": {
            "replicas": deployment["status"]["replicas"],
            "selector": f"app={deployment['metadata']['name']}",
        },
    }


def _services(state: DemoState) -> Iterator[tuple[DemoCluster, str]]:
    for cluster in state.everything:
        for name in sorted(cluster.world.workloads):
            yield cluster, name


def _metadata(
    state: DemoState, kind: str, name: str, namespace: str, object_labels: dict[str, str]
) -> Json:
    return {
        "name": name,
        "namespace": namespace,
        "uid": identity(kind, name, namespace),
        "generation": 1,
        "creationTimestamp": state.times.text(state.world.start),
        "labels": object_labels,
    }


def _template(cluster: DemoCluster, name: str, pod_labels: dict[str, str]) -> Json:
    spec = pod_spec(cluster.world.workloads[name].resource)
    return {"metadata": {"labels": {**pod_labels, "app": name}}, "spec": spec}


def _counts(cluster: DemoCluster, name: str) -> dict[str, int]:
    stages = cluster.world.stages(name)
    return {
        "replicas": stages.total(),
        "readyReplicas": stages[Stage.READY],
        "availableReplicas": stages[Stage.READY],
    }
