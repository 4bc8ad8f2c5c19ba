"""What one exporter said lately: devices, whom they work for, and their samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Assignment, Mismatch
from adapter.devices.device import Device
from adapter.devices.idlepower import IdlePower
from adapter.devices.series import DeviceSeries, SeriesKey
from adapter.devices.validity import RatioScale


class Identity(NamedTuple):
    """What a label set says apart from numbers. Worked out once per label set."""

    labels: Mapping[str, str]
    """Kept so that its address stays its own."""
    device: Device | None
    assignment: Assignment | None
    target: PodRef | None
    host: str
    replica: bool
    """The sample carries a ``vgpu`` label."""
    flaw: str = ""
    """Why there is no device: what the sample is counted under."""
    named: frozenset[PodRef] = frozenset()
    """Every pod that the labels can be read to name; of a device's sample only."""
    cluster: str = ""
    """Of which cluster the sample is, as a store of several writes it."""

    @property
    def key(self) -> SeriesKey:
        """The device series that such a sample belongs to."""
        at = self.device.id if self.device else ""
        if self.assignment is None:
            return SeriesKey(at, None, "", "")
        return SeriesKey(at, self.assignment.pod, self.assignment.container, self.assignment.uid)


class Belief(NamedTuple):
    """What a label set says without a tenant's labels, while the pods stay as they are."""

    known: Identity
    """What all of the labels say."""
    pods: tuple[Pod | None, ...]
    """Those that the labels can be read to name, as they were."""
    identity: Identity
    aside: tuple[str, ...]
    """Why something of it was left aside."""
    key: SeriesKey
    """Of ``identity``."""
    lasts: bool
    """No label is a tenant's: it rests on nothing else."""


@dataclass(frozen=True, slots=True)
class ExporterState:
    """One origin's state after a scrape result. Replaced, never edited."""

    origin: str
    received: float
    pod: PodRef | None
    """The exporter's own pod, where it is known."""
    all_series: Mapping[SeriesKey, DeviceSeries]
    reported: Mapping[str, float]
    """Field -> epoch seconds at which a sample of a whole device was last seen."""
    scale: RatioScale
    idle: IdlePower
    """What its devices draw when idle. Each state has its own."""
    beliefs: Mapping[int, Belief]
    """Address of a label set of the last result, and a salt for a server's -> what it says."""
    disowned: Mapping[PodRef, Mismatch]
    """Pods that samples of the last result seem to name for devices, and why they do not."""
    pods: Mapping[PodRef, tuple[DeviceSeries, ...]] = field(init=False)
    devices: Mapping[str, tuple[DeviceSeries, ...]] = field(init=False)
    answers: dict[object, object] = field(init=False, default_factory=dict)
    """What readers worked out from these device series; ends with them."""

    def __post_init__(self) -> None:
        pods: dict[PodRef, list[DeviceSeries]] = {}
        devices: dict[str, list[DeviceSeries]] = {}
        for key, series in self.all_series.items():
            devices.setdefault(key.device, []).append(series)
            if key.pod is not None:
                pods.setdefault(key.pod, []).append(series)
        object.__setattr__(self, "pods", {ref: tuple(its) for ref, its in pods.items()})
        object.__setattr__(self, "devices", {at: tuple(its) for at, its in devices.items()})
