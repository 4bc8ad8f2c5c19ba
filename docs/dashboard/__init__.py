"""The Grafana dashboard of the chart, as tables of panels.

``make docs`` writes charts/gpu-metrics-adapter/files/dashboard.json from it, in the classic
model of Grafana's documentation (dashboard JSON model).
"""

from __future__ import annotations

import json
from typing import Final

from docs.dashboard.exporter import HOLDERS, NODES
from docs.dashboard.fleet import FLEET
from docs.dashboard.hpa import HPA
from docs.dashboard.nodepool import NODEPOOL
from docs.dashboard.panel import DATASOURCE, Json, laid_out
from docs.dashboard.process import PROCESS
from docs.dashboard.quality import QUALITY
from docs.dashboard.workloads import WORKLOADS

ROWS: Final = (FLEET, WORKLOADS, QUALITY, HPA, NODEPOOL, PROCESS)
SCHEMA: Final = 39
"""The schema of Grafana 10.4 and 11. Later versions migrate it when they load it."""


def page() -> str:
    """Return the JSON as the chart contains it."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


def dashboard() -> Json:
    """Return the complete model."""
    return {
        "id": None,
        "uid": "gpu-metrics-adapter",
        "title": "GPU metrics adapter",
        "description": "The load of GPUs, the values for HPAs, and the ordered nodes.",
        "tags": ["gpu", "kubernetes", "autoscaling"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "weekStart": "",
        "links": [],
        "annotations": {"list": []},
        "templating": {"list": [_datasource(), *_variables()]},
        "panels": list(laid_out(ROWS)),
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
    return [
        _query("namespace", "Namespace", f"label_values({HOLDERS}, namespace)"),
        _query("workload", "Workload with an HPA", f"label_values({targets})"),
        _query("node", "Node", f"label_values({NODES})"),
        {
            "name": "metric",
            "label": "Metrics of HPAs",
            "description": "A regular expression that matches the metric names in HPAs on GPUs.",
            "type": "textbox",
            "query": "(?i)(gpu|inference|dcgm)_.*",
            "current": {
                "selected": True,
                "text": "(?i)(gpu|inference|dcgm)_.*",
                "value": "(?i)(gpu|inference|dcgm)_.*",
            },
            "hide": 0,
            "options": [],
            "skipUrlSync": False,
        },
    ]


def _query(name: str, label: str, query: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"},
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "hide": 0,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }
