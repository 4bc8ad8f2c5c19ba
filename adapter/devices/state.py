"""What one exporter said lately: devices, whom they work for, and their samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from adapter.catalog.metric import Sample, Statistic
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Claim, Refusal
from adapter.devices.device import Device
from adapter.devices.history import History
from adapter.devices.idlepower import IdlePower
from adapter.devices.validity import RatioScale
from adapter.devices.verdict import CLEAR, Verdict


class TrackKey(NamedTuple):
    """A device on behalf of a container: what duplicates are told by."""

    device: str
    pod: PodRef | None
    container: str
    uid: str
    """Of the pod, where rows say it: a successor of the same name is another pod."""


@dataclass(slots=True)
class Track:
    """Everything an exporter says about one device on behalf of one container. Treated as
    immutable: a frozen class would take four times as long to make, for each device of a page."""

    device: Device
    claim: Claim | None
    """None for an unassigned device."""
    origin: str
    node: str | None
    """Where the device is, if that is certain."""
    host: str
    """Where the row says it is."""
    received: float
    """Epoch seconds of the last batch that had a row of it."""
    history: History
    reported: frozenset[str]
    """Fields that the exporter writes rows of, good or bad."""
    window: float
    shared: bool = False
    """Several pods claim the device, or the exporter calls it a replica."""
    per_process: bool = False
    """The exporter accounts utilisation and used memory per process of this device."""

    judged: float = 0.0
    """Epoch seconds up to which its rows were held against the device's own; 0 where the
    exporter accounts no processes."""
    superseded: bool = False
    """Later rows give the device to another pod: it was this pod's, or is shared."""
    cut: bool = False
    """The device is a board whose MIG instances have rows of their own."""
    cluster: str = ""
    """Of which cluster the row says that it is."""
    verdict: Verdict = CLEAR
    """Which of the device's fields are not believed, and why."""

    @property
    def mig(self) -> bool:
        """The device is a MIG instance."""
        return self.device.mig

    def sample(self, field: str, what: Statistic) -> Sample | None:
        """The field's mean over the window, or its newest value; none that is doubted."""
        if field in self.verdict.doubts:
            return None
        window = what.window or self.window
        return self.history.sample(field, what.kind, window, what.percentile)

    @property
    def own(self) -> bool:
        """Its rows are the container's own part of the device."""
        return self.history.layout.exact

    @property
    def serves(self) -> bool:
        """It is about a part of the server that the claimed pod runs, not about a device."""
        return self.claim is not None and self.claim.serves

    @property
    def sees(self) -> bool:
        """It is about a GPU as the server that the claimed pod runs sees it."""
        return self.claim is not None and self.claim.sees

    def after(self, time: float) -> Track:
        """This track without what was measured up to ``time``."""
        samples = self.history.after(time)
        return self if samples is self.history else replace(self, history=samples)

    def reports(self, field: str) -> bool:
        """The exporter writes rows of this field."""
        return field in self.reported


def disagree(mine: Iterable[Track], theirs: Iterable[Track]) -> bool:
    """Two exporters' tracks of one device name different pods, or have different values.

    Its cost is proportional to the number of tracks: a page may hold thousands of one device.
    """
    ours, others = _said(mine), _said(theirs)
    named = {pod for pod in (*ours, *others) if pod is not None}
    if any(ours.keys() - {None}) and any(others.keys() - {None}) and len(named) > 1:
        return True
    return any(
        len(values | others[pod][field]) > 1
        for pod in ours.keys() & others.keys()
        for field, values in ours[pod].items()
        if field in others[pod]
    )


def _said(tracks: Iterable[Track]) -> dict[PodRef | None, dict[str, set[float]]]:
    """Pod, or None -> field -> the newest values of each track."""
    said: dict[PodRef | None, dict[str, set[float]]] = {}
    for track in tracks:
        if not track.superseded:
            values = said.setdefault(track.claim and track.claim.pod, {})
            for field, value in track.history.latest().items():
                values.setdefault(field, set()).add(value)
    return said


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
    """What its devices draw when idle. Handed on from state to state."""
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
