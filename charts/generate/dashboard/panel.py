"""The panels that the dashboards use: each a type of Grafana's SDK, with our presentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from adapter.pipeline.catalog.serverkinds import KINDS

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_Panel = TypeVar(
    "_Panel",
    bargauge.Panel,
    heatmap.Panel,
    stat.Panel,
    statetimeline.Panel,
    tables.Panel,
    timeseries.Panel,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression and the legend of its series."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a query that has one series for each of its rows."""

    title: str
    unit: str
    expr: str


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a title."""

    title: str
    panels: Sequence[Builder[models.Panel]]
    collapsed: bool = False
    """Whether the row is closed at first. Grafana then asks no query of its panels."""


@dataclass(frozen=True, slots=True)
class Board:
    """The dashboard that answers one question."""

    uid: str
    title: str
    question: str
    rows: Sequence[Row]


_OF_SERVERS: Final = "|".join(
    sorted({re.escape(name) for kind in KINDS.values() for name in kind.names})
)
_SERIES: Final = re.compile(
    r"(?<![\w:$\"])((?:(?:gma|kube|process|node_gpu|DCGM_FI|gpu_gfx|gpu_used|gpu_package|xpum)_"
    rf"|{_OF_SERVERS})[\w:]+)(\{{)?"
)
"""The names of series in an expression, each with the brace of its matchers if it has any."""
_CLUSTER: Final = 'cluster="$cluster"'


def select_cluster(expr: str) -> str:
    """Return the expression for the chosen cluster.

    Without a label `cluster`, the variable is empty, which selects the series without the label.
    """

    def add_cluster(match: re.Match[str]) -> str:
        return f"{match[1]}{{{_CLUSTER}{', ' if match[2] else '}'}"

    return _SERIES.sub(add_cluster, expr)


def number(
    title: str,
    description: str,
    expr: str,
    legend: str = "",
    *,
    unit: str = "none",
    words: Sequence[str] = (),
    red_from: float | None = None,
    red_below: float | None = None,
) -> stat.Panel:
    """Return a panel with one current number in large type, or the word that stands for it."""
    panel = _fill_panel(stat.Panel(), title, description, unit, [Query(expr, legend or title)])
    return (
        panel.height(4)
        .span(4)
        .graph_mode(options.BigValueGraphMode.NONE)
        .color_scheme(_by_threshold())
        .thresholds(_thresholds(red_from, red_below))
        .mappings(_mappings([(word, None) for word in words]))
        .reduce_options(_last_value())
    )


def graph(
    title: str, description: str, *queries: Query, unit: str = "none", stacked: bool = False
) -> timeseries.Panel:
    """Return lines over time, from zero up."""
    mode = options.StackingMode.NORMAL if stacked else options.StackingMode.NONE
    legend = common.VizLegendOptions().display_mode(options.LegendDisplayMode.TABLE)
    tooltip = common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI)
    return (
        _fill_panel(timeseries.Panel(), title, description, unit, queries)
        .min(0)
        .fill_opacity(30 if stacked else 0)
        .show_points(options.VisibilityMode.NEVER)
        .stacking(common.StackingConfig().mode(mode).group("A"))
        .legend(
            legend.placement(options.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(tooltip.sort(options.SortOrder.DESCENDING))
    )


def bars(title: str, description: str, query: Query, *, unit: str = "none") -> bargauge.Panel:
    """Return a bar for the current value of each series."""
    return (
        _fill_panel(bargauge.Panel(), title, description, unit, [query])
        .min(0)
        .color_scheme(_by_threshold())
        .thresholds(_thresholds())
        .orientation(options.VizOrientation.HORIZONTAL)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
        .reduce_options(_last_value())
    )


def timeline(
    title: str, description: str, states: Sequence[tuple[str, str]], query: Query
) -> statetimeline.Panel:
    """Return a bar for each series, in the color of its state at each time.

    Args:
        title: of the panel.
        description: what it shows.
        states: the word and the color of the values 0, 1, 2 and so on.
        query: whose values are numbers of states.
    """
    return (
        _fill_panel(statetimeline.Panel(), title, description, "none", [query])
        .mappings(_mappings(states))
        .merge_values(True)
        .show_value(options.VisibilityMode.AUTO)
        .legend(common.VizLegendOptions().show_legend(True))
    )


def buckets(title: str, description: str, unit: str, expr: str) -> heatmap.Panel:
    """Return how many observations were in each bucket of a histogram (``le``) at each time."""
    panel = _fill_panel(heatmap.Panel(), title, description, unit, [])
    query = _query(Query(expr, "{{le}}"), 0).format(PromQueryFormat.HEATMAP)
    return panel.with_target(query).y_axis(heatmap.YAxisConfig().unit(unit))


def spread(title: str, description: str, unit: str, query: Query) -> heatmap.Panel:
    """Return how many series had about the same value at each time."""
    panel = _fill_panel(heatmap.Panel(), title, description, unit, [query])
    return panel.calculate(True).y_axis(heatmap.YAxisConfig().unit(unit).min(0))


def table(
    title: str, description: str, labels: Mapping[str, str], *columns: Column
) -> tables.Panel:
    """Return a row for each set of labels, with the current values of the queries.

    Args:
        title: of the panel.
        description: what it shows.
        labels: of every query -> the title of the column that shows it.
        columns: the first decides the order of the rows, the highest value first.
    """
    panel = _fill_panel(tables.Panel(), title, description, "none", [])
    titles: dict[str, str] = {**labels}
    for place, column in enumerate(columns):
        query = _query(Query(column.expr, column.title), place).instant()
        panel.with_target(query.format(PromQueryFormat.TABLE))
        unit = models.DynamicConfigValue("unit", column.unit)
        panel.override_by_name(column.title, [unit])
        # A single query has no letter.
        titles["Value" if len(columns) == 1 else f"Value #{_letter(place)}"] = column.title
    order = {name: place for place, name in enumerate(titles)}
    shown = {"excludeByName": {"Time": True}, "renameByName": titles, "indexByName": order}
    first = common.TableSortByFieldState().display_name(columns[0].title).desc(True)
    return (
        panel.with_transformation(models.DataTransformerConfig("merge", options={}))
        .with_transformation(models.DataTransformerConfig("organize", options=shown))
        .sort_by([first])
    )


def _fill_panel(
    panel: _Panel, title: str, description: str, unit: str, queries: Sequence[Query]
) -> _Panel:
    """Give a panel what every panel has; three of them are side by side unless it says more."""
    for place, query in enumerate(queries):
        panel.with_target(_query(query, place))
    panel.title(title).description(description).unit(unit).datasource(DATASOURCE)
    return panel.height(8).span(8)


def _query(query: Query, place: int) -> prometheus.Dataquery:
    dataquery = prometheus.Dataquery().expr(select_cluster(query.expr)).legend_format(query.legend)
    return dataquery.range().ref_id(_letter(place))


def _letter(place: int) -> str:
    return chr(ord("A") + place)


def _last_value() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"])


def _by_threshold() -> builders.FieldColor:
    return builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def _mappings(states: Sequence[tuple[str, str | None]]) -> list[models.ValueMapping]:
    results = {
        str(value): models.ValueMappingResult(text=word, color=color, index=value)
        for value, (word, color) in enumerate(states)
    }
    return [models.ValueMap(results)] if results else []


def _thresholds(
    red_from: float | None = None, red_below: float | None = None
) -> builders.ThresholdsConfig:
    steps = [models.Threshold(color="green")]
    if red_from is not None:
        steps.append(models.Threshold(red_from, "red"))
    if red_below is not None:
        steps = [models.Threshold(color="red"), models.Threshold(red_below, "green")]
    return builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)
