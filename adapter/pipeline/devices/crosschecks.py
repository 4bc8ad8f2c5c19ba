"""Cross-check the fields of one exporter's devices, with the idle power of similar devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from adapter.pipeline.catalog.metric import DeviceValue, Metric, Statistic
from adapter.pipeline.catalog.nvidia import ENGINES
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.idlepower import IdlePower
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.plausibility import Circumstances, idle_watts, judge
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.remainder import Doubts, is_part, unexplained_zeros
from adapter.pipeline.devices.series import (
    CLEAR,
    UNSUPPORTED,
    DeviceSeries,
    Doubt,
    SeriesKey,
    Verdict,
)
from adapter.pipeline.devices.state import ExporterState
from apiservice.runtime.steps import Steps

_STEP: Final = 64
"""Devices that one step checks."""


def cross_check(
    all_series: Mapping[SeriesKey, DeviceSeries],
    before: ExporterState | None,
    idle: IdlePower,
    options: TelemetryOptions,
    rejects: Rejects,
) -> Steps[dict[SeriesKey, DeviceSeries]]:
    """Return the device series of a scrape result, each with its verdict.

    The fields of one device are compared with each other, and the zeros of containers with the
    device's own value. Of a pod whose device is accounted per process, only the latter are
    checked: beside its own utilisation are the device's counters, which do not describe the pod.

    Args:
        all_series: all of them, or those whose verdict may change: with one instance of a board,
            those of all boards; with one container of a device, those of all devices.
        idle: the power that the exporter's devices draw when idle; updated from idle devices.
        rejects: counts every doubted field once per device and scrape result.
    """
    active = _active_boards(all_series.values())
    earlier = _verdict_finder(before)
    counted: set[tuple[str, str]] = set()
    judged = dict(all_series)
    false_zeros: Mapping[int, Doubts] = {}
    if any(map(is_part, all_series.values())):
        its_devices = before.devices if before else {}
        false_zeros = yield from unexplained_zeros(tuple(all_series.values()), its_devices)
    for number, (key, series) in enumerate(all_series.items(), 1):
        if not number % _STEP:
            yield
        zeros = false_zeros.get(id(series), {})
        if zeros:
            judged[key] = add_doubts(series, zeros)
            _count(judged[key], counted, rejects)
        if series.per_process:
            continue
        device = series.device
        circumstances = Circumstances(
            now=series.received,
            window=options.window,
            patience=options.collect_interval,
            idle=idle.of(device.model, device.board),
            alone=device.board not in active,
        )
        verdict = judge(series.history, earlier(key), circumstances)
        if verdict.doubts:
            verdict = _without_unsupported(verdict, series)
        if verdict is CLEAR:
            continue
        judged[key] = add_doubts(replace(series, verdict=verdict), zeros)
        watts = None if series.mig else idle_watts(series.history, verdict, circumstances)
        if watts is not None:
            idle.learn(device.model, device.board, watts)
        _count(judged[key], counted, rejects)
    return judged


def add_doubts(series: DeviceSeries, doubts: Mapping[str, Doubt]) -> DeviceSeries:
    """Return the device series with more doubts."""
    if not doubts:
        return series
    verdict = series.verdict
    return replace(series, verdict=Verdict({**verdict.doubts, **doubts}, verdict.since))


def _without_unsupported(verdict: Verdict, series: DeviceSeries) -> Verdict:
    """Return the verdict without the zeros of fields that the device does not support.

    Nothing is wrong with its exporter, and they have no value anyway.
    """
    doubts = {n: why for n, why in verdict.doubts.items() if not series.is_unsupported(n)}
    return Verdict(doubts, verdict.since)


def _count(series: DeviceSeries, counted: set[tuple[str, str]], rejects: Rejects) -> None:
    """Count the fields of a device that are doubted, each once."""
    for name, reason in series.verdict.doubts.items():
        if (series.device.id, name) not in counted:
            counted.add((series.device.id, name))
            rejects.add(Reject(reason, name, series.device.id), series.received)


def doubt(metric: Metric, series: DeviceSeries) -> str | None:
    """Return the doubt because of which a metric has no value for this device, if any."""
    recorder = _Asked(series)
    metric.read(recorder)
    return recorder.doubt


class _Asked:
    """A device series that records the first doubted field that was requested."""

    def __init__(self, series: DeviceSeries) -> None:
        self._series = series
        self.doubt: str | None = None

    @property
    def mig(self) -> bool:
        return self._series.mig

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        measured = self._series.value_of(field, what)
        if measured is None and self.doubt is None:
            self.doubt = self._series.verdict.doubts.get(field)
            if self.doubt is None and self._series.is_unsupported(field):
                self.doubt = UNSUPPORTED
        return measured

    def newest(self, field: str) -> DeviceValue | None:
        return self._series.newest(field)

    def reports(self, field: str) -> bool:
        return self._series.reports(field)

    def is_incomplete(self, field: str) -> bool:
        return self._series.is_incomplete(field)


def _verdict_finder(before: ExporterState | None) -> Callable[[SeriesKey], Verdict]:
    """Return what finds the last verdict on a device, regardless of the pod that had it."""

    @cache
    def of_device(device: str) -> Verdict:
        others = before.devices.get(device, ()) if before else ()
        newest = max(others, key=lambda series: series.received, default=None)
        return newest.verdict if newest else CLEAR

    def of(key: SeriesKey) -> Verdict:
        same = before.verdict(key) if before else None
        return of_device(key.device) if same is None else same

    return of


def _active_boards(all_series: Iterable[DeviceSeries]) -> frozenset[str]:
    return frozenset(
        series.device.board for series in all_series if series.mig and _is_active(series.history)
    )


def _is_active(history: History) -> bool:
    columns = (column for name in ENGINES for column in history.layout.of_field.get(name, ()))
    return bool(history.times) and any(history.column(column)[-1] > 0 for column in columns)
