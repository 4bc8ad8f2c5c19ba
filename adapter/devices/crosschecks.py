"""Cross-check the fields of one exporter's devices, with the idle power of similar devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from adapter.catalog.metric import DeviceValue, Metric, Statistic
from adapter.devices.history import History
from adapter.devices.idlepower import IdlePower
from adapter.devices.options import TelemetryOptions
from adapter.devices.plausibility import ENGINES, Circumstances, at_work, idle_watts, judge
from adapter.devices.rejects import Reject, Rejects
from adapter.devices.series import CLEAR, DeviceSeries, Doubt, SeriesKey, Verdict
from adapter.devices.state import ExporterState
from apiservice.runtime.steps import Steps

_STEP: Final = 64
"""Devices that one step checks."""


def cross_checked(
    all_series: Mapping[SeriesKey, DeviceSeries],
    before: ExporterState | None,
    idle: IdlePower,
    options: TelemetryOptions,
    rejects: Rejects,
) -> Steps[dict[SeriesKey, DeviceSeries]]:
    """Return the device series of a scrape result, each with its verdict.

    The device series of pods whose device is accounted per process are not checked: beside the
    pod's own utilisation they carry the device's counters, which do not describe the pod.

    Args:
        idle: the power that the exporter's devices draw when idle; updated from idle devices.
        rejects: counts every doubted field once per device and scrape result.
    """
    active = _active_boards(all_series.values())
    earlier = _Earlier(before)
    counted: set[tuple[str, str]] = set()
    judged = dict(all_series)
    for number, (key, series) in enumerate(all_series.items(), 1):
        if not number % _STEP:
            yield
        if series.per_process or not series.history.times or at_work(series.history):
            continue
        device = series.device
        at = Circumstances(
            now=series.received,
            window=options.window,
            patience=options.collect_interval,
            idle=idle.of(device.model, device.board),
            alone=device.board not in active,
        )
        verdict = judge(series.history, earlier.of(key), at)
        if verdict is CLEAR:
            continue
        judged[key] = replace(series, verdict=verdict)
        watts = None if series.mig else idle_watts(series.history, verdict, at)
        if watts is not None:
            idle.learn(device.model, device.board, watts)
        for name, doubt in verdict.doubts.items():
            if (device.id, name) not in counted:
                counted.add((device.id, name))
                rejects.add(Reject(doubt, name, device.id), series.received)
    return judged


def doubt(metric: Metric, series: DeviceSeries) -> Doubt | None:
    """Return the doubt because of which a metric has no value for this device, if any."""
    if not series.verdict.doubts:
        return None
    asked = _Asked(series)
    metric.read(asked)
    return asked.doubt


class _Asked:
    """A device series that records the first doubted field that was requested."""

    def __init__(self, series: DeviceSeries) -> None:
        self._series = series
        self.doubt: Doubt | None = None

    @property
    def mig(self) -> bool:
        return self._series.mig

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        self.doubt = self.doubt or self._series.verdict.doubts.get(field)
        return self._series.value_of(field, what)

    def reports(self, field: str) -> bool:
        return self._series.reports(field)


class _Earlier:
    """The verdicts of the previous scrape result."""

    def __init__(self, before: ExporterState | None) -> None:
        self._before = before
        self._newest: dict[str, Verdict] = {}

    def of(self, key: SeriesKey) -> Verdict:
        """Return the last verdict on the device, regardless of the pod that had it."""
        if self._before is None:
            return CLEAR
        same = self._before.all_series.get(key)
        if same is not None:
            return same.verdict
        if key.device not in self._newest:
            others = self._before.devices.get(key.device, ())
            newest = max(others, key=lambda series: series.received, default=None)
            self._newest[key.device] = newest.verdict if newest else CLEAR
        return self._newest[key.device]


def _active_boards(all_series: Iterable[DeviceSeries]) -> frozenset[str]:
    return frozenset(
        series.device.board for series in all_series if series.mig and _active(series.history)
    )


def _active(history: History) -> bool:
    newest = history.values[-history.layout.width :]
    columns = (column for name in ENGINES for column in history.layout.of_field.get(name, ()))
    return bool(newest) and any(newest[column] > 0 for column in columns)
