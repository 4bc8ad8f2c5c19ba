"""Rows of numbers in order of time: of one device, or of all devices of a page."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass

from adapter.pipeline.devices.options import MAX_SAMPLES


@dataclass(slots=True, eq=False)
class NumberRows:
    """Rows of numbers, NaN for a missing one. Treated as immutable."""

    times: array[float]
    """Epoch seconds of each row, ascending, without duplicates."""
    numbers: array[float]
    """Of each row, in the units of the fields."""
    width: int
    """Numbers in a row."""

    def column(self, place: int, first: int = 0) -> array[float]:
        """Return the numbers at a place of the rows from one on."""
        return self.numbers[first * self.width + place :: self.width]

    def after(self, time: float) -> NumberRows:
        """Return the rows that are newer than ``time``."""
        cut = bisect_right(self.times, time)
        return (
            NumberRows(self.times[cut:], self.numbers[cut * self.width :], self.width)
            if cut
            else self
        )

    def with_row(self, time: float, row: array[float], window: float) -> NumberRows:
        """Return the rows with one of a newer time, without those that are too old.

        Args:
            window: seconds up to the newest row; that row is always kept.
        """
        cut = bisect_right(self.times, time - window)
        cut = max(cut, len(self.times) + 1 - MAX_SAMPLES)
        # A longer array would have room for more: a sixteenth of the numbers of an exporter.
        times = self.times[cut:] + array("d", (time,))
        numbers = self.numbers[cut * self.width :] + row
        return NumberRows(times, numbers, self.width)
