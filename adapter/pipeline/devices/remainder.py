"""Find containers whose 0 is false, because nobody explains the work that their device shows.

An exporter that looks into containers may be blind for some of them, or for all, and then writes 0
(HAMi#1864: a container without a limit of cores; dcgm-exporter without ``hostPID``). The device's
own value shows it: what is left of it, after the values of all containers, must be somebody's. So
beside a large remainder a 0 is not a measurement. Which fields are compared is in
:data:`adapter.pipeline.catalog.vendors.WHOLES`.

Means over the window are compared, not single samples: the device's value and the containers' are
not measured at the same instant, and a blind exporter's 0 beside a pause of the device is as false
as the one before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Final

from adapter.pipeline.catalog.contradictions import Whole
from adapter.pipeline.catalog.metric import Kind
from adapter.pipeline.catalog.vendors import WHOLES
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.series import DeviceSeries, Doubt
from apiservice.runtime.steps import StepBudget, Steps

_SHARE: Final = 0.2
"""Share of the device's value that the containers' values may miss.

Accounting lags behind the device by up to a second, so the means of a few samples differ.
"""
_SERIES: Final = 64
"""Device series that one step compares."""
_OF_ONE_PAGE: Final = tuple(entry for entry in WHOLES if not entry.elsewhere)
_OF_SEVERAL_PAGES: Final = tuple(entry for entry in WHOLES if entry.elsewhere)
FIELDS: Final = frozenset(name for entry in WHOLES for name in (entry.part, entry.whole))
"""Every field that is compared."""
_Span = tuple[float, float]
"""Epoch seconds of the first and of the last sample."""
_Samples = Mapping[float, float]
"""Epoch seconds -> value."""
Doubts = Mapping[str, Doubt]
"""Field -> why it is not trusted."""


def unexplained_zeros(
    all_series: Collection[DeviceSeries], before: Mapping[str, Sequence[DeviceSeries]]
) -> Steps[dict[int, Doubts]]:
    """Return the address of each device series of a page whose zeros are false -> its doubts.

    The work is proportional to the number of samples.

    Args:
        all_series: of the page.
        before: device -> its device series after the page before. Those that this page does not
            have still explain, or show, what the device did in the window.
    """
    parts = _group_by_device([s for s in all_series if s.per_process or s.history.layout.exact])
    all_doubts: dict[int, Doubts] = {}
    if not parts:
        return all_doubts
    step = StepBudget(_SERIES)
    wholes = _group_by_device(series for series in all_series if not is_part(series))
    for device, fresh in parts.items():
        shown = wholes.get(device, ())
        missing = _missing_series(before.get(device, ()), (*fresh, *shown))
        if step.spent(len(fresh) + len(missing)):
            yield
        shown = (*shown, *(series for series in missing if not is_part(series)))
        all_parts = (*fresh, *filter(is_part, missing))
        for entry in _OF_ONE_PAGE:
            for series in false_zeros(entry, all_parts, shown):
                fields = _unseen_fields(series) if series.per_process else {entry.part}
                doubts = dict.fromkeys(fields, Doubt.UNEXPLAINED)
                all_doubts[id(series)] = {**all_doubts.get(id(series), {}), **doubts}
    return all_doubts


def _missing_series(
    before: Iterable[DeviceSeries], now: Iterable[DeviceSeries]
) -> Sequence[DeviceSeries]:
    """Return the earlier device series of a device that the page does not have."""
    present = {_holder(series) for series in now}
    return [series for series in before if _holder(series) not in present]


def _holder(series: DeviceSeries) -> object:
    assigned = series.assignment
    return assigned and (assigned.pod, assigned.container, assigned.uid)


def _unseen_fields(series: DeviceSeries) -> set[str]:
    """Return the compared fields whose newest sample is 0.

    An exporter that does not see a process sees neither its utilization nor its memory.
    """
    newest = {entry.part: series.newest(entry.part) for entry in _OF_ONE_PAGE}
    return {name for name, sample in newest.items() if sample is not None and sample.value == 0}


def contradicted_zeros(
    all_series: Sequence[DeviceSeries], others: Iterable[DeviceSeries], lag: float
) -> dict[int, Doubts]:
    """Return the address of each device series whose zeros another exporter contradicts -> doubts.

    Args:
        all_series: of one exporter about one device.
        others: those of other exporters about the device.
        lag: seconds between two pages of an exporter.
    """
    wholes = [series for series in others if not is_part(series)]
    parts = [series for series in all_series if is_part(series)]
    rest = [series for series in all_series if not is_part(series)]
    doubts: dict[int, Doubts] = {}
    for entry in _OF_SEVERAL_PAGES:
        for group in (parts, rest):
            for series in false_zeros(entry, group, wholes, lag):
                earlier = doubts.get(id(series), {})
                doubts[id(series)] = {**earlier, entry.part: Doubt.UNEXPLAINED}
    return doubts


def _group_by_device(all_series: Iterable[DeviceSeries]) -> Mapping[str, Sequence[DeviceSeries]]:
    devices: defaultdict[str, list[DeviceSeries]] = defaultdict(list)
    for series in all_series:
        devices[series.device.id].append(series)
    return devices


def is_part(series: DeviceSeries) -> bool:
    """Return whether the samples measure what a container does on the device."""
    return series.own or series.per_process


def false_zeros(
    entry: Whole,
    parts: Collection[DeviceSeries],
    wholes: Iterable[DeviceSeries],
    lag: float = 0.0,
) -> list[DeviceSeries]:
    """Return the parts whose 0 is false.

    Args:
        entry: the fields that are compared.
        parts: all device series of one exporter about the device's containers.
        wholes: device series with the device's own value.
        lag: seconds by which the samples of the whole may be older or newer than the parts'.
    """
    zeros = {id(part): _zeros(entry.part, part) for part in parts}
    if not any(zeros.values()):
        return []
    shown = {
        time: entry.factor * value for time, value in _whole_values(entry.whole, wholes).items()
    }
    if not shown:
        return []
    explained = _explained_values(entry.part, parts)
    by_span: dict[_Span, bool] = {}
    false_parts: list[DeviceSeries] = []
    for part in parts:
        span = zeros[id(part)]
        if span is None:
            continue
        if span not in by_span:
            by_span[span] = _remains(entry, shown, explained, span, lag)
        if by_span[span]:
            false_parts.append(part)
    return false_parts


def _remains(entry: Whole, shown: _Samples, explained: _Samples, span: _Span, lag: float) -> bool:
    """Return whether too much of the device's value remains unexplained in a span of time."""
    first, last = span
    whole = [value for time, value in shown.items() if first - lag <= time <= last + lag]
    if not whole:
        return False
    mean = sum(whole) / len(whole)
    parts = [value for time, value in explained.items() if first <= time <= last]
    return mean - sum(parts) / len(parts) > max(entry.spare, _SHARE * mean)


def _zeros(field: str, series: DeviceSeries) -> _Span | None:
    """Return the span of the samples that make the field's value, if all are 0; else None.

    They are the newest sample, or those in the window for a field whose value is a mean.
    """
    history = series.history
    columns = history.layout.of_field.get(field, ())
    if not columns or not history.times:
        return None
    mean = history.layout.columns[columns[0]].field.kind is Kind.MEAN
    oldest = history.newest - series.window
    span: _Span | None = None
    for time, value in reversed(tuple(_samples(history, columns))):
        if span is not None and (not mean or time <= oldest):
            break
        if value != 0:
            return None
        span = (time, time if span is None else span[1])
    return span


def _whole_values(field: str, wholes: Iterable[DeviceSeries]) -> _Samples:
    """Return the samples of the device's own value, the largest of each time."""
    shown: dict[float, float] = {}
    for series in wholes:
        for time, value in _samples(series.history, series.history.layout.of_field.get(field, ())):
            shown[time] = max(value, shown.get(time, 0.0))
    return shown


def _explained_values(field: str, parts: Iterable[DeviceSeries]) -> _Samples:
    """Return the sum over the containers at each time.

    What is accounted per process is repeated for each container of a pod, so it counts once.
    """
    by_time: defaultdict[float, dict[object, float]] = defaultdict(dict)
    for series in parts:
        assigned = series.assignment
        holder = assigned and (assigned.pod, assigned.uid, assigned.container if series.own else "")
        for time, value in _samples(series.history, series.history.layout.of_field.get(field, ())):
            by_holder = by_time[time]
            by_holder[holder] = max(value, by_holder.get(holder, 0.0))
    return {time: sum(values.values()) for time, values in by_time.items()}


def _samples(history: History, columns: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield the samples of a field in order of time."""
    numbers = [history.column(column) for column in columns]
    for row, time in enumerate(history.times):
        for values in numbers:
            if not isnan(values[row]):
                yield time, values[row]
