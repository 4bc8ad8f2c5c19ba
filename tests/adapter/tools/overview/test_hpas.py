"""What is said about an HPA follows from its status alone."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.answers.judgement.evidence import TargetPods
from adapter.tools.overview.hpas import summarize
from adapter.tools.overview.scalers import ReadScalers, read_hpa
from tests.adapter.tools.overview.hpas import (
    AT,
    FINE,
    at_maximum,
    condition,
    hpa,
    metric,
    state_of,
    stuck,
    value,
)

Json = dict[str, Any]

RESOURCE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
USED = {
    "type": "Resource",
    "resource": {"name": "cpu", "current": {"averageUtilization": 12, "averageValue": "100m"}},
}
NO_TARGET = condition("AbleToScale", "False", "FailedGetScale", "deployments llm not\nfound")
COMPUTING = condition(
    "ScalingActive",
    "False",
    "FailedGetPodsMetric",
    "the HPA was unable to compute the replica count: no metrics returned",
)
PAUSED = condition("ScalingActive", "False", "ScalingDisabled", "replica count is zero")

DECISIONS: dict[str, tuple[Json, str, str, str]] = {
    "keeps": (hpa(), "good", "healthy", "keeps 3: gpu_utilization 54 of 60"),
    "scales out": (
        hpa(desired=5),
        "good",
        "scales out",
        "scales out 3 → 5: gpu_utilization 54 of 60",
    ),
    "scales in": (hpa(desired=1), "good", "scales in", "scales in 3 → 1: gpu_utilization 54 of 60"),
    "at maximum": (
        at_maximum(),
        "warning",
        "overloaded",
        "overloaded at 8, held by maxReplicas 8: gpu_utilization 92 of 60",
    ),
    "still on the way to its maximum": (
        at_maximum() | {"status": at_maximum()["status"] | {"currentReplicas": 4}},
        "good",
        "scales out",
        "scales out 4 → 8: gpu_utilization 92 of 60",
    ),
    "without a value": (
        stuck(),
        "bad",
        "stuck",
        "stuck at 3: FailedGetPodsMetric: unable to get metric gpu_utilization",
    ),
    "without a target": (
        hpa(current=None, desired=None, conditions=(NO_TARGET,)),
        "bad",
        "stuck",
        "stuck: FailedGetScale: deployments llm not found",
    ),
    "without a value, in the controller's words": (
        hpa(values=(), conditions=(FINE[0], COMPUTING)),
        "bad",
        "stuck",
        "stuck at 3: FailedGetPodsMetric: no metrics returned",
    ),
    "a mean with three decimals": (
        hpa(values=(value(now="8958m"),)),
        "good",
        "healthy",
        "keeps 3: gpu_utilization 9 of 60",
    ),
    "a value below 1": (
        hpa(metrics=(metric("rate", "250m"),), values=(value("rate", "125m"),)),
        "good",
        "healthy",
        "keeps 3: rate 0.125 of 0.25",
    ),
    "paused": (
        hpa(current=0, desired=0, values=(), conditions=(FINE[0], PAUSED)),
        "off",
        "paused",
        "paused at 0 replicas: the HPA wakes no target that somebody else scaled to 0",
    ),
    "new": (
        hpa(current=None, desired=None, values=(), conditions=()),
        "warning",
        "waiting",
        "waiting for the first sync of the HPA controller",
    ),
    "one of two metrics without a value": (
        hpa(metrics=(metric(), metric("queue", "4"))),
        "warning",
        "incomplete",
        "keeps 3: gpu_utilization 54 of 60; no value of queue",
    ),
    "CPU in percent of the requests": (
        hpa(metrics=(RESOURCE,), values=(USED,)),
        "good",
        "healthy",
        "keeps 3: cpu 12% of 60%",
    ),
    "quantities": (
        hpa(
            metrics=(metric(goal="50500m"), metric("gpu_memory_used_bytes", "64Gi")),
            values=(value(now="49250m"), value("gpu_memory_used_bytes", "85899345920")),
        ),
        "good",
        "scales out",
        "scales out to 3, its pods start: gpu_memory_used_bytes 80Gi of 64Gi",
    ),
    "no metric at all": (
        hpa(metrics=(), values=()),
        "warning",
        "incomplete",
        "keeps 3: it reads no metric",
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_the_status_decides_the_words(name: str) -> None:
    manifest, level, decision, text = DECISIONS[name]
    state = state_of(manifest)
    assert (state.level, state.state, state.text) == (level, decision, text)


def test_the_row_of_the_page_has_null_for_a_missing_value_and_never_0() -> None:
    row = state_of(stuck()).json()
    assert row["metrics"] == [
        {
            "name": "gpu_utilization",
            "value": None,
            "valueText": None,
            "goal": 60.0,
            "goalText": "60",
            "type": "Pods",
        }
    ]
    assert row["target"] == "Deployment/llm"
    assert (row["min"], row["max"], row["current"], row["desired"]) == (1, 8, 3, None)


def test_since_is_the_time_of_the_condition_that_decides_or_of_the_last_scaling() -> None:
    assert state_of(stuck()).since == state_of(at_maximum()).since == 1767323045.0
    assert state_of(hpa()).since == 1767323040.0
    never = hpa()
    del never["status"]["lastScaleTime"]
    assert state_of(never).since is None


def test_the_metric_that_is_highest_against_its_target_leads() -> None:
    two = hpa(metrics=(metric(), metric("queue", "4")), values=(value(), value("queue", "9")))
    leading = state_of(two).leading
    assert leading is not None
    assert (leading.name, leading.ratio) == ("queue", 2.25)
    lost = state_of(stuck()).leading
    assert lost is not None
    assert (lost.name, lost.ratio) == ("gpu_utilization", None)
    assert state_of(hpa(metrics=())).leading is None


def test_a_long_message_is_one_bounded_line() -> None:
    long = condition("ScalingActive", "False", "Failed", "x\n" * 5000)
    text = state_of(hpa(conditions=(long,))).text
    assert len(text) < 250
    assert "\n" not in text


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, {"metadata": {"name": 1}, "spec": []}])
def test_another_object_is_an_error(odd: Json) -> None:
    with pytest.raises(ValueError, match=r"Object|Expected"):
        state_of(odd)


def test_a_replicaset_of_a_deployment_is_a_wrong_target() -> None:
    """Its owner sets the size back, however well the metric answers."""
    manifest = hpa()
    manifest["spec"]["scaleTargetRef"] |= {"kind": "ReplicaSet", "name": "llm-7f9"}
    read = read_hpa(manifest)
    pods = TargetPods(3, exist=3)
    (owned,) = summarize(ReadScalers([read]), {(read.namespace, "deployment.llm"): pods}, AT)
    assert owned.level == "warning"
    assert "deployment.llm owns its target" in owned.text
    of_its_own = {(read.namespace, "replicaset.llm-7f9"): pods}
    (alone,) = summarize(
        ReadScalers([read]), {**of_its_own, (read.namespace, "deployment.llm"): pods}, AT
    )
    assert alone.level == "good"


def test_a_stuck_hpa_says_why_no_pod_has_a_value() -> None:
    """The controller has one text for pods without a node, and for those that crash."""
    homeless = state_of(stuck(), pods=TargetPods(0, 1, unscheduled=1, exist=1))
    assert homeless.text.startswith("stuck at 3: 1 pod without a node; FailedGetPodsMetric: ")
    crashing = state_of(stuck(), pods=TargetPods(0, 1, trouble="CrashLoopBackOff", exist=1))
    assert crashing.text.startswith("stuck at 3: CrashLoopBackOff; FailedGetPodsMetric: ")
    (alone,) = summarize(ReadScalers([read_hpa(stuck())]), {}, AT, complete=True)
    assert alone.text.startswith("stuck at 3: no pod of its target has a GPU; Failed")
    (unread,) = summarize(ReadScalers([read_hpa(stuck())]), None, AT, complete=True)
    assert unread.text == state_of(stuck()).text
    assert state_of(stuck(), pods=TargetPods(1, 1)).text == state_of(stuck()).text
