"""Draws a dashboard as a page: the panels where Grafana puts them, with the same queries.

It stands in for Grafana where there is none: it shows whether a panel has data, a sensible scale
and a legend that can be read. Colors, fonts and interaction are not Grafana's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

Samples = list[tuple[float, float]]
"""Time and value, oldest first; without those that are not numbers."""


class Line(NamedTuple):
    """A series of a panel."""

    legend: str
    samples: Samples


Ask = Callable[[str], Sequence[tuple[Mapping[str, str], Samples]]]
"""An expression -> labels and samples of each series."""
Marks = Sequence[tuple[float, str]]
"""Time and color of each mark."""

_COLUMN, _UNIT, _GAP = 58, 36, 6
_GAP_SECONDS = 5.0
"""A line ends where samples are further apart."""
_COLORS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff")
_NAMED: Mapping[str | None, str] = {
    "green": "#73bf69",
    "red": "#f2495c",
    "dark-red": "#c4162a",
    "orange": "#ff9830",
    "dark-orange": "#fa6400",
    "blue": "#5794f2",
    "light-blue": "#8ab8ff",
    "text": "#8e8e99",
}
"""Grafana's names of colors."""
_STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 12px sans-serif; }
div { position: absolute; box-sizing: border-box; overflow: hidden; }
.panel { background: #181b1f; border: 1px solid #2b2d33; border-radius: 2px; padding: 6px 8px; }
.row { font-size: 14px; padding-top: 10px; }
.big { font-size: 34px; text-align: center; left: 0; right: 0; top: 44px; }
.none { color: #8e8e99; text-align: center; left: 0; right: 0; top: 50%; }
.legend { left: 10px; right: 10px; bottom: 4px; white-space: nowrap; line-height: 15px; }
table { font: inherit; width: 100%; border-collapse: collapse; margin-top: 8px; }
th, td { text-align: left; border-bottom: 1px solid #2b2d33; padding: 5px 6px; }
th { color: #8ab8ff; font-weight: 500; }
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
    places = _places(model, opened=opened)
    parts = [_placed(panel, top, ask, marks) for panel, top in places]
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
    places = _places(model, opened=opened)
    lines: int = max(top + panel["gridPos"]["h"] for panel, top in places)
    return lines * _UNIT + 60


def _places(model: Mapping[str, Any], *, opened: bool) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Each row and panel that is shown, and its line. A closed row leaves no gap."""
    gone = 0
    for panel in model["panels"]:
        top = panel["gridPos"]["y"] - gone
        yield panel, top
        inner = panel.get("panels", ())
        if opened:
            yield from ((nested, nested["gridPos"]["y"]) for nested in inner)
        elif inner:
            bottom = max(nested["gridPos"]["y"] + nested["gridPos"]["h"] for nested in inner)
            gone = bottom - top - 1


def _placed(panel: Mapping[str, Any], top: int, ask: Ask, marks: Marks) -> str:
    place = panel["gridPos"]
    wide, high = place["w"] * _COLUMN - _GAP, place["h"] * _UNIT - _GAP
    kind = "row" if panel["type"] == "row" else "panel"
    where = f"left:{place['x'] * _COLUMN + 10}px;top:{top * _UNIT + 44}px"
    box = f'<div class={kind} style="{where};width:{wide}px;height:{high}px">'
    title = escape(panel["title"])
    if kind == "row":
        return f"{box}{'▸' if panel['collapsed'] else '▾'} {title}</div>"
    if panel["type"] == "table":
        return f"{box}{title}{_table(panel, ask)}</div>"
    lines = [line for target in panel["targets"] for line in _lines(target, ask)]
    if not lines:
        return f"{box}{title}<div class=none>No data</div></div>"
    draw = _DRAWN[panel["type"]]
    return f"{box}{title}{draw(panel, lines, wide, high, marks)}</div>"


def _lines(target: Mapping[str, Any], ask: Ask) -> Iterator[Line]:
    for labels, samples in ask(target["expr"]):
        if samples:
            yield Line(_legend(target["legendFormat"], labels), samples)


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), template)


def _number(
    panel: Mapping[str, Any], lines: Sequence[Line], wide: int, high: int, marks: Marks
) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    value = lines[0].samples[-1][1]
    steps = [row for row in defaults["thresholds"]["steps"] if _reached(row["value"], value)]
    color = _NAMED[steps[-1]["color"]]
    shown = _state(panel, value)[0] or shape(value, defaults["unit"])
    return f'<div class=big style="color:{color}">{escape(shown)}</div>'


def _reached(step: float | None, value: float) -> bool:
    return step is None or value >= step


def _state(panel: Mapping[str, Any], value: float) -> tuple[str, str]:
    """The word and the color of a value; both empty if it has none."""
    for mapping in panel["fieldConfig"]["defaults"].get("mappings", ()):
        option = mapping["options"].get(f"{value:g}")
        if option is not None:
            return option["text"], _NAMED.get(option.get("color"), "")
    return "", ""


def _bars(
    panel: Mapping[str, Any], lines: Sequence[Line], wide: int, high: int, marks: Marks
) -> str:
    most = max(line.samples[-1][1] for line in lines) or 1
    tall = min((high - 34) / len(lines), 34)
    parts = []
    for place, line in enumerate(lines):
        value, top = line.samples[-1][1], 28 + place * tall
        where = f"top:{top:.0f}px;height:{tall - 4:.0f}px"
        bar = f"left:170px;width:{(wide - 270) * value / most:.0f}px;background:{_COLORS[0]}"
        shown = shape(value, panel["fieldConfig"]["defaults"]["unit"])
        parts.append(
            f'<div style="left:10px;{where}">{escape(line.legend)}</div>'
            f'<div style="{bar};{where}"></div>'
            f'<div style="right:12px;{where}">{escape(shown)}</div>'
        )
    return "".join(parts)


def _table(panel: Mapping[str, Any], ask: Ask) -> str:
    titles: Mapping[str, str] = panel["transformations"][1]["options"]["renameByName"]
    labels = [name for name in titles if not name.startswith("Value")]
    units = {
        rule["matcher"]["options"]: rule["properties"][0]["value"]
        for rule in panel["fieldConfig"]["overrides"]
    }
    columns = [target["legendFormat"] for target in panel["targets"]]
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for target in panel["targets"]:
        for label_values, samples in ask(target["expr"]):
            if samples:
                key = tuple(label_values.get(name, "") for name in labels)
                rows.setdefault(key, {})[target["legendFormat"]] = samples[-1][1]
    if not rows:
        return "<div class=none>No data</div>"
    head = "".join(f"<th>{escape(titles[name])}" for name in labels)
    head += "".join(f"<th>{escape(title)}" for title in columns)
    body = ""
    for key, row in sorted(rows.items(), key=lambda pair: -pair[1].get(columns[0], -math.inf)):
        texts = [*key, *(shape(row[name], units[name]) if name in row else "" for name in columns)]
        body += "<tr>" + "".join(f"<td>{escape(text)}" for text in texts)
    return f"<table><tr>{head}{body}</table>"


def _states(
    panel: Mapping[str, Any], lines: Sequence[Line], wide: int, high: int, marks: Marks
) -> str:
    left, tall = 180, min((high - 60) / len(lines), 44)
    times = [at for line in lines for at, _ in line.samples]
    first, scale = min(times), (wide - left - 20) / ((max(times) - min(times)) or 1)
    parts = []
    for place, line in enumerate(lines):
        top = 28 + place * tall
        parts.append(
            f'<div style="left:10px;top:{top + tall / 3:.0f}px">{escape(line.legend)}</div>'
        )
        for begun, ended, value in _stretches(line.samples):
            word, color = _state(panel, value)
            where = f"left:{left + (begun - first) * scale:.0f}px;top:{top:.0f}px"
            size = f"width:{(ended - begun) * scale + 1:.0f}px;height:{tall - 4:.0f}px"
            parts.append(
                f'<div style="{where};{size};background:{color};color:#111;padding:2px">'
                f"{escape(word)}</div>"
            )
    return "".join(parts)


def _stretches(samples: Samples) -> Iterator[tuple[float, float, float]]:
    """Begin, end and value of the times with one value."""
    for value, group in groupby(zip(samples, [*samples[1:], samples[-1]], strict=True), _value):
        pairs = list(group)
        yield pairs[0][0][0], pairs[-1][1][0], value


def _value(pair: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return pair[0][1]


def _heat(
    panel: Mapping[str, Any], lines: Sequence[Line], wide: int, high: int, marks: Marks
) -> str:
    rows = _spread(lines) if panel["options"].get("calculate") else buckets(lines)
    unit = panel["options"]["yAxis"]["unit"]
    times = sorted({at for _, cells in rows for at in cells})
    most = max((count for _, cells in rows for count in cells.values()), default=0) or 1
    left, tall = 70, (high - 60) / len(rows)
    cell = (wide - left - 20) / len(times)
    parts = []
    for place, (bound, cells) in enumerate(rows):
        top = high - 30 - (place + 1) * tall
        parts.append(f'<div style="left:10px;top:{top:.0f}px">{escape(shape(bound, unit))}</div>')
        for at, count in cells.items():
            where = f"left:{left + times.index(at) * cell:.1f}px;top:{top:.1f}px"
            size = f"width:{cell:.1f}px;height:{tall:.1f}px"
            heat = f"background:{_COLORS[3]};opacity:{count / most:.2f}"
            parts += [f'<div style="{where};{size};{heat}"></div>'] if count > 0 else []
    return "".join(parts)


Heat = list[tuple[float, dict[float, float]]]
"""Upper bound and, by its time, the count of each row, the lowest first."""


def buckets(lines: Sequence[Line]) -> Heat:
    """Return the buckets of a histogram, whose legends are their upper bounds."""
    below: dict[float, float] = {}
    rows: Heat = []
    for line in sorted(lines, key=lambda bucket: float(bucket.legend)):
        counts = dict(line.samples)
        cells = {at: count - below.get(at, 0.0) for at, count in counts.items()}
        rows.append((float(line.legend), cells))
        below = counts
    return rows


def _spread(lines: Sequence[Line], steps: int = 10) -> Heat:
    most = max(value for line in lines for _, value in line.samples) or 1
    rows: Heat = [(most * (place + 1) / steps, {}) for place in range(steps)]
    for line in lines:
        for at, value in line.samples:
            cells = rows[min(int(value / most * steps), steps - 1)][1]
            cells[at] = cells.get(at, 0.0) + 1
    return rows


def _curves(
    panel: Mapping[str, Any],
    lines: Sequence[Line],
    wide: int,
    high: int,
    marks: Marks,
) -> str:
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


_DRAWN: Mapping[str, Callable[[Mapping[str, Any], Sequence[Line], int, int, Marks], str]] = {
    "stat": _number,
    "timeseries": _curves,
    "bargauge": _bars,
    "state-timeline": _states,
    "heatmap": _heat,
}
"""Type of panel -> what draws it. A table shows the labels of series, and draws itself."""


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
    if math.isinf(value):
        return "∞"
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
