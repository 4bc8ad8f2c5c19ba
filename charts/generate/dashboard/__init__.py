"""The Grafana dashboards of the chart: one for each question.

``make docs`` writes charts/gpu-metrics-adapter/files/dashboard-*.json from them, with the types of
Grafana's SDK. They can be imported as they are: the Prometheus is a variable, so there is nothing
to fill in at an import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from charts.generate.dashboard.adapter import adapter
from charts.generate.dashboard.exporter import HOLDERS, NODES
from charts.generate.dashboard.hpas import hpas
from charts.generate.dashboard.nodes import nodes
from charts.generate.dashboard.panel import DATASOURCE, Board, select_cluster
from charts.generate.dashboard.servers import servers
from charts.generate.dashboard.use import use

Json = dict[str, Any]

COLUMNS: Final = 24
SCHEMA: Final = 39
"""The schema of Grafana 10.4 and 11. Later versions migrate it when they load it."""
_TAG: Final = "gpu-metrics-adapter"
"""Of all; by it each links to the others."""
BOARDS: Final[dict[str, Callable[[], Board]]] = {
    "use": use,
    "hpas": hpas,
    "servers": servers,
    "nodes": nodes,
    "adapter": adapter,
}
"""Name in the chart -> dashboard."""


def pages() -> dict[str, partial[str]]:
    """Return the files of the chart and what writes each."""
    return {f"files/dashboard-{name}.json": partial(page, name) for name in BOARDS}


def page(name: str) -> str:
    """Return the JSON as the chart contains it."""
    return json.dumps(dashboard(name), indent=1, ensure_ascii=False) + "\n"


def dashboard(name: str) -> Json:
    """Return the complete model of a dashboard."""
    board = BOARDS[name]()
    made = (
        builders.Dashboard(board.title)
        .uid(board.uid)
        .description(board.question)
        .tags([_TAG, "gpu", "kubernetes", "autoscaling"])
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-1h", "now")
        .version(1)
        .link(_other_dashboards())
        .annotations([])
    )
    for row in board.rows:
        head = builders.Row(row.title)
        if row.collapsed:
            for panel in row.panels:
                head.with_panel(panel)
        made.with_row(head)
        if not row.collapsed:
            for panel in row.panels:
                made.with_panel(panel)
    model = made.build()
    model.schema_version = SCHEMA
    _number_panels(model)
    text = JSONEncoder().encode(model)
    for label, variable in _variables().items():
        if label in ("datasource", "cluster") or f"${label}" in text:
            made.with_variable(variable)
    if "$namespace" in text:
        made.annotation(_Scaled("out", ">", "orange")).annotation(_Scaled("in", "<", "blue"))
    document: Json = json.loads(JSONEncoder().encode(model))
    return document


def list_panels(model: Json) -> Iterator[Json]:
    """Yield the panels of a dashboard, also those in collapsed rows, without the rows."""
    for panel in model["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else (panel,)


def _number_panels(model: models.Dashboard) -> None:
    """Give each row and panel an id of its own."""
    ids = count(1)
    for panel in model.panels or ():
        panel.id_val = next(ids)
        for inner in panel.panels if isinstance(panel, models.RowPanel) else ():
            inner.id_val = next(ids)


def _other_dashboards() -> builders.DashboardLink:
    """To the other dashboards, with the same cluster, namespace and time."""
    link = builders.DashboardLink("GPU dashboards").type(models.DashboardLinkType.DASHBOARDS)
    return link.tags([_TAG]).as_dropdown(True).include_vars(True).keep_time(True)


class _Mark(models.AnnotationQuery):
    """An annotation with the fields of Prometheus, which the SDK's type does not have."""

    def __init__(self, title: str, text: str, **more: Any) -> None:
        super().__init__(**more)
        self._texts = {"titleFormat": title, "textFormat": text, "step": "60s"}

    def to_json(self) -> dict[str, object]:
        return super().to_json() | self._texts


class _Scaled(builders.AnnotationQuery):
    """Marks of the times at which HPAs changed their replicas."""

    def __init__(self, way: str, sign: str, color: str) -> None:
        series = (
            "max by (namespace, horizontalpodautoscaler) "
            '(kube_horizontalpodautoscaler_status_desired_replicas{namespace=~"$namespace"}'
        )
        self._internal = _Mark(
            "{{namespace}}/{{horizontalpodautoscaler}}",
            f"scales {way}",
            name=f"Scale {way}",
            datasource=DATASOURCE,
            icon_color=color,
            expr=select_cluster(f"{series}) {sign} {series} offset 1m)"),
        )


def _variables() -> dict[str, Builder[models.VariableModel]]:
    """Return name -> variable. A dashboard has those that its queries use."""
    targets = 'kube_horizontalpodautoscaler_info{namespace=~"$namespace"}, scaletargetref_name'
    metric = "(?i)(s[0-9]+-)?(gpu|inference|dcgm)_.*"
    return {
        "datasource": builders.DatasourceVariable("datasource")
        .label("Prometheus")
        .type("prometheus"),
        "cluster": _single_choice("cluster", "Cluster", "label_values(gma_build_info, cluster)"),
        "namespace": _multiple_choice(
            "namespace", "Namespace", f"label_values({HOLDERS}, namespace)"
        ),
        "workload": _multiple_choice(
            "workload", "Workload with an HPA", f"label_values({targets})"
        ),
        "node": _multiple_choice("node", "Node", f"label_values({NODES})"),
        "metric": builders.TextBoxVariable("metric")
        .label("Metrics of HPAs")
        .description("A regular expression that matches the metric names in HPAs on GPUs.")
        .default_value(metric)
        .current(models.VariableOption(True, metric, metric)),
    }


def _single_choice(name: str, label: str, query: str) -> builders.QueryVariable:
    """Return a choice of one value."""
    request: dict[str, object] = {"query": query, "refId": f"variable-{name}"}
    variable = builders.QueryVariable(name).label(label).query(request).datasource(DATASOURCE)
    return variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(
        models.VariableSort.ALPHABETICAL_ASC
    )


def _multiple_choice(name: str, label: str, query: str) -> builders.QueryVariable:
    """Return a choice of any values, at first all."""
    variable = (
        _single_choice(name, label, select_cluster(query))
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )
    return variable.current(models.VariableOption(True, "All", "$__all"))
