"""How much of whole GPUs a pod holds, and how much of that it uses, leaves idle, or nobody knows.

What a pod holds follows from its manifest and its node's labels, so a missing page does not change
it. A MIG instance or a partition is its part of the compute, a replica of a shared GPU is one of
the node's replicas, and a part that the spec states (``nvidia.com/gpucores``) is that part, so that
four pods with 25 % of a GPU hold one GPU together (opencost/opencost#3828, Project-HAMi/HAMi#3073).
Where the manifest does not show it, as with a resource claim or a GPU group, the reading does.
"""

from __future__ import annotations

from typing import NamedTuple

from adapter.pipeline.attribution.reading import Absence, Attribution, DeviceReading, Reading
from adapter.pipeline.catalog.migprofile import gpu_part
from adapter.pipeline.cluster.gpuresources import (
    MIG_PREFIX,
    RENAMED_SUFFIX,
    ResourceUnit,
    core_part,
    devices,
    unit_of,
)
from adapter.pipeline.cluster.nodelabels import AMD, NodeFacts
from adapter.pipeline.cluster.pod import Pod

_FULL = 100.0


class HeldGpus(NamedTuple):
    """What a pod holds."""

    gpus: float
    """In whole GPUs."""
    devices: int
    """Devices, instances or replicas that its values are of."""


class GpuUse(NamedTuple):
    """What a pod holds, in whole GPUs."""

    used: float
    idle: float
    unknown: float
    """Neither: its utilization is not known."""


def held_gpus(pod: Pod, facts: NodeFacts) -> HeldGpus | None:
    """Return what a pod holds by its manifest and its node's labels; None if they do not show it.

    Args:
        pod: on a node.
        facts: of its node.
    """
    gpus, number = 0.0, 0
    for resource, count in devices(pod.gpus).items():
        part = _part(resource, pod, facts)
        if part is None:
            return None
        gpus += count * part
        number += count
    return HeldGpus(gpus, number) if number else None


def _part(resource: str, pod: Pod, facts: NodeFacts) -> float | None:
    """Return the part of a whole GPU that one unit of a resource is."""
    if any(unit_of(name) is ResourceUnit.PART for name in pod.gpus):
        cores = core_part(pod.gpus, len(pod.containers))
        return None if cores is None else min(cores, 1.0)
    plain = resource.removesuffix(RENAMED_SUFFIX)
    part = _device_part(plain, facts)
    replicas = facts.replicas.get(plain, 0)
    if part is None or replicas > 1:
        return None if part is None else part / replicas
    shared = plain != resource or facts.shared or unit_of(resource) is not ResourceUnit.DEVICE
    return None if shared else part


def _device_part(resource: str, facts: NodeFacts) -> float | None:
    """Return the part of a whole GPU that a device of a resource is."""
    if resource.startswith(MIG_PREFIX):
        return gpu_part(resource.removeprefix(MIG_PREFIX), facts.model)
    if facts.mig_strategy == "single":
        return gpu_part(facts.mig_profile, facts.model) if facts.mig_profile else None
    vendor, _, name = resource.partition("/")
    if vendor.partition(".")[0] == AMD and name != "gpu":
        return gpu_part(name, facts.model)
    return 1.0


def gpu_use(pod: Pod, facts: NodeFacts, utilization: Reading | Absence) -> GpuUse | None:
    """Return the use of what a pod holds; None if it is not known what it holds.

    The value of a shared device that is not divided among its pods counts for the part that the
    pod holds. Use beyond that part is not counted.

    Args:
        pod: on a node.
        facts: of its node.
        utilization: its ``gpu_utilization``.
    """
    held = held_gpus(pod, facts)
    if isinstance(utilization, Absence):
        return None if held is None else GpuUse(0.0, 0.0, held.gpus)
    read = utilization.devices
    if held is None:
        parts = [_reported_part(device, facts) for device in read]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) < len(parts):
            return None
        shares = [part / device.sharers for part, device in zip(known_parts, read, strict=True)]
        unknown = 0.0
    else:
        number = max(held.devices, len(read))
        shares = [held.gpus / number] * len(read)
        unknown = held.gpus - sum(shares)
    pairs = zip(read, shares, strict=True)
    used = sum(_used_gpus(device, share, _reported_part(device, facts)) for device, share in pairs)
    return GpuUse(used, sum(shares) - used, unknown)


def _reported_part(device: DeviceReading, facts: NodeFacts) -> float | None:
    """Return the part of a whole GPU that a device of a reading is."""
    labels = device.labels
    return gpu_part(labels.get("mig_profile", ""), labels.get("model", facts.model))


def _used_gpus(device: DeviceReading, share: float, whole: float | None) -> float:
    """Return how much of its share of a device a pod uses, in whole GPUs.

    Args:
        device: of a reading.
        share: what the pod holds of it, in whole GPUs.
        whole: the device, in whole GPUs; None if it is not known.
    """
    load = device.value / _FULL
    if device.attribution is Attribution.COPIED or whole is None:
        return min(load, 1.0) * share
    return min(load * whole, share)
