"""``doctor -f``: manifests in files, without a cluster; bad input is one line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from adapter.tools.doctor import manifests
from tests.adapter.commandline import invoke

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 8
  metrics:
  - type: Pods
    pods: {metric: {name: %s}, target: {type: AverageValue, averageValue: "70"}}
"""
GOOD = HPA % "gpu_utilization"
BAD = HPA % "gpu_utilisation"


def doctor(*arguments: str | Path) -> tuple[object, str]:
    ended = invoke("doctor", *map(str, arguments))
    assert "Traceback" not in ended.output
    return ended.code, ended.output


def test_good_manifests_end_with_0_and_bad_ones_with_1(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(BAD)
    code, output = doctor("-f", good)
    assert code == 0
    assert "0 errors, 0 warnings" in output
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert f"hpa chat/llm in {bad}: asks for 'gpu_utilisation'" in " ".join(output.split())
    assert "did you mean gpu_utilization?" in " ".join(output.split())
    assert "kubectl" not in output, "a file is fixed by an edit"


@pytest.mark.parametrize(
    "change",
    [("maxReplicas: 8", "behavior: {}"), ("maxReplicas: 8", "maxReplicas: many")],
    ids=["none", "text"],
)
def test_a_maximum_that_is_missing_is_not_taken_as_1(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace(*change))
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert "GMA409" in output
    assert "maxReplicas" in output
    assert "it never scales" not in output


def test_a_minimum_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        GOOD.replace("maxReplicas: 8", "maxReplicas: 8\n  minReplicas: some")
    )
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert "spec.minReplicas" in output


def test_json_has_every_finding_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(yaml.safe_load(BAD)))
    code, output = doctor("-f", tmp_path / "a.json", "-o", "json")
    report = json.loads(output)
    assert code == report["status"] == 1
    (row,) = [check for check in report["checks"] if check["status"] == "error"]
    assert row["id"] == "GMA401"
    assert row["docs"] == "docs/checks.md#gma401"
    assert str(tmp_path / "a.json") in row["findings"][0]["object"]


def test_a_list_and_objects_of_other_kinds(tmp_path: Path) -> None:
    rows = [yaml.safe_load(GOOD), {"apiVersion": "example.org/v1", "kind": "Widget"}]
    whole = {"apiVersion": "v1", "kind": "List", "items": rows}
    (tmp_path / "list.yaml").write_text(yaml.safe_dump(whole))
    code, output = doctor("-f", tmp_path / "list.yaml")
    assert code == 0
    assert "read 1 object from" in output
    assert "left out 1 of other kinds" in " ".join(output.split())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "not YAML"),
        ("\x00\x01", "not YAML"),
        ("- 1\n", "not a Kubernetes object"),
        ("kind: HorizontalPodAutoscaler\n", "autoscaling/v2"),
        (
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {metrics: 3}\n",
            "spec.metrics is not a list",
        ),
        ("kind: Deployment\nspec: {replicas: many}\n", "Deployment without a name"),
        ("kind: Deployment\nmetadata: [1]\n", "Deployment"),
        ("a: &a [*a]\n", "line 1: a value contains itself"),
        ("kind: Widget\n", "no manifest of a kind that a check looks at"),
        ("", "no manifest of a kind that a check looks at"),
    ],
)
def test_bad_input_is_one_line_that_names_the_file(
    tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    code, output = doctor("-f", file)
    assert code == 2
    (line,) = output.splitlines()
    assert line.startswith("gpu-metrics-adapter: nothing to check: ")
    assert str(file) in line
    assert words in line
    # Beside a good file it is a note, and the good one is checked.
    (tmp_path / "good.yaml").write_text(GOOD)
    code, output = doctor("-f", tmp_path)
    assert code == 0
    if "no manifest" not in words:
        assert f"note: {file}" in " ".join(output.split())


def test_missing_files_and_empty_folders_are_one_line(tmp_path: Path) -> None:
    code, output = doctor("-f", tmp_path / "none.yaml")
    assert (code, len(output.splitlines())) == (2, 1)
    assert "no such file or folder" in output
    code, output = doctor("-f", tmp_path)
    assert (code, len(output.splitlines())) == (2, 1)
    assert "no .yaml" in output


def test_a_large_file_and_many_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "MOST_BYTES", 1000)
    monkeypatch.setattr(manifests, "MOST_FILES", 2)
    (tmp_path / "a.yaml").write_text("#" * 2000)
    for name in ("b", "c", "d"):
        (tmp_path / f"{name}.yaml").write_text(GOOD.replace("llm", name))
    code, output = doctor("-f", tmp_path)
    text = " ".join(output.split())
    assert code == 0
    assert f"note: {tmp_path / 'a.yaml'}: larger than 1000 bytes, left out" in text
    assert "only the first 2 of 4 files were read" in text


def test_a_reason_is_explained_too() -> None:
    code, output = doctor("--explain", "server_unscrapable")
    assert code == 0
    assert "cannot scrape it" in " ".join(output.split())
    assert "annotations" in output
    code, output = doctor("--explain", "server_unscrapeable")
    assert (code, "did you mean server_unscrapable" in output) == (2, True)


def test_explain_and_list() -> None:
    code, output = doctor("--explain", "gma401")
    assert code == 0
    assert "docs/checks.md#gma401" in output
    code, output = doctor("--explain", "GMA999")
    assert (code, len(output.splitlines())) == (2, 1)
    code, output = doctor("--list")
    assert code == 0
    assert output.startswith("GMA001")


GROUPS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm, namespace: chat}
spec: {replicas: 2, leaderWorkerTemplate: {size: %s, workerTemplate: {spec: {containers: []}}}}
---
"""


@pytest.mark.parametrize(("size", "findings"), [(1, 0), (4, 1)])
def test_a_group_of_one_pod_is_its_leader(tmp_path: Path, size: int, findings: int) -> None:
    of_groups = GOOD.replace("apps/v1", "leaderworkerset.x-k8s.io/v1").replace(
        "kind: Deployment", "kind: LeaderWorkerSet"
    )
    (tmp_path / "a.yaml").write_text(GROUPS % size + of_groups)
    code, output = doctor("-f", tmp_path)
    assert code == findings
    fix = 'set spec.metrics[0].pods.metric.selector to {"matchLabels": {"aggregate": "mean"}}'
    assert (fix in " ".join(output.split())) is bool(findings)
