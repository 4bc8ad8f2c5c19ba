"""`top` without a terminal: one table, as kubectl top prints it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapter.answers.keda.manifest import SCALEDOBJECTS
from adapter.answers.view.gpus import GPUS
from adapter.tools.client.errors import VIEW
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.top.cluster import HPAS, serve

OVERVIEW = """\
1 of 3 HPAs is stuck, 1 HPA is overloaded, 1 pod has no value, 1 pod waits for a node, 1 GPU \
is not measured, 1 GPU is idle, 1 GPU runs without a pod.

HPAs that need attention
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as (server, file):
        serve(server)
        yield server, file


def top(lab: tuple[ApiServer, Path], *arguments: str) -> Ended:
    return invoke("top", *arguments, "--kubeconfig", str(lab[1]))


def first_cells(ended: Ended) -> list[str]:
    assert ended.code == 0
    return [line.split()[0] for line in ended.output.splitlines()]


def test_a_node_that_its_autoscaler_cannot_remove_says_why(lab: tuple[ApiServer, Path]) -> None:
    moment = datetime.fromtimestamp(time.time() - 60, UTC).isoformat()
    lab[0].answers["/api/v1/namespaces/default/events"] = [
        {
            "metadata": {"name": "n2.1"},
            "involvedObject": {"kind": "Node", "name": "n2"},
            "reason": "DisruptionBlocked",
            "message": "Pdb prevents pod evictions (PodDisruptionBudget=[chat/llm])",
            "lastTimestamp": moment,
        }
    ]
    rows = {
        row["name"]: row["why"]
        for row in json.loads(top(lab, "nodes", "-o", "json").output)["rows"]
    }
    assert rows["n1"] is None
    assert rows["n2"].startswith("Karpenter cannot remove it: Pdb prevents pod evictions")
    assert "Karpenter cannot remove it" in top(lab).output
    events = forbidden("jane", "list", "events", "", "default")
    lab[0].answers["/api/v1/namespaces/default/events"] = events
    ended = top(lab, "nodes")
    assert ended.code == 2
    assert "may not list events" in ended.output


def test_the_overview_begins_with_the_verdict(lab: tuple[ApiServer, Path]) -> None:
    ended = top(lab)
    assert (ended.code, ended.output[: len(OVERVIEW)]) == (0, OVERVIEW)
    assert "  chat        llm    Deployment/llm" in ended.output
    assert "Nodes with idle GPUs\n  NAME   POOL" in ended.output


@pytest.mark.parametrize(
    ("arguments", "cells"),
    [
        (("gpus",), ["NAME", "n1.gpu0", "n1.gpu1", "n2.gpu9", "n2.gpu0", "n2.gpu10"]),
        (("pods",), ["NAME", "llm-7f9", "llm-a11", "embed-0", "llm-x2k"]),
        (("pods", "-A"), ["NAMESPACE", "chat", "chat", "chat", "chat", "research"]),
        (("pods", "-n", "chat", "--no-headers"), ["llm-7f9", "llm-a11", "embed-0", "llm-x2k"]),
        (("workloads",), ["NAME", "deployment.llm", "deployment.embed"]),
        (("hpas",), ["NAME", "llm", "embed"]),
        (("hpa",), ["NAME", "llm", "embed"]),
        (("nodes", "--sort-by", "gpus"), ["NAME", "n2", "n1"]),
        (("nodes", "--sort-by", "NAME", "--reverse"), ["NAME", "n2", "n1"]),
    ],
)
def test_a_word_names_a_table(
    arguments: tuple[str, ...], cells: list[str], lab: tuple[ApiServer, Path]
) -> None:
    assert first_cells(top(lab, *arguments, "--once")) == cells


@pytest.mark.parametrize("view", ["gpus", "node", "pools"])
def test_a_table_of_the_cluster_refuses_a_namespace(view: str, lab: tuple[ApiServer, Path]) -> None:
    for ended in (
        top(lab, view, "-n", "chat"),
        invoke("-n", "chat", "top", view, "--kubeconfig", str(lab[1])),
    ):
        assert ended.code == 2
        assert "-n means nothing to `top " in ended.output
    assert lab[0].asked == []


@pytest.mark.parametrize(
    ("view", "text"),
    [
        (("gpus",), "No GPU matches -l app=none.\n"),
        (("pods", "-A"), "No GPU pod matches -l app=none.\n"),
        (("workloads", "-A"), "No workload matches -l app=none.\n"),
        (("hpas", "-A"), "No HPA matches -l app=none.\n"),
        (("nodes",), "No node matches -l app=none.\n"),
    ],
)
def test_a_selector_without_a_match_is_named(
    view: tuple[str, ...], text: str, lab: tuple[ApiServer, Path]
) -> None:
    ended = top(lab, *view, "-l", "app=none")
    assert (ended.code, ended.output) == (0, text)


def test_a_namespace_that_does_not_exist_is_named(lab: tuple[ApiServer, Path]) -> None:
    lab[0].answers["/api/v1/namespaces"] = [{"metadata": {"name": "chat"}}]
    lab[0].answers["/apis/autoscaling/v2/namespaces/chta/horizontalpodautoscalers"] = []
    ended = top(lab, "hpas", "-n", "chta")
    assert ended.code == 2
    assert "namespace 'chta' does not exist: did you mean chat?" in ended.output


def test_the_overview_names_a_selector_without_a_match(lab: tuple[ApiServer, Path]) -> None:
    ended = top(lab, "-l", "app=none")
    assert ended.output.startswith("No object matches -l app=none.\n")
    assert "  No GPU pod matches -l app=none.\n" in ended.output
    assert "No pod holds a GPU" not in ended.output


def test_a_missing_value_is_a_dash_beside_its_reason(lab: tuple[ApiServer, Path]) -> None:
    line = top(lab, "pods").output.splitlines()[-1]
    assert line.split() == ["llm-x2k", *["-"] * 7, "exporter_names_no_pod"]


def test_wide_has_every_column(lab: tuple[ApiServer, Path]) -> None:
    header = top(lab, "gpus", "-o", "wide").output.splitlines()[0].split()
    assert header == ["NAME", *(column.name.upper() for column in GPUS.columns)]


def test_only_what_a_table_needs_is_read(lab: tuple[ApiServer, Path]) -> None:
    server, _ = lab
    top(lab, "pods", "-l", "app=llm")
    request, *others = server.asked
    # Without a row, whether the namespace exists.
    assert others == ["GET /api/v1/namespaces/chat"]
    assert request.startswith(f"GET {VIEW}/namespaces/chat/gpupods?limit=500&labelSelector=app=llm")


def test_json_has_the_texts_of_the_table_and_null_for_a_missing_value(
    lab: tuple[ApiServer, Path],
) -> None:
    pods = json.loads(top(lab, "pods", "-o", "json").output)
    assert (pods["view"], pods["namespace"], pods["problems"]) == ("pods", "chat", [])
    row = pods["rows"][-1]
    assert (row["util"], row["whyNot"]) == (None, "exporter_names_no_pod")
    hpas = json.loads(top(lab, "hpas", "-A", "-o", "json").output)
    assert [row["decision"] for row in hpas["rows"]] == ["stuck", "overloaded", "healthy"]
    overview = json.loads(top(lab, "-o", "json").output)
    assert overview["verdict"]["pods"] == {
        "total": 5,
        "measured": 3,
        "unmeasured": 1,
        "waiting": 1,
    }
    assert len(overview["parts"]) == 5


def test_a_missing_right_is_one_line_with_the_grant_and_the_rest_goes_on(
    lab: tuple[ApiServer, Path],
) -> None:
    server, _ = lab
    path = f"{HPAS}/horizontalpodautoscalers"
    server.answers[path] = forbidden("jane", "list", "horizontalpodautoscalers", "autoscaling", "")
    ended = top(lab)
    first, *rest = ended.output.splitlines()
    assert ended.code == 2
    assert first.startswith("gpu-metrics-adapter: jane may not list horizontalpodautoscalers")
    assert "kubectl create clusterrole" in first
    assert rest[0].startswith("1 pod has no value")
    assert any(line.startswith("  n1.gpu0") for line in rest)
    problems = json.loads(top(lab, "-o", "json").output.partition("\n")[2])["problems"]
    assert len(problems) == 1
    alone = top(lab, "hpas", "-A")
    assert (alone.code, len(alone.output.splitlines())) == (2, 1)


def test_a_scaledobject_without_an_hpa_is_a_row_without_invented_numbers(
    lab: tuple[ApiServer, Path],
) -> None:
    server, _ = lab
    conditions = [{"type": "Ready", "status": "False", "reason": "Bad", "message": "no target"}]
    scaled = {
        "metadata": {"namespace": "chat", "name": "queue"},
        "spec": {"scaleTargetRef": {"name": "queue"}, "triggers": []},
        "status": {"conditions": conditions},
    }
    server.answers[f"{SCALEDOBJECTS}/scaledobjects"] = [scaled]
    ended = top(lab, "hpas", "-A", "-o", "json")
    assert ended.code == 0
    (row,) = [row for row in json.loads(ended.output)["rows"] if row["kind"] == "ScaledObject"]
    assert (row["name"], row["level"], row["state"]) == ("scaledobject/queue", "bad", "stuck")
    assert (row["current"], row["desired"], row["metrics"]) == (None, None, [])
    line = next(text for text in top(lab, "hpas", "-A").output.splitlines() if "queue" in text)
    assert "stuck: not ready, and has made no HPA: Bad: no target" in line


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("pods", "--sort-by", "load"), "--sort-by load: this table has the columns name, util,"),
        (("pods", "-A", "-n", "chat"), "-A and -n exclude each other"),
        (("--sort-by", "util"), "the overview has several tables"),
        (("idle",), "is not one of 'gpus', 'pods', 'workloads', 'hpas', 'nodes'"),
    ],
)
def test_a_wrong_word_or_option_names_the_fix(
    arguments: tuple[str, ...], text: str, lab: tuple[ApiServer, Path]
) -> None:
    ended = top(lab, *arguments)
    assert ended.code == 2
    assert text in ended.output


def test_an_empty_table_says_so_and_prints_nothing_without_headers(
    lab: tuple[ApiServer, Path],
) -> None:
    serve(lab[0], [], [], [], [])
    assert top(lab, "gpus").output == "No exporter reports a GPU.\n"
    assert top(lab, "gpus", "--no-headers").output == ""
    nothing = "No pod holds a GPU."
    assert top(lab, "pods", "-A").output == f"{nothing}\n"
    place = "Only namespace chat was read; -A reads all."
    assert top(lab, "pods").output == f"{nothing} {place}\n"
    assert top(lab).output.startswith("There is no GPU and no GPU pod and no HPA.\n")


def test_an_older_server_without_a_column_is_one_line(lab: tuple[ApiServer, Path]) -> None:
    lab[0].tables[f"{VIEW}/gpus"] = (("Name", "Node"), [])
    ended = top(lab, "gpus")
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert "gpus has no column Model, Util, Pods, Idle-Since, Util-Percent" in line
    assert "install the same release of both" in line
