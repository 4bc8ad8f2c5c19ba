"""The ring: the open hour in arrays, the hours before it deflated, the oldest dropped.

A day of 1,000 HPAs and 1,000 workloads whose values all change every minute takes 7 MB, and the
open hour 2.7 MB. A bound in bytes holds for any number of them: the oldest hours end first, then
subjects are left out and counted.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from adapter.answers.history.hours import (
    MINUTES,
    VERSION,
    Column,
    Hour,
    HourError,
    Minutes,
    StoredHour,
    deflate_hour,
    noted_point,
    read_hour,
)
from adapter.answers.judgement.states import ORDER
from apiservice.runtime.steps import Steps

MINUTE: Final = 60.0
"""Seconds between two points."""
HOURS: Final = 24
"""Closed hours that are kept, beside the open one."""
MOST_BYTES: Final = 8 << 20
"""Bytes of all points by default."""
_SETBACK: Final = 10
"""Minutes by which the clock may be set back: until it is there again, nothing is noted. If it was
ahead by more, it was wrong."""
_OPEN_SHARE: Final = 2
"""The open hour may have this part (1/2) of the bytes."""
_SUBJECT: Final = 400
"""Bytes of a subject in the open hour, beside its points: name, array and place."""
_LARGEST: Final = 1e38
"""A 32-bit number is smaller."""
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "hpa": ("value", "target", "current", "desired", "state"),
    "workload": ("utilization", "pods", "measured"),
    "pool": ("gpus", "busy", "idle", "free"),
}
"""Kind of a subject -> the columns of its points. ``state`` is the place of a name in ``ORDER``."""
_DIGITS: Final[Mapping[str, int]] = {"hpa": 3, "workload": 2, "pool": 9}
"""Kind of a subject -> the digits with which the first number of a point is kept."""
_STATES: Final = [state.value for state in ORDER]
_OF_METRIC: Final = 2
"""The first columns of an HPA, which are about one metric."""
NONE: Final = math.nan


class NotedPast(NamedTuple):
    """The points of one subject, a minute each, without a gap between their times."""

    start: float
    """Epoch seconds of the first point."""
    metric: str
    columns: Mapping[str, Column]
    """Column -> numbers; None for a minute that is missing."""

    def states(self) -> list[str | None]:
        """Return the state of an HPA in each minute."""
        numbers = self.columns["state"]
        return [None if number is None else _STATES[int(number)] for number in numbers]


def subject(kind: str, name: str, namespace: str = "") -> str:
    """Return the name under which points are kept. No part of it has a space."""
    return f"{kind} {namespace} {name}"


class HistoryRing:
    """Points of subjects by minute. One minute is noted at a time, and none twice.

    Args:
        most: bytes of all points.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._open: dict[str, tuple[str, array[float]]] = {}
        """Subject -> its metric, and the points of the open hour one after the other."""
        self._hour = -1
        """The open hour, in hours since 1970."""
        self._closed: dict[int, Hour] = {}
        """Hour -> its blocks, in order of the hours."""
        self._closed_bytes = self._open_bytes = 0
        self.last = -1
        """The minute that was noted last, in minutes since 1970."""
        self.left_out = 0
        """Subjects of the last minute that have no room."""

    @property
    def size(self) -> int:
        """Bytes that the points take."""
        return self._closed_bytes + self._open_bytes

    @property
    def subjects(self) -> int:
        """Subjects with a point in the open hour."""
        return len(self._open)

    @property
    def since(self) -> float | None:
        """Epoch seconds of the oldest hour; None before the first point."""
        first = next(iter(self._closed), self._hour)
        return None if first < 0 else first * MINUTES * MINUTE

    def turn(self, minute: int) -> Steps[bool]:
        """Begin a minute, in steps: close the hour before it. Return whether it may be noted.

        If minutes were noted far ahead of it, the clock was wrong, and they are dropped.

        Args:
            minute: minutes since 1970.
        """
        if self.last - _SETBACK <= minute <= self.last:
            return False  # the clock was set back: what was noted stays
        hour, wrong = minute // MINUTES, minute < self.last
        if wrong:
            self._drop_after(hour)
        if hour != self._hour:
            yield from self._close()
            self._drop(hour - HOURS - 1)
            self._open_again(hour)
        if wrong:
            for name, (_, points) in self._open.items():
                del points[minute % MINUTES * _width(name) :]
        self.last, self.left_out = minute, 0
        return True

    def note(self, name: str, row: Sequence[float | None], metric: str = "") -> None:
        """Add the point of a subject to the minute that :meth:`turn` has begun.

        Args:
            name: see :func:`subject`.
            row: one number for each of its columns; None for a missing one.
            metric: what the first columns are about. Those of another metric end with it.
        """
        entry = self._open.get(name)
        if entry is None:
            if not self._has_room(len(row)):
                self.left_out += 1
                return
            entry = metric, array("f")
        old_metric, points = entry
        if old_metric != metric:
            _forget(points, len(row))
        place = self.last % MINUTES * len(row)
        del points[place:]  # another process may have noted this minute too
        points.extend([NONE] * (place - len(points)))
        digits = _DIGITS[name.partition(" ")[0]]
        points.extend(map(_point, (_round_number(row[0], digits), *row[1:])))
        self._open[name] = metric, points

    def _has_room(self, width: int) -> bool:
        """Reserve the bytes of one more subject for the whole hour, if there is room for it."""
        needed = _SUBJECT + MINUTES * width * array("f").itemsize
        if self._open_bytes + needed > self._most // _OPEN_SHARE:
            return False
        self._open_bytes += needed
        while self.size > self._most and self._closed:
            self._drop(next(iter(self._closed)))
        return True

    def read(self, name: str, minutes: int) -> NotedPast | None:
        """Return the newest points of a subject; None if it has none.

        Args:
            name: see :func:`subject`.
            minutes: how many, up to the minute that was noted last.
        """
        first = max(self.last - minutes + 1, 0)
        columns = COLUMNS[name.partition(" ")[0]]
        hours: list[tuple[int, Minutes]] = []
        metric = ""
        for hour, part in self._hours_of(name, first // MINUTES):
            hours.append((hour, part))
            metric = part.metric
        if not hours:
            return None
        start = max(first, hours[0][0] * MINUTES)
        rows: list[Column] = [[None] * (self.last - start + 1) for _ in columns]
        for hour, part in hours:
            offset = hour * MINUTES - start
            skipped = 0 if part.metric == metric else _OF_METRIC
            for row, column in zip(rows[skipped:], part.columns[skipped:], strict=True):
                place = max(0, offset)
                numbers = column[max(0, -offset) :][: len(row) - place]
                row[place : place + len(numbers)] = numbers
        gap = (None,) * len(columns)
        filled = (place for place, point in enumerate(zip(*rows, strict=True)) if point != gap)
        before = next(filled, len(rows[0]))
        by_name = {name: row[before:] for name, row in zip(columns, rows, strict=True)}
        return NotedPast((start + before) * MINUTE, metric, by_name)

    def _hours_of(self, name: str, since: int) -> Iterator[tuple[int, Minutes]]:
        for hour, blocks in self._closed.items():
            if hour >= since and (part := blocks.find(name)) is not None:
                yield hour, part
        if (entry := self._open.get(name)) is not None:
            metric, points = entry
            width = _width(name)
            yield (
                self._hour,
                Minutes(
                    metric, [[noted_point(x) for x in points[at::width]] for at in range(width)]
                ),
            )

    @property
    def open_hour(self) -> int | None:
        """The hour whose minutes are still noted; None before the first point."""
        return self._hour if self._open else None

    @property
    def hours(self) -> list[int]:
        """The hours with points, in order."""
        return [*self._closed, *([self._hour] if self._open else [])]

    def stored_hour(self, hour: int) -> Steps[StoredHour | None]:
        """Return an hour, in steps, as another process takes it; None if it is not kept.

        Only the open hour takes time: its points are deflated.
        """
        blocks: list[bytes] = []
        if hour in self._closed:
            blocks += self._closed[hour].blocks
        elif hour == self._hour:
            yield from self._blocks([], blocks)
        return StoredHour(VERSION, _STATES, hour, blocks) if blocks else None

    def take(self, stored: StoredHour, now: float) -> None:
        """Take an hour of another process, unless it is known or too old.

        Raises:
            HourError: it has another form, or another release made it.
        """
        if stored.version != VERSION or stored.states != _STATES:
            raise HourError("another release of the adapter has made it")
        current = int(now // (MINUTES * MINUTE))
        if not current - HOURS <= stored.hour <= current:
            return
        hour = read_hour(stored.blocks, COLUMNS, len(_STATES))
        # At the end of an hour, this process notes it until it notes the first minute of the next.
        if stored.hour in (current, self._hour):
            self._join(hour, stored.hour)
        elif stored.hour not in self._closed and self.size + hour.size <= self._most:
            self._keep(stored.hour, hour)

    def _join(self, hour: Hour, number: int) -> None:
        """Put the minutes of an hour into the gaps of the open one, if it is the same."""
        if self._hour not in (-1, number):
            return
        self._hour = number
        for block in hour.each():
            for name, part in block.items():
                rows = zip_longest(*part.columns)
                theirs = array("f", (_point(point) for row in rows for point in row))
                metric, ours = self._open.get(name, (part.metric, array("f")))
                if metric != part.metric:
                    _forget(theirs, len(part.columns))
                if name in self._open or self._has_room(len(part.columns)):
                    pairs = zip(ours, theirs, strict=False)
                    shared = [y if math.isnan(x) else x for x, y in pairs]
                    rest = max(ours, theirs, key=len)[len(shared) :]
                    self._open[name] = metric, array("f", shared) + rest

    def _close(self) -> Steps[None]:
        """Deflate the open hour, in steps."""
        firsts: list[str] = []
        blocks: list[bytes] = []
        yield from self._blocks(firsts, blocks)
        self._open, self._open_bytes = {}, 0
        if blocks:
            self._keep(self._hour, Hour(tuple(firsts), tuple(blocks)))

    def _keep(self, number: int, hour: Hour) -> None:
        """Add a closed hour, in place of what was kept of it before."""
        self._take_out(number)
        self._closed[number] = hour
        self._closed = dict(sorted(self._closed.items()))
        self._closed_bytes += hour.size

    def _take_out(self, number: int) -> Hour | None:
        """Take a closed hour out, if it is kept."""
        hour = self._closed.pop(number, None)
        if hour is not None:
            self._closed_bytes -= hour.size
        return hour

    def _open_again(self, number: int) -> None:
        """Open an hour. If it was closed before, go on with it."""
        self._hour = number
        hour = self._take_out(number)
        if hour is not None:
            self._join(hour, number)

    def _blocks(self, firsts: list[str], blocks: list[bytes]) -> Steps[None]:
        rows = {
            name: (metric, _width(name), points) for name, (metric, points) in self._open.items()
        }
        for first, block in deflate_hour(rows):
            firsts.append(first)
            blocks.append(block)
            yield

    def _drop(self, until: int) -> None:
        """Drop closed hours up to one."""
        for hour in [hour for hour in self._closed if hour <= until]:
            self._take_out(hour)

    def _drop_after(self, number: int) -> None:
        """Drop the hours after one, the open one included."""
        for hour in [hour for hour in self._closed if hour > number]:
            self._take_out(hour)
        if self._hour > number:
            self._open, self._open_bytes, self._hour = {}, 0, -1


def _width(name: str) -> int:
    """Return the number of columns of a subject."""
    return len(COLUMNS[name.partition(" ")[0]])


def _round_number(number: float | None, digits: int) -> float | None:
    return None if number is None else float(f"{number:.{digits}g}")


def _point(number: float | None) -> float:
    return number if number is not None and -_LARGEST < number < _LARGEST else NONE


def _forget(points: array[float], width: int) -> None:
    """Remove the numbers of another metric."""
    for place in range(0, len(points), width):
        points[place : place + _OF_METRIC] = array("f", [NONE] * _OF_METRIC)
