"""The state of one exporter: its devices, their assignments, and their samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Assignment, Mismatch
from adapter.devices.device import Device
from adapter.devices.idlepower import IdlePower
from adapter.devices.series import DeviceSeries, SeriesKey
from adapter.devices.validity import RatioScale

if TYPE_CHECKING:
    from adapter.devices.pageplan import PagePlan


class Identity(NamedTuple):
    """What a label set names. Computed once per label set."""

    labels: Mapping[str, str]
    """Kept so that the address of the label set is not reused."""
    device: Device | None
    assignment: Assignment | None = None
    target: PodRef | None = None
    host: str = ""
    replica: bool = False
    """Whether the sample carries the label ``vgpu``."""
    flaw: str = ""
    """Why there is no device: the reject reason of the samples."""
    named: frozenset[PodRef] = frozenset()
    """Every pod that the labels could name; empty for samples that are not about a device."""
    cluster: str = ""
    """The cluster that the sample names, as stores with several clusters write it."""

    @property
    def key(self) -> SeriesKey:
        """The device series that the sample belongs to."""
        at = self.device.id if self.device else ""
        if self.assignment is None:
            return SeriesKey(at, None, "", "")
        return SeriesKey(at, self.assignment.pod, self.assignment.container, self.assignment.uid)


class Belief(NamedTuple):
    """What a label set names without the labels of a tenant; valid while the pods are unchanged."""

    known: Identity
    """What all of the labels name."""
    pods: tuple[Pod | None, ...]
    """The pods that the labels could name, as they were."""
    identity: Identity
    aside: tuple[str, ...]
    """The reasons for which labels were ignored."""
    key: SeriesKey
    """The key of ``identity``."""
    lasts: bool
    """Whether no label is a tenant's, so that the result depends on nothing else."""


@dataclass(frozen=True, slots=True)
class ExporterState:
    """The state of one origin after a scrape result. Immutable except for the cache ``answers``."""

    origin: str
    received: float
    pod: PodRef | None
    """The exporter's own pod, if known."""
    all_series: Mapping[SeriesKey, DeviceSeries]
    reported: Mapping[str, float]
    """Field -> epoch seconds of the last sample of a whole device."""
    scale: RatioScale
    idle: IdlePower
    """The power that its devices draw when idle. Each state has its own object."""
    beliefs: Mapping[int, Belief]
    """Address of a label set of the last result (plus a salt for servers) -> what it names."""
    disowned: Mapping[PodRef, Mismatch]
    """Pods that samples of the last result appear to name for devices, and the mismatch."""
    plan: PagePlan | None = None
    """Where the numbers of the next page go, if only they differ."""
    pods: Mapping[PodRef, tuple[DeviceSeries, ...]] = field(init=False)
    devices: Mapping[str, tuple[DeviceSeries, ...]] = field(init=False)
    answers: dict[object, object] = field(init=False, default_factory=dict)
    """Cache of what readers computed from these device series; discarded with the state."""

    def __post_init__(self) -> None:
        pods: dict[PodRef, list[DeviceSeries]] = {}
        devices: dict[str, list[DeviceSeries]] = {}
        for key, series in self.all_series.items():
            devices.setdefault(key.device, []).append(series)
            if key.pod is not None:
                pods.setdefault(key.pod, []).append(series)
        object.__setattr__(self, "pods", {ref: tuple(its) for ref, its in pods.items()})
        object.__setattr__(self, "devices", {at: tuple(its) for at, its in devices.items()})


def still_reported(
    before: ExporterState | None, now: Iterable[str], received: float, oldest: float
) -> dict[str, float]:
    """Return the fields that an exporter has written within the age limit -> when last.

    Args:
        now: the fields of the scrape result that was received at ``received`` (epoch seconds).
        oldest: the age limit in seconds.
    """
    earlier = before.reported if before else {}
    since = received - oldest
    recent = {name: t for name, t in earlier.items() if since < t <= received}
    return recent | dict.fromkeys(now, received)
