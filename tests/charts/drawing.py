"""Draws a dashboard as a page: the panels where Grafana puts them, with the same queries.

It stands in for Grafana where there is none: it shows whether a panel has data, a sensible scale
and a legend that can be read. Colors, fonts and interaction are not Grafana's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

Samples = list[tuple[float, float]]
"""Time and value, oldest first; without those that are not numbers."""


class Line(NamedTuple):
    """A series of a panel."""

    legend: str
    samples: Samples


Ask = Callable[[str], Sequence[tuple[Mapping[str, str], Samples]]]
"""An expression -> labels and samples of each series."""

_COLUMN, _UNIT, _GAP = 58, 36, 6
_GAP_SECONDS = 5.0
"""A line ends where samples are further apart."""
_COLORS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff")
_STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 12px sans-serif; }
div { position: absolute; box-sizing: border-box; overflow: hidden; }
.panel { background: #181b1f; border: 1px solid #2b2d33; border-radius: 2px; padding: 6px 8px; }
.row { font-size: 14px; padding-top: 10px; }
.big { font-size: 34px; text-align: center; left: 0; right: 0; top: 44px; }
.none { color: #8e8e99; text-align: center; left: 0; right: 0; top: 50%; }
.legend { left: 10px; right: 10px; bottom: 4px; white-space: nowrap; line-height: 15px; }
h1 { margin: 12px; font-size: 18px; font-weight: 500; }
svg text { fill: #8e8e99; font: 10px sans-serif; }
"""


def page(model: Mapping[str, Any], ask: Ask, *, opened: bool = False) -> str:
    """Return the page as HTML.

    Args:
        model: of the dashboard.
        ask: answers a query.
        opened: also show the panels of collapsed rows.
    """
    # An expression of a mark is true for a minute; Grafana asks it once a minute.
    marks = [
        (at, mark["iconColor"])
        for mark in model["annotations"]["list"]
        for _, samples in ask(mark["expr"])
        for at in _beginnings(samples)
    ]
    parts, top = [], 0
    for panel in model["panels"]:
        place = panel["gridPos"]
        inner = panel.get("panels", ()) if opened else ()
        parts.append(_placed(panel, place["y"] + top, ask, marks))
        parts += [_placed(each, each["gridPos"]["y"] + top, ask, marks) for each in inner]
        if inner:
            last = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in inner)
            top += last - place["y"] - 1
    title = escape(model["title"])
    return f"<meta charset=utf-8><style>{_STYLE}</style><h1>{title}</h1>{''.join(parts)}"


def _beginnings(samples: Samples) -> Iterator[float]:
    before = -math.inf
    for at, _ in samples:
        if at - before > _GAP_SECONDS:
            yield at
        before = at


def height(model: Mapping[str, Any], *, opened: bool = False) -> int:
    """Return the height of the page in pixels."""
    units = 0
    for panel in model["panels"]:
        units = max(units, panel["gridPos"]["y"] + panel["gridPos"]["h"])
    if opened:
        for row in model["panels"]:
            inner = row.get("panels", ())
            units += max(
                (e["gridPos"]["y"] + e["gridPos"]["h"] - row["gridPos"]["y"] - 1 for e in inner),
                default=0,
            )
    return units * _UNIT + 60


def _placed(
    panel: Mapping[str, Any], top: int, ask: Ask, marks: Sequence[tuple[float, str]]
) -> str:
    place = panel["gridPos"]
    wide, high = place["w"] * _COLUMN - _GAP, place["h"] * _UNIT - _GAP
    kind = "row" if panel["type"] == "row" else "panel"
    where = f"left:{place['x'] * _COLUMN + 10}px;top:{top * _UNIT + 44}px"
    box = f'<div class={kind} style="{where};width:{wide}px;height:{high}px">'
    title = escape(panel["title"])
    if kind == "row":
        return f"{box}{'▸' if panel['collapsed'] else '▾'} {title}</div>"
    lines = [line for target in panel["targets"] for line in _lines(target, ask)]
    draw = _number if panel["type"] == "stat" else _curves
    return f"{box}{title}{draw(panel, lines, wide, high, marks)}</div>"


def _lines(target: Mapping[str, Any], ask: Ask) -> Iterator[Line]:
    for labels, samples in ask(target["expr"]):
        if samples:
            yield Line(_legend(target["legendFormat"], labels), samples)


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), template)


def _number(
    panel: Mapping[str, Any], lines: Sequence[Line], wide: int, high: int, marks: Sequence[Any]
) -> str:
    if not lines:
        return "<div class=none>No data</div>"
    defaults = panel["fieldConfig"]["defaults"]
    value = lines[0].samples[-1][1]
    steps = [row for row in defaults["thresholds"]["steps"] if _reached(row["value"], value)]
    shown = shape(value, defaults["unit"])
    for mapping in defaults["mappings"]:
        shown = mapping["options"].get(f"{value:g}", {"text": shown})["text"]
    color = {"green": _COLORS[0], "red": _COLORS[4]}[steps[-1]["color"]]
    return f'<div class=big style="color:{color}">{escape(shown)}</div>'


def _reached(step: float | None, value: float) -> bool:
    return step is None or value >= step


def _curves(
    panel: Mapping[str, Any],
    lines: Sequence[Line],
    wide: int,
    high: int,
    marks: Sequence[tuple[float, str]],
) -> str:
    if not lines:
        return "<div class=none>No data</div>"
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    drawn = list(_stacked(lines)) if stacked else list(lines)
    values = [value for line in drawn for _, value in line.samples]
    times = [at for line in drawn for at, _ in line.samples]
    low = float(defaults.get("min", min(values)))
    span = float(defaults.get("max", max(values) * 1.05)) - low or 1.0
    left, bottom = 58, 50
    width, tall = wide - left - 24, high - bottom - 42
    first, last = min(times), max(times)

    def x(at: float) -> float:
        return left + width * (at - first) / ((last - first) or 1)

    def y(value: float) -> float:
        return 8 + tall - tall * (value - low) / span

    parts = [
        f"<line x1={left} x2={left + width} y1={y(at):.1f} y2={y(at):.1f} stroke=#2b2d33 />"
        f"<text x={left - 6} y={y(at) + 3:.1f} text-anchor=end>"
        f"{escape(shape(at, defaults['unit']))}</text>"
        for at in (low, low + span / 2, low + span)
    ]
    parts += [
        f"<line x1={x(at):.1f} x2={x(at):.1f} y1=8 y2={tall + 8} stroke={color} opacity=.5 "
        "stroke-dasharray=3 />"
        for at, color in marks
        if first <= at <= last
    ]
    for number, line in enumerate(drawn):
        color = _COLORS[number % len(_COLORS)]
        way, before = "", -math.inf
        for at, value in line.samples:
            way += f"{'M' if at - before > _GAP_SECONDS else 'L'}{x(at):.1f} {y(value):.1f}"
            before = at
        parts.append(f'<path d="{way}" fill=none stroke={color} stroke-width=1.3 />')
    legend = "".join(
        f'<span style="color:{_COLORS[number % len(_COLORS)]}">━</span> {escape(line.legend)}: '
        f"{escape(shape(line.samples[-1][1], defaults['unit']))} &nbsp; "
        for number, line in enumerate(lines[:8])
    )
    return (
        f'<svg width={wide} height={tall + 16} style="position:absolute;left:0;top:24px">'
        f"{''.join(parts)}</svg><div class=legend style='white-space:normal;height:32px'>"
        f"{legend}</div>"
    )


def _stacked(lines: Sequence[Line]) -> Iterator[Line]:
    below: dict[float, float] = {}
    for line in lines:
        made = [(at, below.get(at, 0.0) + value) for at, value in line.samples]
        below |= dict(made)
        yield Line(line.legend, made)


_SCALES: Mapping[str, tuple[float, str]] = {
    "percent": (1, " %"),
    "percentunit": (100, " %"),
    "celsius": (1, " °C"),
    "reqps": (1, " req/s"),
    "cps": (1, " c/s"),
}
_PREFIXES: Mapping[str, tuple[float, str]] = {
    "bytes": (1, "B"),
    "mbytes": (1 << 20, "B"),
    "hertz": (1, "Hz"),
    "watt": (1, "W"),
}


def shape(value: float, unit: str) -> str:
    """Return a value with its unit, as short as Grafana shows it."""
    if unit == "s":
        return _duration(value)
    if unit in _PREFIXES:
        scale, name = _PREFIXES[unit]
        value *= scale
        base, prefixes = (1024, " KMGT") if name == "B" else (1000, " kMGT")
        power = min(int(math.log(abs(value), base)), 4) if abs(value) >= 1 else 0
        middle = "i" if name == "B" and power else ""
        return f"{value / base**power:.3g} {prefixes[power].strip()}{middle}{name}"
    scale, after = _SCALES.get(unit, (1, ""))
    return f"{value * scale:.3g}{after}"


def _duration(seconds: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1000:.3g} ms"
