"""Nodes that have GPUs and do not offer all of them, and devices that are reported unhealthy.

The kubelet counts all devices in ``capacity`` and the healthy ones in ``allocatable``
(NVIDIA/k8s-device-plugin issues 58 and 75). A plugin that is gone leaves ``allocatable: 0``, and
later 0 in both. An Xid error makes a device unhealthy until the plugin is restarted (issue 189).
``allocatedResourcesStatus`` has the health of a pod's devices (kubernetes pull request 126243).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.fixes import describe, on
from adapter.answers.causes.target import Target
from adapter.figures import count
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.nodelabels import has_gpus
from adapter.pipeline.cluster.nodeoperations import operations
from adapter.pipeline.cluster.nodestarts import withheld_resources
from adapter.pipeline.cluster.objects import ResourceSlice, SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

_XID: Final = (
    "see the Xid errors in the log of the device plugin and of the kernel; a restart of the plugin "
    "makes a device healthy again that recovered"
)


def amount(amounts: Mapping[str, str | int | float], resource: str) -> int:
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


def dra_nodes(slices: Iterable[ResourceSlice]) -> set[str]:
    """Return the nodes whose devices a DRA driver publishes: they need not offer a resource."""
    return {row.spec.node_name for row in slices if row.spec.devices}


def causes(
    nodes: Sequence[SeenNode],
    resources: GpuResources,
    by_claims: Collection[str] = (),
    *,
    names: Sequence[str] = (),
    pods: Sequence[SeenPod] = (),
) -> Iterator[Cause]:
    """Yield the nodes whose GPUs cannot be allocated. The text follows the node's name.

    Args:
        by_claims: nodes whose devices pods get by claims; see :func:`dra_nodes`.
        names: the GPU resources that count; empty for all. A node that offers nothing may have had
            any.
        pods: as far as they were read. One of the driver or of the device plugin that does not run
            is the cause.
    """
    for node in nodes:
        lack = _lack(node, resources)
        if lack is None or (names and lack.names and not set(names) & set(lack.names)):
            continue
        if node.name in by_claims and not any(map(resources.is_device, node.status.capacity)):
            continue
        text, fix = lack.text, lack.fix
        command = f"kubectl describe node {shlex.quote(node.name)}"
        if (operand := _operand(node.name, pods)) is not None:
            text += f"; {operand.subject} is not ready: {_state(operand)}"
            fix = f"see the events and the log of {operand.subject}; {fix}"
            command = describe(pod_key(operand))
        yield Cause(CauseCode.GPUS_UNAVAILABLE, f"node {node.name}", text, fix, command)


_OPERANDS: Final = ("driver", "toolkit", "device-plugin", "deviceplugin", "kubelet-plugin")
"""Parts of the names of pods that make the GPUs of a node usable, in the order in which one waits
for the other (NVIDIA/gpu-operator issues 378 and 448)."""


def _operand(node: str, pods: Sequence[SeenPod]) -> SeenPod | None:
    """Return the first pod of a DaemonSet without which the node offers no GPU, and that is not
    ready; None without one."""
    unready = [
        (next((at for at, part in enumerate(_OPERANDS) if part in pod.pod.owner.name), None), pod)
        for pod in pods
        if pod.pod.node == node and not pod.pod.ready and not pod.pod.finished
        if pod.pod.owner is not None and pod.pod.owner.kind == "DaemonSet"
    ]
    operands = [(at, pod.key, pod) for at, pod in unready if at is not None]
    return min(operands)[2] if operands else None


def _state(pod: SeenPod) -> str:
    """Return why a pod is not ready, as kubectl writes it."""
    parts = (("Init:", pod.status.init_container_statuses), ("", pod.status.container_statuses))
    for prefix, rows in parts:
        for row in rows:
            if row.state.waiting is not None and row.state.waiting.reason not in _WAITS:
                return f"{prefix}{row.state.waiting.reason} ({row.name})"
    starts = [row for row in pod.status.init_container_statuses if row.state.running is not None]
    return f"Init ({starts[0].name} runs)" if starts else pod.pod.phase or "Pending"


_WAITS: Final = ("", "PodInitializing", "ContainerCreating")


class _Lack(NamedTuple):
    """What a node lacks, and what to do."""

    text: str
    fix: str
    names: Sequence[str] = ()
    """The GPU resources; empty if they are not known."""


def _lack(node: SeenNode, resources: GpuResources) -> _Lack | None:
    """Return what a node lacks; None if it lacks nothing.

    What an operator has failed to do is the cause. What it is doing explains GPUs that are gone.
    """
    work = next(operations(node.metadata.labels), None)
    if work is not None and work.failed:
        return _Lack(f"offers its GPUs to no new pod, or not as wanted: {work.text}", work.fix)
    allocatable = node.status.allocatable
    gone = []
    for name, has, offers in withheld_resources(node.state(resources)):
        if offers:
            lost = count(has - offers, "device")
            text = f"offers {offers} of its {has} {name}: the plugin reports {lost} unhealthy"
            return _Lack(text, _XID, [name])
        gone.append((name, has))
    plugin = "see whether the driver and the device plugin run on the node, and their logs"
    why = "no device is healthy, or the plugin is gone"
    if work is not None:
        why, plugin = work.text, work.fix
    if gone:
        lost = " and ".join(f"0 of its {has} {name}" for name, has in gone)
        return _Lack(f"offers {lost}: {why}", plugin, [name for name, _ in gone])
    if has_gpus(node.metadata.labels) and not gpus_of(node, resources):
        zero = [name for name in sorted(allocatable) if resources.is_device(name)]
        detail = f" ({', '.join(zero)} is 0)" if zero else ""
        more = f": {why}" if work is not None else ""
        text = f"is labeled as a GPU node and offers no GPU{detail}{more}"
        return _Lack(text, plugin, zero)
    return None


def unhealthy_devices(target: Target) -> Iterator[Cause]:
    """Yield the target's pods that hold a device that is reported unhealthy."""
    for pod in target.pods:
        devices = pod.pod.unhealthy
        if devices:
            node = pod.pod.node
            yield target.cause(
                CauseCode.DEVICE_UNHEALTHY,
                f"{target.some([pod])} holds {count(len(devices), 'device')} that "
                f"{'is' if len(devices) == 1 else 'are'} reported unhealthy "
                f"(allocatedResourcesStatus: {', '.join(devices[:3])}) on node {node}",
                "delete the pod, so that it gets another device, and see the Xid errors of the "
                "node",
                on(pod_key(pod), "delete"),
                [pod],
            )
