"""What doctor says of the PromQL of triggers, and that its fixes remove it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.runner import run
from tests.adapter.tools.doctor.clean import clean, hpa, metric, scaledobject

OWN = '{pod=~"llm-.*"}'
WAITING = f"sum(vllm:num_requests_waiting{OWN})"


def _findings(identity: str, metadata: dict[str, str], **more: Any) -> list[Finding]:
    facts = clean()
    asks = {"serverAddress": "http://prometheus:9090", "threshold": "70", **metadata}
    row = {"type": "prometheus", "metadata": asks} | more.pop("row", {})
    facts.scaledobjects = Fact([scaledobject(row, **{"minReplicaCount": 1} | more)])
    (result,) = run(facts, (identity,))
    return list(result.findings)


@pytest.mark.parametrize(
    ("query", "null", "fields"),
    [
        (WAITING, "true", {"ignoreNullValues"}),
        (f"{WAITING} or vector(0)", "true", {"query", "ignoreNullValues"}),
        (f"{WAITING} or vector(0)", "false", {"query"}),
        (f"{WAITING}\n  or on() vector(0)\n", "false", {"query"}),
    ],
)
def test_the_fix_of_an_answer_that_counts_as_0_removes_it(
    query: str, null: str, fields: set[str]
) -> None:
    """The finding stays until the query can be empty and KEDA does not count that as 0."""
    metadata = {"query": query, "ignoreNullValues": null}
    (finding,) = _findings("GMA429", metadata)
    rows = json.loads(shlex.split(finding.command)[-1])
    changes = {row["path"].rpartition("/")[2]: row["value"] for row in rows}
    assert changes.keys() == fields
    for field in fields:
        left = _findings("GMA429", metadata | {field: changes[field]})
        assert len(left) == len(fields) - 1
    assert _findings("GMA429", metadata | changes) == []


def test_a_constant_inside_of_a_query_is_named_and_not_cut() -> None:
    metadata = {"query": f"({WAITING} or vector(0)) / 2", "ignoreNullValues": "false"}
    (finding,) = _findings("GMA429", metadata)
    assert "must be empty while its series do not exist" in finding.advice
    assert "edit" in finding.command


@pytest.mark.parametrize("query", [f"{WAITING} or sum(gateway_queue)", "sum(other) or vector(0)"])
def test_other_queries_may_have_a_value_of_their_own(query: str) -> None:
    assert _findings("GMA429", {"query": query, "ignoreNullValues": "false"}) == []


def test_at_0_replicas_the_fix_distinguishes_no_pods_from_no_answer() -> None:
    """KEDA scales out to `fallback` when a trigger fails, also from 0."""
    (finding,) = _findings("GMA429", {"query": WAITING}, minReplicaCount=0)
    assert "type external" in finding.advice
    (finding,) = _findings("GMA429", {"query": WAITING})
    assert "type external" not in finding.advice


UTIL = "avg(DCGM_FI_DEV_GPU_UTIL)"
ACTIVE = "avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)"


@pytest.mark.parametrize(
    ("query", "threshold", "finding"),
    [
        (f"{UTIL} / 100", "0.8", ""),
        (f"{UTIL} / 100", "80", "GMA403 DCGM_FI_DEV_GPU_UTIL × 0.01 is never above 1, 800m"),
        (f"{ACTIVE} * 100", "70", ""),
        (f"{ACTIVE} * 100", "0.7", "GMA404 DCGM_FI_PROF_GR_ENGINE_ACTIVE × 100 means 0.7 %, 70"),
        (f"{UTIL} * 2", "300", "GMA403 DCGM_FI_DEV_GPU_UTIL × 2 is never above 200, 140"),
        ("avg(DCGM_FI_DEV_FB_USED) * 1048576", "8e9", ""),
        ("avg(DCGM_FI_DEV_FB_USED) * 1048576", "8", "GMA404 DCGM_FI_DEV_FB_USED × 1048576, 8Gi"),
    ],
)
def test_a_target_is_in_the_unit_of_the_whole_query(
    query: str, threshold: str, finding: str
) -> None:
    """The number of the fix is one of the query too, and removes the finding."""
    metadata = {"query": query, "threshold": threshold, "ignoreNullValues": "false"}
    row = {"metricType": "Value"}
    findings = {
        identity: _findings(identity, metadata, row=row) for identity in ("GMA403", "GMA404")
    }
    if not finding:
        assert findings == {"GMA403": [], "GMA404": []}
        return
    identity, _, rest = finding.partition(" ")
    words, number = rest.split(", ")
    (shown,) = findings[identity]
    assert words.split(" means")[0] in shown.message
    assert f'"{number}"' in shown.advice
    assert _findings(identity, metadata | {"threshold": number}, row=row) == []


def test_a_metric_of_another_quantity_is_listed_and_is_not_a_fix() -> None:
    facts = clean()
    facts.hpas = Fact([hpa(metric("inference_latency", average="500"))])
    (finding,) = run(facts, ("GMA401",))[0].findings
    assert "the nearest are inference_request_seconds_mean (s), " in finding.message
    assert finding.advice.startswith("correct spec.metrics[0].pods.metric.name, or let a rule")
    assert "edit" in finding.command
