"""Findings about one metric of an HPA agree: their fixes, applied together, leave none of them."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.seen.objects import external, hpa, pods, resource

SET: re.Pattern[str] = re.compile(r"set (?P<path>spec\S+) to (?P<value>\{.*\}|\"[^\"]+\")")
SUCH_AS: re.Pattern[str] = re.compile(
    r'set (?P<path>spec\S+) to a number that the metric exceeds, such as (?P<value>"[^"]+")'
)
RATIO = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
SHARE = {"type": "Utilization", "averageUtilization": 80}


def findings(folder: Path, manifest: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The id, message and fix of every finding."""
    (folder / "a.json").write_text(json.dumps(manifest))
    report = json.loads(invoke("doctor", "-f", str(folder), "-o", "json").output)
    return [
        (check["id"], row["message"], row["fix"])
        for check in report["checks"]
        for row in check.get("findings") or ()
    ]


def apply(manifest: dict[str, Any], fix: str) -> None:
    """Do what a fix says about one field; others are words for a person."""
    match = SUCH_AS.search(fix) or SET.search(fix)
    if match is None:
        return
    *parts, last = re.findall(r"[A-Za-z]+|\d+", match["path"])
    at: Any = manifest
    for part in parts:
        at = at[int(part)] if part.isdigit() else at[part]
    at[last] = yaml.safe_load(match["value"])


@pytest.mark.parametrize(
    ("row", "target"),
    [
        (pods("DCGM_FI_DEV_GPU_UTIL", SHARE), {"averageValue": "80"}),
        (pods(RATIO, SHARE), {"averageValue": "0.8"}),
        (external("gpu_utilization", SHARE), {"averageValue": "80"}),
        (external("gpu_utilization", SHARE, app="a", aggregate="mean"), {"value": "80"}),
        (
            pods("gpu_utilization", {"type": "AverageValue", "averageValue": "80%"}),
            {"averageValue": "80"},
        ),
        (pods("gpu_utilization", {"type": "Value", "value": "65"}), {"averageValue": "65"}),
        (pods(RATIO, {"type": "Value", "value": "70"}), {"averageValue": "700m"}),
        (pods("gpu_utilization", {"type": "Value", "value": "0.7"}), {"averageValue": "70"}),
        (
            pods("gpu_memory_used_bytes", {"type": "Value", "value": "40"}),
            {"averageValue": "40Gi"},
        ),
        (
            pods(RATIO, {"type": "AverageValue", "averageValue": "70", "value": "700m"}),
            {"averageValue": "700m", "value": "700m"},
        ),
    ],
)
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_the_fixes_of_one_row_are_applied_together(
    row: dict[str, Any], target: dict[str, str], backwards: bool, tmp_path: Path
) -> None:
    manifest = deepcopy(hpa(row))
    rows = findings(tmp_path, manifest)
    assert rows
    for _, _, fix in rows[::-1] if backwards else rows:
        apply(manifest, fix)
    assert findings(tmp_path, manifest) == []
    (metric,) = manifest["spec"]["metrics"]
    kept = dict(metric[metric["type"].lower()]["target"])
    assert kept.pop("type") in ("AverageValue", "Value")
    assert kept == target


@pytest.mark.parametrize("number", [SHARE, {"type": "Utilization"}, {"type": "Value"}])
def test_no_number_is_invented(number: dict[str, Any], tmp_path: Path) -> None:
    """80 % of bytes is not a number of bytes, and neither is an empty text."""
    rows = findings(tmp_path, hpa(pods("gpu_memory_used_bytes", number)))
    (fix,) = [fix for identity, _, fix in rows if identity == "GMA402"]
    assert fix == (
        "set spec.metrics[0].pods.target to type AverageValue, with averageValue in the unit of "
        "gpu_memory_used_bytes"
    )


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("gpu", "gpu_utilization"),
        ("gpu-utilization", "gpu_utilization"),
        ("gpu_utilization", "gpu_utilization"),
        ("nvidia.com/gpu", "gpu_utilization"),
        ("gpu-memory-utilization", "gpu_memory_utilization"),
    ],
)
@pytest.mark.parametrize("container", ["", "server"])
def test_a_gpu_is_not_a_resource_of_the_resource_api(
    name: str, instead: str, container: str, tmp_path: Path
) -> None:
    of = resource(name, "ContainerResource", container=container) if container else resource(name)
    rows = {identity: (text, fix) for identity, text, fix in findings(tmp_path, hpa(of))}
    assert rows["GMA454"] == (
        f"asks metrics.k8s.io for {name}, which has cpu and memory only",
        f"replace spec.metrics[0] by a Pods metric, such as {instead} with averageValue 80",
    )
    assert set(rows) <= {"GMA409", "GMA454"}


def test_another_resource_is_not_replaced_by_a_gpu(tmp_path: Path) -> None:
    ((identity, _, fix),) = findings(tmp_path, hpa(resource("ephemeral-storage")))
    assert identity == "GMA454"
    assert fix == "name cpu or memory in spec.metrics[0].resource.name, or use a Pods metric"
    assert findings(tmp_path, hpa(resource("cpu"), resource("memory"))) == []


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (
            {"matchLabels": {"modelName": "NVIDIA A100-SXM4-80GB"}},
            "matchLabels.modelName is 'NVIDIA A100-SXM4-80GB': a valid label must be",
        ),
        ({"matchLabels": {"app": "a,b"}}, "matchLabels.app is 'a,b': a valid label"),
        ({"matchLabels": {"a b": "c"}}, "matchLabels has 'a b': name part must"),
        (
            {"matchExpressions": [{"key": "app", "operator": "Equals", "values": ["a"]}]},
            "matchExpressions[0].operator is 'Equals': use In, NotIn, Exists or DoesNotExist",
        ),
        (
            {"matchExpressions": [{"key": "app", "operator": "In"}]},
            "matchExpressions[0].values is empty: In needs a value",
        ),
        (
            {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]},
            "matchExpressions[0].values is set: Exists takes none",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["gpu_utilization", "queue_of_others"])
def test_a_selector_that_the_controller_refuses_is_found(
    selector: dict[str, Any], why: str, metric: str, tmp_path: Path
) -> None:
    row = external(metric, {"type": "AverageValue", "averageValue": "70"})
    row["external"]["metric"]["selector"] = selector
    ((identity, message, fix),) = findings(tmp_path, hpa(row))
    assert identity == "GMA414"
    assert f"spec.metrics[0].external.metric.selector is not valid: {why}" in message
    assert message.endswith(f"the HPA controller reads no {metric} (FailedGetExternalMetric)")
    assert fix == "correct spec.metrics[0].external.metric.selector"
    labels = selector.get("matchLabels", {})
    assert ("the adapter has model: NVIDIA-A100-SXM4-80GB" in message) is ("modelName" in labels)
