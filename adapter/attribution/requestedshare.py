"""A device's utilisation beside what the pod's spec asked of the device.

A number over 100 is true: time-slicing and HAMi let a pod use what the others leave.
"""

from __future__ import annotations

from typing import Final

from adapter.attribution.reading import Attribution
from adapter.attribution.sharing import resource
from adapter.attribution.split import Given
from adapter.cluster.nodelabels import NodeFacts
from adapter.cluster.pod import Pod
from adapter.devices.state import Track

NO_REQUEST: Final = "nothing_requested"
SHARE_UNKNOWN: Final = "requested_share_unknown"

_CORES: Final = {
    "nvidia.com/gpucores": "nvidia.com/gpu",
    "volcano.sh/vgpu-cores": "volcano.sh/vgpu-number",
}
"""Percent of each device's cores -> devices; HAMi and Volcano."""


def of_request(
    given: Given, pod: Pod | None, track: Track, facts: NodeFacts, *, shared: bool
) -> Given | str:
    """The pod's part divided by its requested share of the device, or why it cannot be.

    Args:
        given: the pod's part.
        pod: None where the question is about the device, of which nobody requests anything.
        track: of the device.
        facts: of its node.
        shared: several pods have the device.
    """
    if pod is None:
        return NO_REQUEST
    share = _cores(pod)
    if shared and given.how is Attribution.COPIED:
        return SHARE_UNKNOWN  # what the others do is in it
    if share is None:
        share = _replica(pod, track, facts) if shared else 1.0
    return SHARE_UNKNOWN if share is None else given._replace(value=given.value / share)


def _cores(pod: Pod) -> float | None:
    """The share that the spec names; None where it names none or several containers' sum."""
    for cores, devices in _CORES.items():
        percent = pod.gpus.get(cores, 0)
        if percent and (len(pod.containers) == 1 or pod.gpus.get(devices) == 1):
            return percent / 100.0
    return None


def _replica(pod: Pod, track: Track, facts: NodeFacts) -> float | None:
    """One of the replicas that the node offers of a device, for a pod that asks for one."""
    kind = resource(track, facts)
    replicas = facts.replicas.get(kind, 0)
    asked = pod.gpus.get(kind, 0) + pod.gpus.get(kind + ".shared", 0)
    return 1.0 / replicas if replicas > 1 and asked == 1 else None
