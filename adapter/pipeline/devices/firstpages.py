"""Make the rows of an exporter's last pages from the samples of its device series."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import inf, isnan, nan
from typing import Final

from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.pages import DeviceJudgement, LastPages, rest_of
from adapter.pipeline.devices.pageshape import PageShape
from adapter.pipeline.devices.rows import NumberRows
from adapter.pipeline.devices.state import ExporterState

_SPARSE: Final = 4
"""Times as large as the samples are the rows at most: a pod chooses the times on its page."""


def first_pages(shape: PageShape, state: ExporterState) -> LastPages | None:
    """Return the pages whose samples a state has; None if a device has others.

    Args:
        state: after a page of this shape.
    """
    histories = [state.all_series[row.key].history for row in shape.rows]
    newest = max(samples.newest for samples in histories)
    for row, samples in zip(shape.rows, histories, strict=True):
        if (
            not samples.times
            or samples.newest < newest
            or not set(samples.layout.columns) <= set(row.columns.layout.columns)
        ):
            return None
    times = {time for samples in histories for time in samples.times}
    width = sum(row.columns.layout.width for row in shape.rows)
    if width * len(times) > _SPARSE * sum(map(len, histories)):
        return None  # each device has other times
    rows, hole = _join_histories(shape, histories)
    all_series = [state.all_series[row.key] for row in shape.rows]
    rest = (
        rest_of(row.columns, series, state.idle, shape.options)
        for row, series in zip(shape.rows, all_series, strict=True)
    )
    verdicts = tuple(series.verdict for series in all_series)
    judgement = DeviceJudgement(shape, verdicts, tuple(rest), state.idle)
    rejected = {i: series.rejected for i, series in enumerate(all_series) if series.rejected}
    return LastPages(shape, rows, hole, state.received, rejected, judgement)


def _join_histories(shape: PageShape, histories: Sequence[History]) -> tuple[NumberRows, float]:
    """Return rows with the samples of the device series, and the time of the newest gap."""
    times = array("d", sorted({time for samples in histories for time in samples.times}))
    width, at_time = len(shape.numbers.spellings), {time: index for index, time in enumerate(times)}
    numbers = array("d", bytes(8 * width * len(times)))
    missing = array("d", [nan] * len(times))
    hole = -inf
    for row, samples in zip(shape.rows, histories, strict=True):
        whole = samples.times == times
        place_of = dict(zip(row.columns.layout.columns, row.columns.places, strict=True))
        for place in place_of.values():
            numbers[place::width] = missing
        for column, spelling in enumerate(samples.layout.columns):
            values, place = samples.column(column), place_of[spelling]
            if whole:
                numbers[place::width] = values
            else:
                for time, number in zip(samples.times, values, strict=True):
                    numbers[at_time[time] * width + place] = number
        for place in place_of.values():
            gaps = [time for time, x in zip(times, numbers[place::width], strict=True) if isnan(x)]
            hole = max(hole, *gaps[-1:], -inf)
    return NumberRows(times, numbers, width), hole
