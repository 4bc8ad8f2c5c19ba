"""The dashboards: models of Grafana's SDK, whose every query has an answer."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from charts.generate.dashboard import BOARDS, COLUMNS, dashboard, list_panels
from charts.generate.dashboard.panel import select_cluster
from tests.charts import clusterpages
from tests.charts.clusterpages import Scaled
from tests.charts.conftest import PODS, Monitored, until

pytestmark = pytest.mark.timeout(900)

FILES = Path(__file__).parents[2] / "charts/gpu-metrics-adapter/files"
MODELS = {name: dashboard(name) for name in BOARDS}
PANELS = [panel for model in MODELS.values() for panel in list_panels(model)]
VARIABLES = {row["name"]: row for model in MODELS.values() for row in model["templating"]["list"]}
every_board = pytest.mark.parametrize("board", BOARDS)
CHOICES = {
    "everything": {"namespace": ".*", "workload": ".*", "node": ".*"},
    "one workload": {"namespace": "(ml|team)", "workload": "llm", "node": "(gpu-a|gpu-b)"},
}
OPTIONAL = {"GPU_I_PROFILE", "GPU_I_ID"}
"""Labels in legends that not every series has."""


def asked(expr: str, chosen: dict[str, str], cluster: str = "") -> str:
    """A query as Grafana sends it."""
    values = {**chosen, "cluster": cluster}
    values["metric"] = VARIABLES["metric"]["query"]
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

    answered = itertools.count(10, 10)

    def whole() -> bool:
        monitored.ask()
        monitored.pages["/others"] = clusterpages.others(answered=next(answered))
        waiting[:] = [row for row in waiting if not _answered(monitored, *row[1:], choice)]
        return not waiting

    until(whole, waiting)
    assert waiting == []


def _answered(monitored: Monitored, expr: str, legend: str, choice: str) -> bool:
    rows = monitored.query(asked(expr, CHOICES[choice]))
    labels = set(re.findall(r"{{(\w+)}}", legend)) - OPTIONAL
    present = [row["metric"] for row in rows if not math.isnan(float(row["value"][1]))]
    return any(labels <= row.keys() for row in present)


def test_pods_are_named_in_whichever_way_the_exporter_is_scraped(monitored: Monitored) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == "Utilization by pod")
    expr = asked(panel["targets"][0]["expr"], CHOICES["everything"])
    expected = {("ml", pod) for pod in PODS}

    def named() -> set[tuple[str, str]]:
        series = [row["metric"] for row in monitored.query(expr)]
        return {(labels["namespace"], labels["pod"]) for labels in series}

    until(lambda: named() >= expected, f"the pods {expected}")
    assert named() == expected


def test_every_query_is_about_the_chosen_cluster(monitored: Monitored) -> None:
    """Nothing here has a label `cluster`, so nothing is of another one."""
    for title, expr, _ in targets():
        assert monitored.query(asked(expr, CHOICES["everything"], "elsewhere")) == [], title
    assert select_cluster('a(gma_x) + by (gma) kube_y{z="gma_z"}') == (
        'a(gma_x{cluster="$cluster"}) + by (gma) kube_y{cluster="$cluster", z="gma_z"}'
    )
    assert select_cluster("vllm_omni:num_requests_waiting") == (
        'vllm_omni:num_requests_waiting{cluster="$cluster"}'
    )


def test_every_inference_server_has_its_queue(monitored: Monitored) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == "Requests waiting")
    expr = asked(panel["targets"][0]["expr"], CHOICES["everything"])

    def queues() -> dict[str, float]:
        return {row["metric"]["pod"]: float(row["value"][1]) for row in monitored.query(expr)}

    until(lambda: len(queues()) == len(clusterpages.SERVERS), "queues")
    assert queues() == {
        pod: next(iter(rows.values())) for pod, rows in clusterpages.SERVERS.items()
    }


def test_the_verdict_is_the_worst_of_its_parts(monitored: Monitored) -> None:
    """A pod waits, so it is 1; without kube-state-metrics there is none."""
    (panel,) = (panel for panel in PANELS if panel["title"] == "Verdict")
    expr = asked(panel["targets"][0]["expr"], CHOICES["everything"])
    until(lambda: [row["value"][1] for row in monitored.query(expr)] == ["1"], "a verdict")
    blind = expr.replace("kube_horizontalpodautoscaler", "kube_nothing")
    assert monitored.query(blind) == []


_STUCK = 'condition="ScalingActive",status="false"}'


@pytest.mark.parametrize(
    ("scaled", "stuck", "state"),
    [
        (Scaled("ml", "llm", 8, 0, 0, 0), True, "at zero"),
        (Scaled("ml", "llm", 8, 2, 2), True, "stuck: no value"),
        (Scaled("ml", "llm", 8, 8, 8), False, "overloaded at its maximum"),
        (Scaled("ml", "llm", 8, 4, 4), False, "overloaded"),
        (Scaled("ml", "llm", 8, 2, 3), False, "scales out"),
        (Scaled("ml", "llm", 8, 3, 2, 30), False, "scales in"),
        (Scaled("ml", "llm", 8, 3, 3, 66), False, "healthy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_timeline_says_why_an_hpa_does_not_scale(
    scaled: Scaled, stuck: bool, state: str, monitored: Monitored
) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == "State of each HPA")
    (words,) = panel["fieldConfig"]["defaults"]["mappings"]
    expr = asked(panel["targets"][0]["expr"], CHOICES["everything"])
    page = clusterpages.kube_state_metrics([scaled])

    def found() -> list[str]:
        return [words["options"][row["value"][1]]["text"] for row in monitored.query(expr)]

    before = monitored.pages["/ksm"]
    monitored.pages["/ksm"] = page.replace(f"{_STUCK} 0", f"{_STUCK} 1") if stuck else page
    try:
        until(lambda: found() == [state], state)
    finally:
        monitored.pages["/ksm"] = before


def test_changes_of_replicas_are_marked(monitored: Monitored) -> None:
    for model in MODELS.values():
        for mark in model["annotations"]["list"]:
            whole = asked(mark["expr"], CHOICES["everything"])
            before, _, after = re.split(r" ([<>]) ", whole)
            assert after == before.removesuffix(")") + " offset 1m)"
            until(partial(_asked, monitored, before), mark["name"])
            # Nothing has changed here.
            assert monitored.query(whole) == []


def test_every_variable_has_values(monitored: Monitored) -> None:
    for row in VARIABLES.values():
        # Without a label, the choice of a cluster is empty.
        if row["type"] != "query" or row["name"] == "cluster":
            continue
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", row["query"]["query"])
        assert match is not None, row["query"]
        series, label = match.groups()
        expr = f"count by ({label}) ({asked(series, CHOICES['everything'])})"
        until(partial(_asked, monitored, expr), f"values of {expr}")


def _asked(monitored: Monitored, expr: str) -> bool:
    return bool(monitored.query(expr))


@every_board
def test_the_chart_carries_it_as_it_is(board: str) -> None:
    file = FILES / f"dashboard-{board}.json"
    assert json.loads(file.read_text(encoding="utf-8")) == MODELS[board]
    assert file.stat().st_size < 200_000, "kubectl apply keeps a copy of up to 256 KiB"


@every_board
def test_it_is_a_model_of_grafanas_sdk(board: str) -> None:
    """The SDK's types keep every field that they know, so a field that is lost is not one."""
    register_default_plugins()
    model = MODELS[board]
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(model)))
    # Prometheus's own fields of an annotation.
    own = {"titleFormat", "textFormat", "step"}
    assert {path.rpartition(".")[2] for path in _lost(model, read)} <= own


def test_what_the_sdk_does_not_know_is_found() -> None:
    register_default_plugins()
    panel = {"type": "table", "options": {"showHeader": True, "showHeads": True}}
    model = {"title": "a", "panels": [panel], "uids": "b"}
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(model)))
    assert list(_lost(model, read)) == [".panels.0.options.showHeads", ".uids"]


def _lost(wanted: Any, read: Any, path: str = "") -> Iterator[str]:
    """The places of ``wanted`` that ``read`` does not have, or has otherwise."""
    if isinstance(wanted, list) and isinstance(read, list) and len(wanted) == len(read):
        wanted, read = dict(enumerate(wanted)), dict(enumerate(read))
    if not isinstance(wanted, dict) or not isinstance(read, dict):
        yield from [path] if wanted != read else ()
        return
    for name, value in wanted.items():
        yield from _lost(value, read.get(name), f"{path}.{name}")


@every_board
def test_it_has_the_variables_that_its_queries_use(board: str) -> None:
    model = MODELS[board]
    names = {row["name"] for row in model["templating"]["list"]}
    texts = json.dumps([*list_panels(model), model["annotations"]])
    asked_for = set(re.findall(r"\$\{?([a-z]+)", texts))
    assert names == asked_for | {"datasource", "cluster"}


def test_each_links_to_the_others() -> None:
    for model in MODELS.values():
        (link,) = model["links"]
        assert all(set(link["tags"]) <= set(other["tags"]) for other in MODELS.values())


@pytest.mark.parametrize("field", ["uid", "title", "description"])
def test_no_two_dashboards_are_the_same(field: str) -> None:
    values = {model[field] for model in MODELS.values()}
    assert len(values) == len(MODELS)
    assert all(0 < len(value) <= 40 for value in values)


def test_each_answers_one_question() -> None:
    assert all(model["description"].endswith("?") for model in MODELS.values())


def test_panels_of_a_dashboard_have_titles_of_their_own() -> None:
    for name, model in MODELS.items():
        titles = [panel["title"] for panel in list_panels(model)]
        assert len(set(titles)) == len(titles), name


@every_board
def test_panels_have_ids_of_their_own_and_do_not_overlap(board: str) -> None:
    model = MODELS[board]
    rows = [panel for panel in model["panels"] if panel["type"] == "row"]
    ids = [panel["id"] for panel in (*rows, *list_panels(model))]
    assert len(ids) == len(set(ids))
    for row in rows:
        assert row["collapsed"] is bool(row["panels"])
    _check_places([*rows, *list_panels(model)])


def _check_places(panels: list[dict[str, Any]]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
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
