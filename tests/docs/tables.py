"""``kubectl get gpus``, ``gpupods`` and ``gpuworkloads`` over one cluster, as kubectl prints them.

Node n1 has two GPUs of the Deployment llm, n2 has a GPU that two pods share by time-slicing, and
the exporter of n3 names no pod.
"""

from __future__ import annotations

import msgspec

from adapter.config.process.output import table
from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.pod import Owner, Pod
from apiservice.view.cells import MISSING
from tests.adapter.answers.view.viewer import Shelf, Viewer
from tests.adapter.world import World, make_pod

NOW = 100.0
NAMESPACE = "chat"
SHARED = {
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.replicas": "2",
    "nvidia.com/gpu.count": "1",
}
UTIL, USED, FREE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"


def gpus() -> str:
    """Return ``kubectl get gpus``."""
    return _text(_viewer().gpus)


def gpupods() -> str:
    """Return ``kubectl get gpupods -n chat``."""
    return _text(_viewer().pods)


def gpuworkloads() -> str:
    """Return ``kubectl get gpuworkloads -n chat``."""
    return _text(_viewer().workloads)


def _text(shelf: Shelf) -> str:
    columns = [(number, column.name) for number, column in enumerate(shelf.resource.columns)]
    columns = [(i, name) for i, name in columns if not shelf.resource.columns[i].wide]
    rows = []
    for name in shelf.names():
        cells = shelf.cells(name, NOW, NAMESPACE)
        rows.append([name, *(MISSING if cells[i] is None else str(cells[i]) for i, _ in columns)])
    header = ["NAME", *(name.upper() for _, name in columns)]
    return "".join(f"{line}\n" for line in table(rows, header))


def _viewer() -> Viewer:
    world = World(
        _pod("llm-7f9", "n1"),
        _pod("llm-a11", "n1"),
        _pod("llm-x2k", "n3"),
        _pod("embed-0", "n2", "embed"),
        _pod("embed-1", "n2", "embed"),
        nodes={"n1": {}, "n2": SHARED, "n3": {}},
    )
    pages = {
        "n1": _gpu("n1", 0, 92, "llm-7f9") + _gpu("n1", 1, 88, "llm-a11"),
        "n2": _gpu("n2", 0, 41, "embed-0"),
        "n3": _gpu("n3", 0, 95),
    }
    for node, page in pages.items():
        world.scrape(page, NOW - 2, origin=f"http://{node}:9400/metrics", node=node)
    return Viewer(world, _hpa())


def _pod(name: str, node: str, workload: str = "llm") -> Pod:
    labels = {"app": workload, "pod-template-hash": "abc"}
    owner = Owner("apps/v1", "ReplicaSet", f"{workload}-abc")
    return make_pod(name, namespace=NAMESPACE, node=node, uid=name, labels=labels, owner=owner)


def _gpu(node: str, index: int, utilization: int, pod: str = "") -> str:
    labels = f'gpu="{index}",UUID="GPU-{node}-{index}",modelName="NVIDIA H100"'
    if pod:
        labels += f',container="server",namespace="{NAMESPACE}",pod="{pod}"'
    values = {UTIL: utilization, USED: utilization * 800, FREE: 81920 - utilization * 800}
    return "".join(f"{name}{{{labels}}} {value}\n" for name, value in values.items())


def _hpa() -> ShownHpa:
    metric = {
        "metric": {"name": "gpu_utilization"},
        "target": {"type": "AverageValue", "averageValue": "70"},
    }
    seen = {"metric": {"name": "gpu_utilization"}, "current": {"averageValue": "90"}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    body = {
        "metadata": {"name": "llm", "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "Pods", "pods": metric}],
        },
        "status": {
            "currentReplicas": 3,
            "desiredReplicas": 3,
            "currentMetrics": [{"type": "Pods", "pods": seen}],
            "conditions": [{"type": "ScalingActive", "status": "True"}],
        },
    }
    return decode(msgspec.json.encode(body))
