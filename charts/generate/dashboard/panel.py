"""One panel, and the layout of panels in Grafana's grid of 24 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any, Final

from adapter.pipeline.catalog.serverkinds import KINDS

Json = dict[str, Any]

COLUMNS: Final = 24
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHT: Final = {"stat": 4, "timeseries": 8}
_MOST: Final = {"stat": 6, "timeseries": 3}
"""Panels side by side."""


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression and the legend of its series."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Queries and their presentation."""

    title: str
    description: str
    """What the panel shows, and how to interpret it."""
    unit: str
    """Grafana's identifier, such as ``percent`` (0-100) or ``percentunit`` (0-1)."""
    queries: Sequence[Query]
    kind: str = "timeseries"
    low: float | None = None
    high: float | None = None
    warn: float | None = None
    """From this value on, the panel is red. None: never."""
    bad_below: float | None = None
    """Below this value the panel is red, otherwise green. None: never."""
    words: tuple[str, str] | None = None
    """Texts for 0 and 1."""
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a title."""

    title: str
    panels: Sequence[Panel]
    collapsed: bool = False
    """Whether the row is closed at first. Grafana then asks no query of its panels."""


_OF_SERVERS: Final = "|".join(
    sorted({re.escape(name) for kind in KINDS.values() for name in kind.names})
)
_SERIES: Final = re.compile(
    r"(?<![\w:$\"])((?:(?:gma|kube|process|DCGM_FI|gpu_gfx|gpu_used|gpu_package|xpum)_"
    rf"|{_OF_SERVERS})[\w:]+)(\{{)?"
)
"""The names of series in an expression, each with the brace of its matchers if it has any."""
_CLUSTER: Final = 'cluster="$cluster"'


def clustered(expr: str) -> str:
    """Return the expression for the chosen cluster.

    Without a label `cluster`, the variable is empty, which selects the series without the label.
    """

    def selected(found: re.Match[str]) -> str:
        return f"{found[1]}{{{_CLUSTER}{', ' if found[2] else '}'}"

    return _SERIES.sub(selected, expr)


def stat(title: str, description: str, unit: str, expr: str, legend: str, **more: Any) -> Panel:
    """Return a panel with one current number in large type."""
    return Panel(title, description, unit, (Query(expr, legend),), kind="stat", **more)


def laid_out(rows: Iterable[Row]) -> Iterator[Json]:
    """Yield rows and panels in Grafana's model, from left to right and from top to bottom.

    A collapsed row contains its panels, and the next row is directly below it.
    """
    ids, top = count(1), 0
    for row in rows:
        head: Json = {
            "id": next(ids),
            "type": "row",
            "title": row.title,
            "collapsed": row.collapsed,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
            "panels": [],
        }
        panels = [{"id": next(ids), **each} for each in _placed(row.panels, top + 1)]
        if row.collapsed:
            yield head | {"panels": panels}
            top += 1
            continue
        yield head
        yield from panels
        top = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels)


def _placed(panels: Iterable[Panel], top: int) -> Iterator[Json]:
    """Panels of one kind fill whole lines, as equally long as possible."""
    for kind, group in groupby(panels, key=lambda panel: panel.kind):
        waiting, high = list(group), _HEIGHT[kind]
        while waiting:
            lines = -(-len(waiting) // _MOST[kind])
            beside = -(-len(waiting) // lines)
            wide = COLUMNS // beside
            for number, panel in enumerate(waiting[:beside]):
                place = {"h": high, "w": wide, "x": number * wide, "y": top}
                yield {"gridPos": place, **_panel(panel)}
            waiting, top = waiting[beside:], top + high


def shown(model: Json) -> Iterator[Json]:
    """Yield the panels of a dashboard, also those in collapsed rows, without the rows."""
    for panel in model["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else (panel,)


def _panel(panel: Panel) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": clustered(query.expr),
                "legendFormat": query.legend,
                "range": True,
            }
            for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
    }


def _defaults(panel: Panel) -> Json:
    found: Json = {"unit": panel.unit, "thresholds": _thresholds(panel), "mappings": []}
    if panel.low is not None:
        found["min"] = panel.low
    if panel.high is not None:
        found["max"] = panel.high
    if panel.words is not None:
        no, yes = panel.words
        options = {"0": {"text": no, "index": 0}, "1": {"text": yes, "index": 1}}
        found["mappings"] = [{"type": "value", "options": options}]
    if panel.kind == "stat":
        found["color"] = {"mode": "thresholds"}
        return found
    found["color"] = {"mode": "palette-classic"}
    found["custom"] = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if panel.stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
    }
    return found


def _thresholds(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.warn is not None:
        steps.append({"color": "red", "value": panel.warn})
    if panel.bad_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": panel.bad_below}]
    return {"mode": "absolute", "steps": steps}


_OPTIONS: Final[dict[str, Json]] = {
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
    },
    "timeseries": {
        "legend": {
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
            "calcs": ["lastNotNull", "max"],
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
}
