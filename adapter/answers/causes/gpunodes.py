"""Nodes that have GPUs and do not offer all of them, and devices that are reported unhealthy.

The kubelet counts all devices in ``capacity`` and the healthy ones in ``allocatable``
(NVIDIA/k8s-device-plugin issues 58 and 75). A plugin that is gone leaves ``allocatable: 0``, and
later 0 in both. An Xid error makes a device unhealthy until the plugin is restarted (issue 189).
``allocatedResourcesStatus`` has the health of a pod's devices (kubernetes pull request 126243).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.fixes import on
from adapter.answers.causes.target import Target
from adapter.figures import count
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.nodelabels import has_gpus
from adapter.pipeline.cluster.nodestarts import withheld
from adapter.pipeline.cluster.objects import ResourceSlice, SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

_XID: Final = (
    "see the Xid errors in the log of the device plugin and of the kernel; a restart of the plugin "
    "makes a device healthy again that recovered"
)
_UNHEALTHY: Final = "Unhealthy"


def amount(amounts: Mapping[str, str | int], resource: str) -> int:
    """Return the whole number of devices; 0 if there is none."""
    text = str(amounts.get(resource, "0"))
    return int(text) if text.isdigit() else 0


def gpus_of(node: SeenNode, resources: GpuResources) -> dict[str, int]:
    """Return the GPU resources that a node offers, without those that count parts of a GPU."""
    allocatable = node.status.allocatable
    return resources.devices(
        {name: amount(allocatable, name) for name in allocatable if resources.is_device(name)}
    )


def resources_of(target: Target, pods: Sequence[SeenPod]) -> list[str]:
    """Return the GPU resources that pods ask for, without those that count parts of a GPU."""
    device = target.facts.resources.is_device
    return sorted({name for pod in pods for name in pod.pod.gpus if device(name)})


def claimed(slices: Iterable[ResourceSlice]) -> set[str]:
    """Return the nodes whose devices a DRA driver publishes: they need not offer a resource."""
    return {row.spec.node_name for row in slices if row.spec.devices}


def causes(
    nodes: Sequence[SeenNode], resources: GpuResources, by_claims: Collection[str] = ()
) -> Iterator[Cause]:
    """Yield the nodes whose GPUs cannot be allocated. The text follows the node's name.

    Args:
        nodes: the nodes.
        resources: those that stand for a GPU.
        by_claims: nodes whose devices pods get by claims; see :func:`claimed`.
    """
    for node in nodes:
        text, fix = _lack(node, resources)
        promised = any(map(resources.is_device, node.status.capacity))
        if text and (promised or node.name not in by_claims):
            yield Cause(
                CauseCode.GPUS_UNAVAILABLE,
                f"node {node.name}",
                text,
                fix,
                f"kubectl describe node {shlex.quote(node.name)}",
            )


def _lack(node: SeenNode, resources: GpuResources) -> tuple[str, str]:
    """Return what a node lacks, and what to do; two empty texts if it lacks nothing."""
    allocatable = node.status.allocatable
    gone = []
    for name, has, offers in withheld(node.state(resources)):
        if offers:
            lost = count(has - offers, "device")
            text = f"offers {offers} of its {has} {name}: the plugin reports {lost} unhealthy"
            return text, _XID
        gone.append(f"0 of its {has} {name}")
    plugin = "see whether the driver and the device plugin run on the node, and their logs"
    if gone:
        return f"offers {' and '.join(gone)}: no device is healthy, or the plugin is gone", plugin
    if has_gpus(node.metadata.labels) and not gpus_of(node, resources):
        zero = [name for name in sorted(allocatable) if resources.is_device(name)]
        known = f" ({', '.join(zero)} is 0)" if zero else ""
        return f"is labeled as a GPU node and offers no GPU{known}", plugin
    return "", ""


def unhealthy(target: Target) -> Iterator[Cause]:
    """Yield the target's pods that hold a device that is reported unhealthy."""
    for pod in target.pods:
        devices = {
            f"{device.resource_id} of {row.name}"
            for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
            for row in status.allocated_resources_status
            for device in row.resources
            if device.health == _UNHEALTHY
        }
        if devices:
            node = pod.pod.node
            yield target.cause(
                CauseCode.DEVICE_UNHEALTHY,
                f"{target.some([pod])} holds {count(len(devices), 'device')} that "
                f"{'is' if len(devices) == 1 else 'are'} reported unhealthy "
                f"(allocatedResourcesStatus: {', '.join(sorted(devices)[:3])}) on node {node}",
                "delete the pod, so that it gets another device, and see the Xid errors of the "
                "node",
                on(pod_key(pod), "delete"),
                [pod],
            )
