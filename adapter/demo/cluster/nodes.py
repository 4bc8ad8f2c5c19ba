"""The nodes and namespaces of the simulation as manifests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

from adapter.demo.hardware import DemoNode
from adapter.demo.manifests import EXPORTER_NAMESPACE, identity
from adapter.demo.state import DemoState

Json = dict[str, Any]
SYSTEM: Final = "kube-system"
RELEASE: Final = "v1.37.2"
"""The release whose controllers the demo follows."""
_PODS: Final = "110"


def nodes(state: DemoState) -> Iterator[Json]:
    """Yield the nodes that have joined, of both node pools and of the cluster without nodepool."""
    for cluster in state.everything:
        for node in cluster.world.fleet.nodes:
            if node.ready(cluster.world.now):
                yield _node(state, node)


def namespaces(state: DemoState) -> Iterator[Json]:
    """Yield the namespaces."""
    names = (
        "default",
        SYSTEM,
        EXPORTER_NAMESPACE,
        *(cluster.namespace for cluster in state.everything),
    )
    for name in names:
        yield {
            "metadata": {
                "name": name,
                "uid": identity("namespace", name),
                "creationTimestamp": state.times.text(state.world.start),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }


def _node(state: DemoState, node: DemoNode) -> Json:
    pool, joined = node.pool, state.times.text(node.ready_at)
    product = pool.model.replace(" ", "-")
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "agentpool": pool.name,
        "node.kubernetes.io/instance-type": pool.instance_type,
        "topology.kubernetes.io/zone": "demo-1",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(pool.gpus),
        "nvidia.com/mig.strategy": "mixed" if pool.mig_profile else "none",
    }
    amounts = {
        "cpu": "96",
        "memory": "1056Gi",
        "pods": _PODS,
        pool.resource: str(len(node.devices)),
    }
    return {
        "metadata": {
            "name": node.name,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.name}.node")),
            "creationTimestamp": joined,
            "labels": labels,
        },
        "spec": {"providerID": f"demo://{node.name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": node.name},
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastTransitionTime": joined,
                    "lastHeartbeatTime": state.times.text(state.world.now),
                }
            ],
            "nodeInfo": {
                "kubeletVersion": RELEASE,
                "osImage": "simulated",
                "kernelVersion": "simulated",
                "containerRuntimeVersion": "simulated://1",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }
