"""Simulated GPUs on a real node: which pods hold them, and how busy they are.

A node of a real cluster may claim devices that it does not have (Kubernetes, "Advertise Extended
Resources for a Node"). The scheduler then binds pods to them as to any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from adapter.cluster.pod import Pod
from adapter.demo.hardware import DemoDevice, DemoPool, make_node
from adapter.demo.page import DeviceHolder, text

RESOURCE = "nvidia.com/gpu"
GPUS = 8
"""GPUs of a node."""
LOAD = "gpu-metrics-adapter.io/simulated-load"
"""Annotation of a Deployment: its work, in percent of one GPU."""
_MEMORY_SHARE = 0.5


class Load(NamedTuple):
    """Work that a Deployment's ready pods share evenly."""

    namespace: str
    labels: Mapping[str, str]
    """``spec.selector.matchLabels``."""
    percent: float
    """Percent of one GPU: 280 keeps four GPUs at 70 percent."""

    def selects(self, pod: Pod) -> bool:
        """Return whether it is one of the Deployment's pods."""
        return pod.ref.namespace == self.namespace and self.labels.items() <= pod.labels.items()


class SimulatedGpus:
    """The GPUs of one node."""

    def __init__(self, node: str) -> None:
        pool = DemoPool(node, RESOURCE, "NVIDIA H100 80GB HBM3", gpus=GPUS, memory_mib=81559)
        self._node = make_node(node, pool, ordered_at=0.0, ready_at=0.0)
        self._holders: dict[DemoDevice, Pod] = {}

    def update(self, pods: Iterable[Pod], loads: Sequence[Load]) -> None:
        """Take the pods of the whole cluster. A pod keeps its GPUs while it has a node. A pod that
        finds too few free GPUs gets those that are free."""
        holding = [pod for pod in pods if pod.gpus.get(RESOURCE) and not pod.finished]
        here = {pod.uid: pod for pod in holding if pod.node == self._node.name}
        kept = {device: here[pod.uid] for device, pod in self._holders.items() if pod.uid in here}
        free = [device for device in self._node.devices if device not in kept]
        for pod in here.values():
            held = sum(holder is pod for holder in kept.values())
            while held < pod.gpus[RESOURCE] and free:
                kept[free.pop(0)] = pod
                held += 1
        self._holders = kept
        for device in self._node.devices:
            device.record(_busy(kept.get(device), holding, loads), keep=1)

    def page(self) -> bytes:
        """Return the page that dcgm-exporter would serve now."""
        return text(self._node, self._holder)

    def _holder(self, device: DemoDevice) -> DeviceHolder | None:
        pod = self._holders.get(device)
        if pod is None:
            return None
        container = pod.containers[0] if pod.containers else ""
        return DeviceHolder(pod.ref.namespace, pod.ref.name, container, _MEMORY_SHARE)


def _busy(holder: Pod | None, holding: Iterable[Pod], loads: Iterable[Load]) -> float:
    """Return the busy share of a GPU of this pod, 0 to 1. A pod that is not ready does no work."""
    if holder is None or not _serves(holder):
        return 0.0
    percent = 0.0
    for load in loads:
        if load.selects(holder):
            among = sum(pod.gpus[RESOURCE] for pod in holding if load.selects(pod) and _serves(pod))
            percent += load.percent / among
    return min(1.0, percent / 100)


def _serves(pod: Pod) -> bool:
    return pod.ready and not pod.deleting
