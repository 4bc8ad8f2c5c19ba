"""What follows from all exporters' series of a device: rivals, false zeros, and idle devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from adapter.pipeline.attribution.nodecontext import ClusterContext
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.remainder import Doubts, contradicted_zeros
from adapter.pipeline.devices.series import DeviceSeries, idle_since
from adapter.pipeline.devices.state import ExporterState
from apiservice.runtime.steps import Steps

_PER_STEP: Final = 64
"""Devices that one step processes."""


def rival_assignments(
    pod: Pod,
    all_series: Sequence[DeviceSeries],
    contested: Mapping[str, tuple[str, ...]],
    exporters: Mapping[str, ExporterState],
    cluster: ClusterContext,
) -> dict[str, float]:
    """Return device -> when another exporter last assigned it to another pod (epoch seconds).

    Args:
        pod: the pod that ``all_series`` name.
        all_series: its devices' series.
        contested: device that several exporters report -> their origins.
        exporters: origin -> what it reported.
        cluster: what is known about the nodes.
    """
    rivals: dict[str, float] = {}
    node = pod.node
    placed = {series.device.id for series in all_series if series.node and series.node == node}
    for device in {series.device.id for series in all_series} & contested.keys():
        for origin in contested[device]:
            for other in exporters[origin].devices[device]:
                theirs = other.assignment is not None and other.assignment.pod != pod.ref
                if not theirs or other.shared or other.superseded:
                    continue
                if device in placed and cluster.node_of(other) != node:
                    continue  # the device is known to be on the pod's node, so not on this one
                if cluster.believes(other):
                    rivals[device] = max(rivals.get(device, 0.0), other.received)
    return rivals


def false_beside_others(
    origin: str,
    device: str,
    contested: Mapping[str, tuple[str, ...]],
    exporters: Mapping[str, ExporterState],
    lag: float,
) -> Mapping[int, Doubts]:
    """Return the address of each device series with zeros that other exporters contradict.

    Args:
        origin: the exporter of the device series.
        device: which several exporters report.
        contested: device that several exporters report -> their origins.
        exporters: origin -> what it reported.
        lag: seconds between two pages of an exporter.
    """
    others = (
        series
        for other in contested[device]
        if other != origin
        for series in exporters[other].devices[device]
    )
    return contradicted_zeros(exporters[origin].devices[device], others, lag)


def idle_devices(
    exporters: Collection[ExporterState],
    oldest: float,
    works: Callable[[DeviceSeries], bool],
) -> Steps[Mapping[str, tuple[float, bool]]]:
    """Return in steps: device -> since when it is idle (epoch seconds), and whether a pod has it.

    A device that one of its series shows at work is not idle.

    Args:
        exporters: what each exporter reported.
        oldest: epoch seconds; a device with a series that is not newer is left out.
        works: returns whether the pod that a device series names is more than a placeholder.
    """
    devices: dict[str, list[DeviceSeries]] = {}
    for exporter in exporters:
        for number, (device, all_series) in enumerate(exporter.devices.items()):
            if number % _PER_STEP == 0:
                yield
            devices.setdefault(device, []).extend(all_series)
    idle: dict[str, tuple[float, bool]] = {}
    for number, (device, its) in enumerate(devices.items()):
        if number % _PER_STEP == 0:
            yield
        since = idle_since(its, oldest)
        if since is not None:
            has_pod = any(s.assignment is not None and not s.superseded and works(s) for s in its)
            idle[device] = since, has_pod
    return idle
