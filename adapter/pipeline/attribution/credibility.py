"""Decide which assignments of a pod to accept if they cannot all be true.

After a pod has left a node, or a pod of the same name has had a device, old samples may remain
(dcgm-exporter#140). A sample without the pod's UID does not show whether it is old.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adapter.pipeline.attribution.candidate import Candidate
from adapter.pipeline.attribution.holdings import Holders, Holding
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.split import NodeContext
from adapter.pipeline.cluster.gpuresources import whole_devices
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.series import DeviceSeries

WAITS: Final = "sample_without_node"
"""Reject reason: the node of the sample's exporter is unknown, and another exporter that is
known to be on the pod's node reports the same metric.
"""
TOO_MANY: Final = "more_devices_than_asked"
"""Reject reason: samples assign the pod more devices than its spec requests."""
CLUSTERS: Final = "several_clusters"
"""Reject reason: samples of several clusters name a pod with this name."""
BOARD: Final = "board_of_mig_instances"
"""Reject reason: the sample is about a board with MIG instances; pods have the instances."""


def requested_devices(pod: Pod) -> int:
    """Return the number of devices that the spec requests, of resources that mean whole devices."""
    return whole_devices(pod.gpus)


def several_clusters(all_series: Sequence[DeviceSeries]) -> Absence | None:
    """Return an absence if samples of several clusters name the pod."""
    if len(all_series) == 1:
        return None
    clusters = sorted({series.cluster for series in all_series} - {""})
    if len(clusters) <= 1:
        return None
    return Absence(CLUSTERS, f"{', '.join(clusters)}: select one with source.prometheus.matchers")


def unbelieved_devices(
    devices: Mapping[str, list[Candidate]], requested: int, pod: Pod, context: NodeContext
) -> dict[str, str]:
    """Return the devices that the pod cannot have -> why their samples are left out.

    Args:
        devices: device -> candidates with a usable sample.
        requested: devices that the pod's spec requests; 0 if there is no such limit.
        pod: the current pod.
        context: of its node.
    """
    left = {device: WAITS for device, some in devices.items() if all(map(_waits, some))}
    if not requested or pod.claims or len(devices) - len(left) <= requested:
        return left
    by_series: defaultdict[str, list[str]] = defaultdict(list)
    for device, some in devices.items():
        if device not in left:
            for series in {s.series for c in some if (s := c.measured) and _has_whole(c)}:
                by_series[series].append(device)
    # Two exporters may use different names for one device; one exporter uses one name.
    for named in by_series.values():
        if len(named) > requested:
            proven = _proven_devices(named, requested, devices, pod, context.held)
            left |= {device: TOO_MANY for device in named if device not in proven}
    return left


def _has_whole(candidate: Candidate) -> bool:
    """Return whether the pod has the whole device: a spec's number does not limit parts."""
    return not candidate.shared and not candidate.series.own


def _waits(candidate: Candidate) -> bool:
    series, measured = candidate.series, candidate.measured
    if series.node or series.assignment is None or series.sees or measured is None:
        return False
    return candidate.context.reported.issuperset(measured.field.split("+"))


def _proven_devices(
    named_devices: list[str],
    requested: int,
    devices: Mapping[str, list[Candidate]],
    pod: Pod,
    holdings: Holders,
) -> list[str]:
    """Return the devices that are the pod's, out of too many; none if there is no evidence.

    Evidence is, in this order: samples with the pod's UID; devices that samples did not assign to
    its predecessor of the same name, according to the holdings; and devices on the newest page of
    their exporter, which no longer names the pod for the others.
    """
    by_uid = [d for d in named_devices if any(_is_certain(c, pod) for c in devices[d])]
    by_memory = [
        d for d in named_devices if any(_holds(holding, pod) for holding in holdings.get(d, ()))
    ]
    newest = _newest_times(c for device in named_devices for c in devices[device])
    by_page = [d for d in named_devices if any(_time(c) >= newest[_page(c)] for c in devices[d])]
    proofs = (by_uid, by_memory, by_page)
    return next((some for some in proofs if 0 < len(some) <= requested), [])


def _newest_times(candidates: Iterable[Candidate]) -> dict[str, float]:
    """Return exporter -> time of its newest sample."""
    times: dict[str, float] = {}
    for candidate in candidates:
        times[_page(candidate)] = max(_time(candidate), times.get(_page(candidate), 0.0))
    return times


def _page(candidate: Candidate) -> str:
    return candidate.series.origin


def _time(candidate: Candidate) -> float:
    return candidate.measured.time if candidate.measured is not None else 0.0


def _holds(holding: Holding, pod: Pod) -> bool:
    return holding.pod == pod.ref and holding.uid == pod.uid


def _is_certain(candidate: Candidate, pod: Pod) -> bool:
    assignment = candidate.series.assignment
    return assignment is not None and bool(assignment.uid) and assignment.uid == pod.uid
