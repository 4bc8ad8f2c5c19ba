"""The dashboard: a model that Grafana's documentation allows, whose every query has an answer."""

from __future__ import annotations

import json
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from docs.dashboard import dashboard
from docs.dashboard.panel import COLUMNS
from tests.charts.conftest import PODS, Monitored, until

pytestmark = pytest.mark.timeout(900)

FILE = Path(__file__).parents[2] / "charts/gpu-metrics-adapter/files/dashboard.json"
MODEL = dashboard()
PANELS = [panel for panel in MODEL["panels"] if panel["type"] != "row"]
CHOICES = {
    "everything": {"namespace": ".*", "workload": ".*", "node": ".*"},
    "one workload": {"namespace": "(ml|team)", "workload": "llm", "node": "(gpu-a|gpu-b)"},
}
OPTIONAL = {"GPU_I_PROFILE"}
"""Labels in legends that not every series has."""
METRIC = next(row for row in MODEL["templating"]["list"] if row["name"] == "metric")["query"]


def asked(expr: str, chosen: dict[str, str]) -> str:
    """A query as Grafana sends it."""
    values = {**chosen, "metric": METRIC}
    for name, value in values.items():
        expr = expr.replace(f"${name}", value)
    expr = expr.replace("$__rate_interval", "1m")
    assert "$" not in expr.replace('"$1"', ""), expr
    return expr


def targets() -> list[tuple[str, str, str]]:
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in PANELS
        for target in panel["targets"]
    ]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_query_has_an_answer_whose_legend_can_be_written(
    choice: str, monitored: Monitored
) -> None:
    waiting = targets()

    def whole() -> bool:
        monitored.ask()
        waiting[:] = [row for row in waiting if not _answered(monitored, *row[1:], choice)]
        return not waiting

    until(whole, waiting)
    assert waiting == []


def _answered(monitored: Monitored, expr: str, legend: str, choice: str) -> bool:
    found = monitored.query(asked(expr, CHOICES[choice]))
    labels = set(re.findall(r"{{(\w+)}}", legend)) - OPTIONAL
    present = [row["metric"] for row in found if not math.isnan(float(row["value"][1]))]
    return any(labels <= row.keys() for row in present)


def test_pods_are_named_in_whichever_way_the_exporter_is_scraped(monitored: Monitored) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == "Utilization by pod")
    expr = asked(panel["targets"][0]["expr"], CHOICES["everything"])
    expected = {("ml", pod) for pod in PODS}

    def named() -> set[tuple[str, str]]:
        found = [row["metric"] for row in monitored.query(expr)]
        return {(labels["namespace"], labels["pod"]) for labels in found}

    until(lambda: named() >= expected, f"the pods {expected}")
    assert named() == expected


def test_every_variable_has_values(monitored: Monitored) -> None:
    for row in MODEL["templating"]["list"]:
        if row["type"] != "query":
            continue
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", row["definition"])
        assert found is not None, row["definition"]
        series, label = found.groups()
        expr = f"count by ({label}) ({asked(series, CHOICES['everything'])})"
        until(partial(_asked, monitored, expr), f"values of {expr}")


def _asked(monitored: Monitored, expr: str) -> bool:
    return bool(monitored.query(expr))


def test_the_chart_carries_it_as_it_is() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == MODEL
    assert FILE.stat().st_size < 1 << 20


def test_it_is_a_model_that_grafana_documents() -> None:
    """The fields of "Dashboard JSON model" in Grafana's documentation, classic model."""
    expected: dict[str, type | tuple[type, ...]] = {
        "id": type(None),
        "uid": str,
        "title": str,
        "tags": list,
        "timezone": str,
        "editable": bool,
        "graphTooltip": int,
        "panels": list,
        "time": dict,
        "timepicker": dict,
        "templating": dict,
        "annotations": dict,
        "refresh": str,
        "schemaVersion": int,
        "version": int,
        "links": list,
    }
    for name, kind in expected.items():
        assert isinstance(MODEL[name], kind), name
    assert len(MODEL["uid"]) <= 40
    names = [row["name"] for row in MODEL["templating"]["list"]]
    assert names == ["datasource", "namespace", "workload", "node", "metric"]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in MODEL["panels"]]
    assert len(ids) == len(set(ids))
    taken: dict[tuple[int, int], str] = {}
    for panel in MODEL["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert all(target["legendFormat"] for target in panel["targets"])
    assert panel["datasource"]["uid"] == "${datasource}"
    refs = [target["refId"] for target in panel["targets"]]
    assert len(refs) == len(set(refs))


def test_every_question_of_the_issue_has_its_row() -> None:
    rows = [panel["title"] for panel in MODEL["panels"] if panel["type"] == "row"]
    assert [row.partition(":")[0] for row in rows] == [
        "Fleet",
        "Workloads",
        "Data quality",
        "HPA view",
        "nodepool",
        "The adapter's processes",
    ]
