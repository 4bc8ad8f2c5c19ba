"""Plots of a replay as SVG: lines over time, and points of cost against time over the limit.

A plot is text without scripts, links or fonts of its own. Its colors are CSS variables of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from operator import itemgetter
from typing import Final, NamedTuple

from adapter.figures import number

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 12, 32
_STEPS: Final = (1, 2, 2.5, 5, 10)
_SPANS: Final = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400)
_TICKS: Final = 8
_LETTER: Final = 7
"""Pixels of a letter, at most on average, and of a line of text."""
_LINE: Final = 14


class Line(NamedTuple):
    """A named line. A point without a value ends a stretch of it."""

    name: str
    style: str
    """A CSS class of the page."""
    points: Sequence[tuple[float, float | None]]
    """Epoch seconds, and the value from then on."""


class Mark(NamedTuple):
    """A named point."""

    name: str
    style: str
    x: float
    y: float


def over_time(
    title: str, lines: Sequence[Line], levels: Sequence[tuple[str, str, float]] = ()
) -> str:
    """Return a plot of steps over time, with horizontal lines at ``levels`` (name, style, y)."""
    times = [time for line in lines for time, _ in line.points]
    values = [value for line in lines for _, value in line.points if value is not None]
    if len(times) < 2 or not values:
        return ""
    first, last = min(times), max(times)
    top, ticks = _scale(max(*values, *(level for _, _, level in levels), 1e-9))
    x = _Axis(first, last, _LEFT, _WIDTH - _RIGHT)
    y = _Axis(0.0, top, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_frame(ticks, y), *_times(first, last, x)]
    for name, style, level in levels:
        pixel = f"{y(level):.1f}"
        parts.append(
            f'<line class="{style}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{pixel}" y2="{pixel}">'
            f"<title>{escape(name)}</title></line>"
        )
    for line in lines:
        path = "".join(_path(_columns(line.points, x), y))
        name = f"<title>{escape(line.name)}</title>"
        parts.append(f'<path class="{line.style}" d="{path}">{name}</path>')
    return _svg(title, parts)


def scatter(title: str, marks: Sequence[Mark], x_name: str, y_name: str) -> str:
    """Return a plot of named points; both axes begin at 0. Points at one place share a name."""
    if not marks:
        return ""
    right, x_ticks = _scale(max(mark.x for mark in marks) or 1.0)
    top, y_ticks = _scale(max(mark.y for mark in marks) or 1.0)
    x = _Axis(0.0, right, _LEFT, _WIDTH - _RIGHT)
    y = _Axis(0.0, top, _HEIGHT - _BOTTOM, _TOP)
    parts = list(_frame(y_ticks, y))
    parts += [_below(x(tick), number(tick)) for tick in x_ticks]
    parts.append(_text(_WIDTH - _RIGHT, _HEIGHT - _BOTTOM - 6, x_name, "end"))
    parts.append(_text(_LEFT + 6, _TOP + 10, y_name, "start"))
    places: dict[tuple[int, int], list[Mark]] = {}
    for mark in marks:
        places.setdefault((round(x(mark.x) / 8), round(y(mark.y) / 8)), []).append(mark)
    taken = [_Box(_WIDTH - _RIGHT - _LETTER * len(x_name), _WIDTH, _HEIGHT - _BOTTOM - 6)]
    for together in places.values():
        last = together[-1]
        along, up = x(last.x), y(last.y)
        names = ", ".join(mark.name for mark in together)
        width = _LETTER * len(names)
        left = along + 9 if along + 9 + width < _WIDTH - _RIGHT else max(_LEFT, along - 9 - width)
        box = _move_free(_Box(left, left + width, max(up - 6, 20)), taken)
        taken.append(box)
        parts.append(
            f'<circle class="{last.style}" cx="{along:.1f}" cy="{up:.1f}" r="5"/>'
            f'<text class="name" x="{box.left:.1f}" y="{box.y:.1f}">{escape(names)}</text>'
        )
    return _svg(title, parts)


class _Box(NamedTuple):
    """The place of a name."""

    left: float
    right: float
    y: float

    def overlaps(self, other: _Box) -> bool:
        beside = self.right < other.left or other.right < self.left
        return not beside and abs(self.y - other.y) < _LINE


def _move_free(box: _Box, others: Sequence[_Box]) -> _Box:
    """Return the box, moved up until it overlaps no other."""
    wanted = box
    while any(box.overlaps(other) for other in others):
        box = box._replace(y=box.y - 2)
    return box if box.y > _TOP else wanted


def _svg(title: str, parts: Iterable[str]) -> str:
    text = escape(title, quote=True)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text}">'
        f"{''.join(parts)}</svg>"
    )


def _scale(most: float) -> tuple[float, list[float]]:
    """Return a round upper end of an axis from 0, and its ticks."""
    size = 10.0 ** math.floor(math.log10(most / 5))
    step = next(size * factor for factor in _STEPS if size * factor * 5 >= most)
    count = math.ceil(most / step)
    return step * count, [step * index for index in range(count + 1)]


class _Axis(NamedTuple):
    """Maps values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)


def _frame(ticks: Iterable[float], y: _Axis) -> Iterator[str]:
    for tick in ticks:
        pixel = f"{y(tick):.1f}"
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{pixel}" y2="{pixel}"/>'
        yield _text(_LEFT - 8, y(tick) + 4, number(tick), "end")


def _times(first: float, last: float, x: _Axis) -> Iterator[str]:
    span = next((step for step in _SPANS if (last - first) / step <= _TICKS), _SPANS[-1])
    tick = -(-first // span) * span
    while tick <= last:
        moment = datetime.fromtimestamp(tick, UTC)
        yield _below(x(tick), moment.strftime("%b %d" if span >= 86400 else "%H:%M"))
        tick += span


def _below(at: float, text: str) -> str:
    return _text(at, _HEIGHT - 12, text, "middle")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    attributes = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="axis" {attributes}>{escape(text)}</text>'


def _columns(
    points: Sequence[tuple[float, float | None]], x: _Axis
) -> Iterator[tuple[float, float | None]]:
    """Yield at most the lowest and the highest value of each column of pixels, in their order."""
    column, in_column = -1, list[tuple[float, float | None]]()
    for time, value in points:
        pixel = x(time)
        if int(pixel) != column:
            yield from _extremes(in_column)
            column, in_column = int(pixel), []
        in_column.append((pixel, value))
    yield from _extremes(in_column)


def _extremes(points: list[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    if len(points) <= 3 or any(value is None for _, value in points):
        return points
    ends = {points[0], points[-1], min(points, key=_value), max(points, key=_value)}
    return sorted(ends, key=itemgetter(0))


def _value(point: tuple[float, float | None]) -> float:
    return point[1] or 0.0


def _path(points: Iterable[tuple[float, float | None]], y: _Axis) -> Iterator[str]:
    before: float | None = None
    for pixel, value in points:
        if value is None:
            if before is not None:
                yield f"H{pixel:.1f}"
        elif before is None:
            yield f"M{pixel:.1f} {y(value):.1f}"
        elif value == before:
            yield f"H{pixel:.1f}"
        else:
            yield f"H{pixel:.1f}V{y(value):.1f}"
        before = value
