"""The last pages of an exporter as rows of numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from math import inf, isnan, nan

from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.options import MAX_SAMPLES
from adapter.pipeline.devices.pageshape import PageShape


class Ring:
    """Rows of numbers in order of time, NaN for a missing one. Immutable.

    Args:
        times: epoch seconds of each row.
        numbers: of each row, in the units of the fields.
        width: numbers in a row.
        hole: epoch seconds of the newest row with a missing number; minus infinity for none.
    """

    __slots__ = ("hole", "numbers", "times", "width")

    def __init__(self, times: array[float], numbers: array[float], width: int, hole: float) -> None:
        self.times = times
        self.numbers = numbers
        self.width = width
        self.hole = hole

    def with_row(
        self, time: float, row: array[float], window: float, oldest: float, *, hole: bool
    ) -> Ring:
        """Return the ring with a newer row, without rows that no value can use any more.

        Args:
            window: seconds of rows that are kept.
            oldest: seconds of rows that are kept beside a missing number.
        """
        newest_hole = time if hole else self.hole if self.hole > time - oldest else -inf
        since = time - (window if newest_hole == -inf else max(window, oldest))
        cut = max(bisect_right(self.times, since), len(self.times) + 1 - MAX_SAMPLES)
        times, numbers = self.times[cut:], self.numbers[cut * self.width :]
        times.append(time)
        numbers.extend(row)
        return Ring(times, numbers, self.width, newest_hole)


def ring_of(shape: PageShape, histories: Sequence[History]) -> Ring:
    """Return rows with the samples of the device series, in the order of the shape."""
    times = array("d", sorted({time for samples in histories for time in samples.times}))
    width, at_time = len(shape.numbers.spellings), {time: at for at, time in enumerate(times)}
    numbers = array("d", bytes(8 * width * len(times)))
    missing = array("d", [nan] * len(times))
    hole = -inf
    for row, samples in zip(shape.rows, histories, strict=True):
        whole = samples.times == times
        place_of = dict(zip(row.columns.layout.columns, row.columns.places, strict=True))
        for place in place_of.values():
            numbers[place::width] = missing
        for column, spelling in enumerate(samples.layout.columns):
            own, place = samples.column(column), place_of[spelling]
            if whole:
                numbers[place::width] = own
            else:
                for time, number in zip(samples.times, own, strict=True):
                    numbers[at_time[time] * width + place] = number
        for place in place_of.values():
            gaps = [time for time, x in zip(times, numbers[place::width], strict=True) if isnan(x)]
            hole = max(hole, *gaps[-1:], -inf)
    return Ring(times, numbers, width, hole)
