"""What one exporter said lately: devices, whom they work for, and their samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Claim, Refusal
from adapter.devices.device import Device
from adapter.devices.idlepower import IdlePower
from adapter.devices.series import Track, TrackKey
from adapter.devices.validity import RatioScale


class Identity(NamedTuple):
    """What a label set says apart from numbers. Worked out once per label set."""

    labels: Mapping[str, str]
    """Kept so that its address stays its own."""
    device: Device | None
    claim: Claim | None
    target: PodRef | None
    host: str
    replica: bool
    """The row carries a ``vgpu`` label."""
    flaw: str = ""
    """Why there is no device: what the row is counted under."""
    named: frozenset[PodRef] = frozenset()
    """Every pod that the labels can be read to name; of a device's row only."""
    cluster: str = ""
    """Of which cluster the row is, as a store of several writes it."""

    @property
    def key(self) -> TrackKey:
        """The track that such a row belongs to."""
        at = self.device.id if self.device else ""
        if self.claim is None:
            return TrackKey(at, None, "", "")
        return TrackKey(at, self.claim.pod, self.claim.container, self.claim.uid)


class Belief(NamedTuple):
    """What a label set says without a tenant's labels, while the pods stay as they are."""

    known: Identity
    """What all of the labels say."""
    pods: tuple[Pod | None, ...]
    """Those that the labels can be read to name, as they were."""
    identity: Identity
    aside: tuple[str, ...]
    """Why something of it was left aside."""
    key: TrackKey
    """Of ``identity``."""
    lasts: bool
    """No label is a tenant's: it rests on nothing else."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """One origin's state after a batch. Replaced, never edited."""

    origin: str
    received: float
    pod: PodRef | None
    """The exporter's own pod, where it is known."""
    tracks: Mapping[TrackKey, Track]
    reported: Mapping[str, float]
    """Field -> epoch seconds at which a row of a whole device was last seen."""
    scale: RatioScale
    idle: IdlePower
    """What its devices draw when idle. Each state has its own."""
    beliefs: Mapping[int, Belief]
    """Address of a label set of the last batch, and a salt for a server's -> what it says."""
    disowned: Mapping[PodRef, Refusal]
    """Pods that rows of the last batch seem to name for devices, and why the rows do not."""
    pods: Mapping[PodRef, tuple[Track, ...]] = field(init=False)
    devices: Mapping[str, tuple[Track, ...]] = field(init=False)
    answers: dict[object, object] = field(init=False, default_factory=dict)
    """What readers worked out from these tracks; ends with them."""

    def __post_init__(self) -> None:
        pods: dict[PodRef, list[Track]] = {}
        devices: dict[str, list[Track]] = {}
        for key, track in self.tracks.items():
            devices.setdefault(key.device, []).append(track)
            if key.pod is not None:
                pods.setdefault(key.pod, []).append(track)
        object.__setattr__(self, "pods", {ref: tuple(its) for ref, its in pods.items()})
        object.__setattr__(self, "devices", {at: tuple(its) for at, its in devices.items()})
