"""The Grafana dashboards of the chart, as tables of panels: one for users, one for operators.

``make docs`` writes charts/gpu-metrics-adapter/files/dashboard-*.json from them, in the classic
model of Grafana's documentation (dashboard JSON model). They can be imported as they are: the
Prometheus is a variable, so there is nothing to fill in at an import.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from charts.generate.dashboard.exporter import HOLDERS, NODES
from charts.generate.dashboard.fleet import FLEET
from charts.generate.dashboard.hpa import HPA
from charts.generate.dashboard.idle import IDLE
from charts.generate.dashboard.nodepool import NODEPOOL
from charts.generate.dashboard.panel import DATASOURCE, Json, Row, clustered, laid_out, shown
from charts.generate.dashboard.process import PROCESS
from charts.generate.dashboard.quality import QUALITY
from charts.generate.dashboard.requests import REQUESTS
from charts.generate.dashboard.servers import SERVERS
from charts.generate.dashboard.vendors import AMD, INTEL, MIG
from charts.generate.dashboard.verdict import VERDICT
from charts.generate.dashboard.workloads import WORKLOADS

SCHEMA: Final = 39
"""The schema of Grafana 10.4 and 11. Later versions migrate it when they load it."""
GRAFANA: Final = "10.4.0"
_PANELS: Final = {"stat": "Stat", "timeseries": "Time series"}
_TAG: Final = "gpu-metrics-adapter"
"""Of both; by it each links to the other."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard and its rows."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]


WORKLOADS_BOARD: Final = Dashboard(
    "gpu-workloads",
    "GPU workloads",
    "For users: the load of GPUs, the HPAs on it, queues of inference servers, and idle GPUs.",
    (VERDICT, HPA, WORKLOADS, SERVERS, IDLE, FLEET, MIG, AMD, INTEL),
)
OPERATORS_BOARD: Final = Dashboard(
    "gpu-metrics-adapter",
    "GPU metrics adapter",
    "For operators: whether the values are complete and fresh, the requests for them, the plan of "
    "nodepool, and the processes.",
    (QUALITY, REQUESTS, NODEPOOL, PROCESS),
)
BOARDS: Final = {"workloads": WORKLOADS_BOARD, "adapter": OPERATORS_BOARD}
"""Name in the chart -> dashboard."""


def pages() -> dict[str, partial[str]]:
    """Return the files of the chart and what writes each."""
    return {f"files/dashboard-{name}.json": partial(page, board) for name, board in BOARDS.items()}


def page(board: Dashboard) -> str:
    """Return the JSON as the chart contains it."""
    return json.dumps(dashboard(board), indent=1, ensure_ascii=False) + "\n"


def dashboard(board: Dashboard) -> Json:
    """Return the complete model."""
    model: Json = {
        "__inputs": [],
        "__elements": {},
        "id": None,
        "uid": board.uid,
        "title": board.title,
        "description": board.description,
        "tags": [_TAG, "gpu", "kubernetes", "autoscaling"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "weekStart": "",
        "links": [_link()],
        "annotations": {"list": [_scaled("out", ">", "orange"), _scaled("in", "<", "blue")]},
        "templating": {"list": [_datasource(), *_variables()]},
        "panels": list(laid_out(board.rows)),
    }
    return model | {"__requires": list(_requires(model))}


def _requires(model: Json) -> list[Json]:
    kinds = sorted({panel["type"] for panel in shown(model)})
    rows = [("grafana", "grafana", "Grafana", GRAFANA)]
    rows += [("datasource", "prometheus", "Prometheus", "1.0.0")]
    rows += [("panel", kind, _PANELS[kind], "") for kind in kinds]
    return [
        {"type": kind, "id": name, "name": title, "version": version}
        for kind, name, title, version in rows
    ]


def _link() -> Json:
    """To the other dashboard, with the same cluster, namespace and time."""
    return {
        "type": "dashboards",
        "tags": [_TAG],
        "title": "GPU dashboards",
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _scaled(way: str, sign: str, color: str) -> Json:
    """Marks of the times at which HPAs changed their replicas."""
    series = (
        "max by (namespace, horizontalpodautoscaler) "
        '(kube_horizontalpodautoscaler_status_desired_replicas{namespace=~"$namespace"}'
    )
    expr = f"{series}) {sign} {series} offset 1m)"
    return {
        "name": f"Scale {way}",
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": clustered(expr),
        "step": "60s",
        "titleFormat": "{{namespace}}/{{horizontalpodautoscaler}}",
        "textFormat": f"scales {way}",
        "tagKeys": "",
        "useValueForTime": False,
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }


def _variables() -> list[Json]:
    targets = 'kube_horizontalpodautoscaler_info{namespace=~"$namespace"}, scaletargetref_name'
    cluster = _query("cluster", "Cluster", "label_values(gma_build_info, cluster)", several=False)
    return [
        cluster,
        _query("namespace", "Namespace", clustered(f"label_values({HOLDERS}, namespace)")),
        _query("workload", "Workload with an HPA", clustered(f"label_values({targets})")),
        _query("node", "Node", clustered(f"label_values({NODES})")),
        _text(
            "metric",
            "Metrics of HPAs",
            "A regular expression that matches the metric names in HPAs on GPUs.",
            "(?i)(s[0-9]+-)?(gpu|inference|dcgm)_.*",
        ),
        _text("price", "Price of a GPU-hour", "In your currency; 1 counts GPU-hours.", "1"),
    ]


def _text(name: str, label: str, description: str, default: str) -> Json:
    return {
        "name": name,
        "label": label,
        "description": description,
        "type": "textbox",
        "query": default,
        "current": {"selected": True, "text": default, "value": default},
        "hide": 0,
        "options": [],
        "skipUrlSync": False,
    }


def _query(name: str, label: str, query: str, *, several: bool = True) -> Json:
    everything = {"selected": True, "text": "All", "value": "$__all"}
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"},
        "current": everything if several else {},
        "hide": 0,
        "includeAll": several,
        "allValue": ".*" if several else None,
        "multi": several,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }
