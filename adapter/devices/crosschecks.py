"""The devices of one exporter, each judged by its own fields and what its like draw idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from adapter.catalog.metric import Metric, Sample, Statistic
from adapter.devices.history import History
from adapter.devices.idlepower import IdlePower
from adapter.devices.options import TelemetryOptions
from adapter.devices.plausibility import ENGINES, Circumstances, at_work, idle_watts, judge
from adapter.devices.rejects import Reject, Rejects
from adapter.devices.series import CLEAR, Doubt, Track, TrackKey, Verdict
from adapter.devices.state import Exporter
from apiservice.runtime.steps import Steps

_STEP: Final = 64
"""Devices that one step judges."""


def cross_checked(
    tracks: Mapping[TrackKey, Track],
    before: Exporter | None,
    idle: IdlePower,
    options: TelemetryOptions,
    rejects: Rejects,
) -> Steps[dict[TrackKey, Track]]:
    """The tracks of a batch, each with what is believed of it.

    Not judged are the tracks of pods whose device is accounted per process: beside the pod's
    own utilisation they carry the device's counters, which say nothing of the pod.

    Args:
        tracks: those that the batch had rows of.
        before: the exporter's state before the batch.
        idle: what the exporter's devices draw when idle; learns from those that are.
        options: window and collect interval.
        rejects: counts every doubted field once per device and batch.
    """
    active = _active_boards(tracks.values())
    earlier = _Earlier(before)
    counted: set[tuple[str, str]] = set()
    judged = dict(tracks)
    for number, (key, track) in enumerate(tracks.items(), 1):
        if not number % _STEP:
            yield
        if track.per_process or not track.history.times or at_work(track.history):
            continue
        device = track.device
        at = Circumstances(
            now=track.received,
            window=options.window,
            patience=options.collect_interval,
            idle=idle.of(device.model, device.board),
            alone=device.board not in active,
        )
        verdict = judge(track.history, earlier.of(key), at)
        if verdict is CLEAR:
            continue
        judged[key] = replace(track, verdict=verdict)
        watts = None if track.mig else idle_watts(track.history, verdict, at)
        if watts is not None:
            idle.learn(device.model, device.board, watts)
        for name, doubt in verdict.doubts.items():
            if (device.id, name) not in counted:
                counted.add((device.id, name))
                rejects.add(Reject(doubt, name, device.id), track.received)
    return judged


def doubt(metric: Metric, track: Track) -> Doubt | None:
    """Why a metric has no value of this device, if that is because a field is not believed."""
    if not track.verdict.doubts:
        return None
    asked = _Asked(track)
    metric.read(asked)
    return asked.doubt


class _Asked:
    """A track that remembers the first doubted field it was asked for."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self.doubt: Doubt | None = None

    @property
    def mig(self) -> bool:
        return self._track.mig

    def sample(self, field: str, what: Statistic) -> Sample | None:
        self.doubt = self.doubt or self._track.verdict.doubts.get(field)
        return self._track.sample(field, what)

    def reports(self, field: str) -> bool:
        return self._track.reports(field)


class _Earlier:
    """The verdicts of the batch before."""

    def __init__(self, before: Exporter | None) -> None:
        self._before = before
        self._newest: dict[str, Verdict] = {}

    def of(self, key: TrackKey) -> Verdict:
        """The last verdict on the device, whoever held it."""
        if self._before is None:
            return CLEAR
        same = self._before.tracks.get(key)
        if same is not None:
            return same.verdict
        if key.device not in self._newest:
            others = self._before.devices.get(key.device, ())
            newest = max(others, key=lambda track: track.received, default=None)
            self._newest[key.device] = newest.verdict if newest else CLEAR
        return self._newest[key.device]


def _active_boards(tracks: Iterable[Track]) -> frozenset[str]:
    """Boards with a MIG instance whose newest counters are not all 0."""
    return frozenset(track.device.board for track in tracks if track.mig and _active(track.history))


def _active(history: History) -> bool:
    newest = history.values[-history.layout.width :]
    columns = (column for name in ENGINES for column in history.layout.of_field.get(name, ()))
    return bool(newest) and any(newest[column] > 0 for column in columns)
