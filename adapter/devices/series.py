"""Device series: everything one exporter reports about one device for one container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.catalog.metric import DeviceValue, Statistic
from adapter.cluster.pod import PodRef
from adapter.devices.assignment import Assignment
from adapter.devices.device import Device
from adapter.devices.history import History


class Doubt(StrEnum):
    """Why a field is not believed; what it is counted under."""

    ZERO_UTIL = "util_zero_while_active"
    IDLE_POWER = "util_high_at_idle_power"
    STUCK = "profiling_stuck_at_zero"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is believed of a device. Immutable."""

    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    """Field -> why it is not believed."""
    since: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(Field, suspicion) -> epoch seconds since when it stands without a break."""


CLEAR: Final = Verdict()


class SeriesKey(NamedTuple):
    """A device on behalf of a container: what duplicates are told by."""

    device: str
    pod: PodRef | None
    container: str
    uid: str
    """Of the pod, where samples say it: a successor of the same name is another pod."""


@dataclass(slots=True)
class DeviceSeries:
    """Everything an exporter says about one device on behalf of one container. Treated as
    immutable: a frozen class would take four times as long to make, for each device of a page."""

    device: Device
    assignment: Assignment | None
    """None for an unassigned device."""
    origin: str
    node: str | None
    """Where the device is, if that is certain."""
    host: str
    """Where the sample says it is."""
    received: float
    """Epoch seconds of the last scrape result that had a sample of it."""
    history: History
    reported: frozenset[str]
    """Fields that the exporter writes samples of, good or bad."""
    window: float
    shared: bool = False
    """Several pods claim the device, or the exporter calls it a replica."""
    per_process: bool = False
    """The exporter accounts utilisation and used memory per process of this device."""

    judged: float = 0.0
    """Epoch seconds up to which its samples were held against the device's own; 0 where the
    exporter accounts no processes."""
    superseded: bool = False
    """Later samples give the device to another pod: it was this pod's, or is shared."""
    cut: bool = False
    """The device is a board whose MIG instances have samples of their own."""
    cluster: str = ""
    """Of which cluster the sample says that it is."""
    verdict: Verdict = CLEAR
    """Which of the device's fields are not believed, and why."""

    @property
    def mig(self) -> bool:
        """The device is a MIG instance."""
        return self.device.mig

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """The field's mean over the window, or its newest value; none that is doubted."""
        if field in self.verdict.doubts:
            return None
        window = what.window or self.window
        return self.history.value_of(field, what.kind, window, what.percentile)

    @property
    def own(self) -> bool:
        """Its samples are the container's own part of the device."""
        return self.history.layout.exact

    @property
    def serves(self) -> bool:
        """It is about a part of the server that the claimed pod runs, not about a device."""
        return self.assignment is not None and self.assignment.serves

    @property
    def sees(self) -> bool:
        """It is about a GPU as the server that the claimed pod runs sees it."""
        return self.assignment is not None and self.assignment.sees

    def after(self, time: float) -> DeviceSeries:
        """This device series without what was measured up to ``time``."""
        samples = self.history.after(time)
        return self if samples is self.history else replace(self, history=samples)

    def reports(self, field: str) -> bool:
        """The exporter writes samples of this field."""
        return field in self.reported


def disagree(mine: Iterable[DeviceSeries], theirs: Iterable[DeviceSeries]) -> bool:
    """Two exporters' device series of one device name different pods, or have different values.

    The cost is linear in the number of series: a page may hold thousands for one device.
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


def _said(all_series: Iterable[DeviceSeries]) -> dict[PodRef | None, dict[str, set[float]]]:
    """Pod, or None -> field -> the newest values of each device series."""
    said: dict[PodRef | None, dict[str, set[float]]] = {}
    for series in all_series:
        if not series.superseded:
            values = said.setdefault(series.assignment and series.assignment.pod, {})
            for field, value in series.history.latest().items():
                values.setdefault(field, set()).add(value)
    return said
