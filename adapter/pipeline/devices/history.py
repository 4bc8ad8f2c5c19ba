"""The recent samples of one device, all fields side by side.

Ten thousand devices with twenty-five fields each must fit into little memory, and a mean over
thirty seconds must be cheap. So the samples of one scrape are one row of floats, with NaN for a
field without a sample. A history is immutable: :meth:`History.with_frames` returns a new one.

The rows may be those of a whole page, which has the numbers of other devices too
(:mod:`adapter.pipeline.devices.pages`). Then the history knows where its own are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import floor, isnan, nan
from typing import Final

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.layout import Layout, layout
from adapter.pipeline.catalog.metric import DeviceValue, Kind
from adapter.pipeline.devices.options import MAX_SAMPLES
from adapter.pipeline.devices.rows import NumberRows
from adapter.pipeline.devices.windowhistograms import first_used_sample, histogram_increase

Frame = dict[Spelling, float]
"""The values of one time, in the units of the fields."""


class History:
    """Samples in order of time. Treated as immutable.

    Args:
        places: where in a row each column's number is; by default, a row has nothing else.
    """

    __slots__ = ("_places", "_rows", "layout", "times")

    def __init__(
        self, columns: Layout, rows: NumberRows, places: Sequence[int] | None = None
    ) -> None:
        self.layout = columns
        self.times = rows.times
        """Epoch seconds, ascending, without duplicates."""
        self._rows = rows
        self._places = range(columns.width) if places is None else places

    def __len__(self) -> int:
        """Return how many numbers the history has room for."""
        return len(self.times) * self.layout.width

    def column(self, column: int, first: int = 0) -> array[float]:
        """Return a column's numbers from a row on, NaN for times without one."""
        return self._rows.column(self._places[column], first)

    def row(self, row: int) -> list[float]:
        """Return the numbers of a row, one for each column; -1 is the newest row."""
        start = (row if row >= 0 else row + len(self.times)) * self._rows.width
        numbers = self._rows.numbers
        return [numbers[start + place] for place in self._places]

    @property
    def newest(self) -> float:
        """Epoch seconds of the newest sample; minus infinity if there is none."""
        return self.times[-1] if self.times else float("-inf")

    def value_of(
        self, field: str, kind: Kind, window: float, share: float | None = None
    ) -> DeviceValue | None:
        """Return a field's newest value, or its mean or rate over a window; None without a sample.

        Args:
            window: seconds up to the field's newest sample.
            share: 0-100; return this percentile instead of the mean.
        """
        columns = self.layout.of_field.get(field)
        if columns is None:
            return None
        if kind is Kind.HISTOGRAM:
            return histogram_increase(self, columns, window)
        if len(columns) == 1:
            return self._column(columns[0], kind, window, share)
        best: DeviceValue | None = None
        for column in columns:
            value = self._column(column, kind, window, share)
            if value is not None and (best is None or value.time > best.time):
                best = value
        return best

    def _column(
        self, column: int, kind: Kind, window: float, share: float | None
    ) -> DeviceValue | None:
        times, numbers = self.times, self.column(column)
        row = len(times) - 1
        while row >= 0 and isnan(numbers[row]):
            row -= 1
        if row < 0:
            return None
        time, spelling = times[row], self.layout.columns[column]
        value: float | None
        if kind is Kind.LAST:
            value = numbers[row]
        elif kind is Kind.RATE:
            samples = [(t, v) for t, v in zip(times, numbers, strict=True) if not isnan(v)]
            value = rate(samples, time - window)
        else:
            first = bisect_right(times, time - window)
            valid = [v for v in numbers[first:] if not isnan(v)]
            value = sum(valid) / len(valid) if share is None else percentile(valid, share)
        if value is None:
            return None
        return DeviceValue(value, time, spelling.name, spelling.field.name)

    def after(self, time: float) -> History:
        """Return the history of the samples that are newer than ``time``."""
        rows = self._rows.after(time)
        return self if rows is self._rows else History(self.layout, rows, self._places)

    def without(self, field: str, until: float) -> History:
        """Return this history without the field's samples up to ``until``."""
        if field not in self.layout.of_field or not self.times or self.times[0] > until:
            return self
        frames = {}
        for time, frame in self.frames():
            left = {s: v for s, v in frame.items() if s.field.name != field or time > until}
            if left:
                frames[time] = left
        return _pack_frames(frames)

    def from_zero(self) -> History:
        """Return the history of the counters whose first number counts from 0."""
        if all(column.from_zero for column in self.layout.columns):
            return self
        frames = {
            time: left
            for time, frame in self.frames()
            if (left := {s: v for s, v in frame.items() if s.from_zero})
        }
        return _pack_frames(frames)

    def frames(self) -> Iterator[tuple[float, Frame]]:
        """Yield each time with its samples."""
        for row, time in enumerate(self.times):
            yield time, self._frame(row)

    def latest(self) -> dict[str, float]:
        """Return field -> its value in the newest row, for the fields that have one there."""
        row = len(self.times) - 1
        return {c.field.name: v for c, v in self._frame(row).items()} if row >= 0 else {}

    def with_frames(
        self, frames: Mapping[float, Frame], window: float, age_limit: float
    ) -> History:
        """Return this history with more samples, without those that no reading can use any more.

        Samples for a time that the history has are merged into it: a range query returns samples
        that were seen before, and one scrape may arrive in several parts.
        """
        if len(frames) == 1:
            ((time, frame),) = frames.items()
            if time > self.newest:
                longer = self._with_newer_frame(time, frame, window, age_limit)
                if longer is not None:
                    return longer
        merged = {time: self._frame(row) for row, time in enumerate(self.times)}
        for time, frame in frames.items():
            merged[time] = merged.get(time, {}) | frame
        return history(merged, window, age_limit)

    def _with_newer_frame(
        self, time: float, frame: Frame, window: float, age_limit: float
    ) -> History | None:
        """Return the history with one newer frame, or None if a field has no column yet."""
        missing = self.layout.width - len(frame)
        row = array("d", map(frame.get, self.layout.columns, self.layout.missing))
        if sum(map(isnan, row)) != missing:
            return None
        rows = self._rows
        if not isinstance(self._places, range):  # a row has other numbers, or another order
            numbers = chain.from_iterable(map(self.row, range(len(self.times))))
            rows = NumberRows(self.times, array("d", numbers), self.layout.width)
        if not missing:
            return History(self.layout, rows.with_row(time, row, window))
        longer = History(self.layout, rows.with_row(time, row, max(window, age_limit)))
        return longer.with_numbers()

    def with_numbers(self) -> History:
        """Return the history without columns that have no number."""
        filled = [i for i in range(self.layout.width) if not all(map(isnan, self.column(i)))]
        if len(filled) == self.layout.width:
            return self
        columns = layout(tuple(map(self.layout.columns.__getitem__, filled)))
        places = [self._places[i] for i in filled]
        return History(columns, self._rows, places)

    def _frame(self, row: int) -> Frame:
        numbers = zip(self.layout.columns, self.row(row), strict=True)
        return {column: number for column, number in numbers if not isnan(number)}


def history(frames: Mapping[float, Frame], window: float, age_limit: float) -> History:
    """Return a history of these samples, without those too old for a reading."""
    columns = {column for frame in frames.values() for column in frame}
    newest = max(frames, default=0.0)
    complete = len(frames.get(newest, ())) == len(columns)
    horizon = window if complete else max(window, age_limit)
    times = sorted(time for time in frames if time > newest - horizon)[-MAX_SAMPLES:]
    return _pack_frames({time: frames[time] for time in times})


def _pack_frames(frames: Mapping[float, Frame]) -> History:
    """Return the frames as arrays, in order of time."""
    columns = layout(sort_columns({column for frame in frames.values() for column in frame}))
    values = array("d")
    for frame in frames.values():
        values.extend(frame.get(column, nan) for column in columns.columns)
    return History(columns, NumberRows(array("d", frames), values, columns.width))


def sort_columns(columns: Iterable[Spelling]) -> tuple[Spelling, ...]:
    """Return columns in the order of every history."""
    return tuple(sorted(columns, key=lambda column: (column.name, column.field.name)))


NO_SAMPLES: Final = _pack_frames({})


Samples = Sequence[tuple[float, float]]
"""(Epoch seconds, value), in order of time."""


def rate(samples: Samples, since: float) -> float | None:
    """Return a counter's increase per second, or None if it needs more samples.

    The rate is not extrapolated beyond the samples. If only one sample is newer than ``since``,
    the one before it is used too, so that a store that scrapes less often than once per window
    still gives a rate. If a counter falls, it has restarted from 0 (as in Prometheus' ``rate``).

    Args:
        since: epoch seconds at which the window begins.
    """
    used = samples[first_used_sample([time for time, _ in samples], since) :]
    if len(used) < 2:
        return None
    increase, before = 0.0, used[0][1]
    for _, value in used[1:]:
        increase += value - before if value >= before else value
        before = value
    return increase / (used[-1][0] - used[0][0])


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that ``share`` percent of the values do not exceed.

    The value is interpolated between neighbours as Prometheus' ``quantile_over_time`` does.

    Args:
        values: at least one, in any order.
        share: 0-100.
    """
    ranked = sorted(values)
    rank = share / 100.0 * (len(ranked) - 1)
    low = floor(rank)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (rank - low)
