"""Device series: everything one exporter reports about one device for one container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.pipeline.catalog.metric import DeviceValue, Kind, Statistic
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.assignment import Assignment
from adapter.pipeline.devices.device import Device
from adapter.pipeline.devices.history import History


class Doubt(StrEnum):
    """Why a field is not trusted; also the reject reason."""

    ZERO_UTIL = "util_zero_while_active"
    IDLE_POWER = "util_high_at_idle_power"
    STUCK = "profiling_stuck_at_zero"
    UNEXPLAINED = "zero_on_busy_device"


UNSUPPORTED: Final = "zero_of_unsupported_field"
"""Why a 0 that is not a value is left out; see
:attr:`adapter.pipeline.catalog.field.Field.positive` and ``unsupported`` there."""


DEVICE: Final = ""
"""Instead of a field, for what has persisted for a device as a whole."""
IDLE: Final = "idle"
"""No field shows work."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which fields of a device are not trusted. Immutable."""

    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    """Field -> why it is not trusted."""
    since: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(Field, suspicion) -> epoch seconds since which it has persisted without a break."""


CLEAR: Final = Verdict()
NO_FIELDS: Final[frozenset[str]] = frozenset()


class SeriesKey(NamedTuple):
    """Identifies a device series: a device and the container that it is assigned to."""

    device: str
    pod: PodRef | None
    container: str
    uid: str
    """UID of the pod, if samples state it: a successor with the same name is another pod."""


def series_key(device: Device | None, assignment: Assignment | None) -> SeriesKey:
    """Return the key of the device series of a device and what a label set assigns it to."""
    device_id = device.id if device else ""
    if assignment is None:
        return SeriesKey(device_id, None, "", "")
    return SeriesKey(device_id, assignment.pod, assignment.container, assignment.uid)


@dataclass(slots=True)
class DeviceSeries:
    """Everything that one exporter reports about one device for one container.

    Treated as immutable. The class is not frozen because a frozen class takes four times as long
    to create, and each page creates one per device.
    """

    device: Device
    assignment: Assignment | None
    """None for an unassigned device."""
    origin: str
    node: str | None
    """The node of the device, if certain."""
    host: str
    """The node that the sample names."""
    received: float
    """Epoch seconds of the last scrape result that had a sample of it."""
    history: History
    reported: frozenset[str]
    """Fields for which the exporter writes samples, valid or not."""
    window: float
    shared: bool = False
    """Several pods have the device, named or not, or the exporter marks it as a replica."""
    per_process: bool = False
    """The exporter accounts utilisation and used memory of this device per process."""

    judged: float = 0.0
    """Epoch seconds up to which its samples were compared with the device's own.

    0 if the exporter does not account processes.
    """
    superseded: bool = False
    """Later samples assign the device to another pod: this pod had it, or it is shared."""
    cut: bool = False
    """The device is a board whose MIG instances have samples."""
    cluster: str = ""
    """The cluster that the sample names."""
    rejected: frozenset[str] = NO_FIELDS
    """Fields of which the last scrape result has a sample that was left out for its number."""
    incomplete: frozenset[str] = NO_FIELDS
    """Fields of a server without a value, because its page has more parts than are read."""
    verdict: Verdict = CLEAR
    """Which of the device's fields are not trusted, and why."""

    @property
    def key(self) -> SeriesKey:
        """Its key."""
        return series_key(self.device, self.assignment)

    @property
    def mig(self) -> bool:
        """Whether the device is a MIG instance."""
        return self.device.mig

    @property
    def idle_since(self) -> float | None:
        """Epoch seconds since which no field has shown work; None if one does or none can."""
        return self.verdict.since.get((DEVICE, IDLE))

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """Return the field's mean over the window or its newest value; None if it is doubted.

        A 0 that is not a value is None too.
        """
        if field in self.verdict.doubts:
            return None
        kind, window, percentile = what
        measured = self.history.value_of(field, kind, window or self.window, percentile)
        if measured is None or measured.value or not self._has_no_zero(field):
            return measured
        return None

    def newest(self, field: str) -> DeviceValue | None:
        """Return the field's newest sample, even if its number is not to be trusted."""
        return self.history.value_of(field, Kind.LAST, self.window)

    def is_unsupported(self, field: str) -> bool:
        """Return whether the exporter writes 0 because the device does not support the field."""
        newest = self.newest(field) if self._has_no_zero(field) else None
        return newest is not None and newest.value == 0

    def _has_no_zero(self, name: str) -> bool:
        """Return whether a 0 of the field is not a value of this device."""
        layout = self.history.layout
        columns = layout.of_field.get(name)
        if columns is None:
            return False
        field = layout.columns[columns[0]].field
        if field.unsupported is not None and field.unsupported.search(self.device.model):
            return True
        return field.positive

    @property
    def own(self) -> bool:
        """Whether its samples measure only the container's own part of the device."""
        return self.history.layout.exact

    @property
    def serves(self) -> bool:
        """Whether it is about a part of the server that the assigned pod runs, not about a
        device."""
        return self.assignment is not None and self.assignment.serves

    @property
    def sees(self) -> bool:
        """Whether it is about a GPU as the server that the assigned pod runs sees it."""
        return self.assignment is not None and self.assignment.sees

    def after(self, time: float) -> DeviceSeries:
        """Return this device series without the samples up to ``time``."""
        samples = self.history.after(time)
        return self if samples is self.history else replace(self, history=samples)

    def reports(self, field: str) -> bool:
        """Return whether the exporter writes samples of this field."""
        return field in self.reported

    def is_incomplete(self, field: str) -> bool:
        """Return whether there is no value because the page has more parts than are read."""
        return field in self.incomplete


def idle_since(all_series: Iterable[DeviceSeries], oldest: float) -> float | None:
    """Return the epoch seconds since which a device is idle, from all that is reported about it.

    None if one report shows work, if none can show it, or if one is not newer than ``oldest``
    (epoch seconds).
    """
    latest = None
    for series in all_series:
        if series.serves or series.superseded or series.cut:
            continue
        since = series.idle_since
        if since is None or series.received <= oldest:
            return None
        latest = since if latest is None else max(latest, since)
    return latest


def disagree(mine: Iterable[DeviceSeries], theirs: Iterable[DeviceSeries]) -> bool:
    """Return whether two exporters assign one device to different pods, or differ in a value.

    The cost is linear in the number of series: a page may hold thousands for one device.
    """
    ours, others = _newest_values(mine), _newest_values(theirs)
    pods = {pod for pod in (*ours, *others) if pod is not None}
    if any(ours.keys() - {None}) and any(others.keys() - {None}) and len(pods) > 1:
        return True
    return any(
        len(values | others[pod][field]) > 1
        for pod in ours.keys() & others.keys()
        for field, values in ours[pod].items()
        if field in others[pod]
    )


def _newest_values(
    all_series: Iterable[DeviceSeries],
) -> dict[PodRef | None, dict[str, set[float]]]:
    """Return pod or None -> field -> the newest values of its device series."""
    by_pod: dict[PodRef | None, dict[str, set[float]]] = {}
    for series in all_series:
        if not series.superseded:
            values = by_pod.setdefault(series.assignment and series.assignment.pod, {})
            for field, value in series.history.latest().items():
                values.setdefault(field, set()).add(value)
    return by_pod
