"""Which ScaledObjects never wake their target from zero."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapter.answers.judgement.evidence import HpaEvidence
from adapter.answers.judgement.judge import judge
from adapter.answers.judgement.states import ScalingState
from adapter.answers.keda.manifest import read_scaledobject
from adapter.answers.keda.sleep import never_wakes
from adapter.pipeline.cluster.hpamanifest import HpaManifest, reduce

OWN = 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="team",pod=~"llm-.*"})'


def ours(**more: str) -> dict[str, Any]:
    address = "gpu-metrics-adapter.gpu-metrics.svc:6000"
    metadata = {"scalerAddress": address, "metric": "gpu_utilization", "target": "70", **more}
    return {"type": "external", "metadata": metadata}


def prometheus(query: str) -> dict[str, Any]:
    return {"type": "prometheus", "metadata": {"query": query}}


@pytest.mark.parametrize(
    ("triggers", "low", "sleeps"),
    [
        ([prometheus(OWN)], 0, True),
        ([prometheus(OWN), {"type": "cpu", "metadata": {"value": "60"}}], None, True),
        ([prometheus(OWN)], 1, False),
        ([{"type": "cpu", "metadata": {"value": "60"}}], 0, False),
        ([prometheus(OWN), {"type": "cron", "metadata": {}}], 0, False),
        ([prometheus("sum(gateway_queue_length)")], 0, False),
        ([prometheus('avg(load{pod=~"other-.*"})')], 0, False),
        ([prometheus('avg(load{pod=~"llm-[a-z0-9]+-[a-z0-9]+"})')], 0, True),
        ([prometheus("avg(load{pod=~'^llm.*'})")], 0, True),
        ([prometheus('sum(queue{pod=~"llm-gateway-.*"})')], 0, False),
        ([prometheus('sum(queue{pod=~"llm-.*|gateway-.*"})')], 0, False),
        ([prometheus(f"{OWN} or sum(gateway_queue_length)")], 0, False),
        ([prometheus(f"{OWN} or vector(0)")], 0, False),
        ([prometheus(f"{OWN} # or vector(0)")], 0, True),
        ([prometheus(f"{OWN} / scalar(sum(gateway_limit))")], 0, True),
        ([prometheus(f"absent({OWN})")], 0, False),
        ([prometheus(f"{OWN} @ end()")], 0, False),
        ([ours(podSelector="app=llm"), {"type": "cpu", "metadata": {"value": "60"}}], None, True),
        ([ours()], 0, True),
        ([ours()], 1, False),
        ([ours(podSelector="app=llm")], 0, True),
        ([ours(podSelector="tier=gpu, app.kubernetes.io/name == llm")], 0, True),
        ([ours(podSelector="app=llm-gateway")], 0, False),
        ([ours(podSelector="app=gateway"), ours(podSelector="app=llm")], 0, False),
        ([{"type": "external", "metadata": {"scalerAddress": "queue.other:80"}}], 0, False),
        ([], 0, False),
    ],
)
def test_a_trigger_must_exist_without_pods(
    triggers: list[dict[str, Any]], low: int | None, sleeps: bool
) -> None:
    spec: dict[str, Any] = {"scaleTargetRef": {"name": "llm"}, "triggers": triggers}
    if low is not None:
        spec["minReplicaCount"] = low
    scaled = read_scaledobject({"metadata": {"name": "llm", "namespace": "team"}, "spec": spec})
    cause = never_wakes(scaled)
    assert (cause is not None) is sleeps
    if cause is not None:
        assert "minReplicaCount" in cause.fix


@pytest.mark.parametrize(
    ("selector", "labels", "sleeps"),
    [
        ("tier=gpu", {"app": "llm", "tier": "gpu"}, True),
        ("app=llm", {"app": "other"}, False),
        ("app=llm", None, True),
        ("tier=gpu", None, False),
    ],
)
def test_labels_of_the_pods_decide_where_they_are_known(
    selector: str, labels: dict[str, str] | None, *, sleeps: bool
) -> None:
    """Without them, a selector by the name of the target is of its pods."""
    spec = {"scaleTargetRef": {"name": "llm"}, "triggers": [ours(podSelector=selector)]}
    scaled = read_scaledobject({"metadata": {"name": "llm", "namespace": "team"}, "spec": spec})
    assert (never_wakes(scaled, labels) is not None) is sleeps


def test_a_list_is_not_green_where_nothing_wakes() -> None:
    kind = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "llm"}
    hpa = {
        "metadata": {
            "name": "keda-hpa-llm",
            "namespace": "team",
            "ownerReferences": [{**kind, "uid": "u", "controller": True}],
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "maxReplicas": 6,
        },
        "status": {
            "currentReplicas": 0,
            "desiredReplicas": 0,
            "conditions": [
                {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}
            ],
        },
    }
    shown = reduce(msgspec.convert(hpa, HpaManifest, strict=False))
    spec = {"scaleTargetRef": {"name": "llm"}, "triggers": [prometheus(OWN)]}
    scaled = read_scaledobject({"metadata": {"name": "llm", "namespace": "team"}, "spec": spec})
    cause = never_wakes(scaled)
    assert cause is not None
    asleep = judge(HpaEvidence(shown, 0.0, causes=[cause]))
    assert (asleep.state, "never wakes" in asleep.text) == (ScalingState.IMPAIRED, True)
    looked = judge(HpaEvidence(shown, 0.0, triggers_read=True))
    assert (looked.state, looked.text) == (
        ScalingState.AT_ZERO,
        "at zero: KEDA wakes it when a trigger is active",
    )
    unread = judge(HpaEvidence(shown, 0.0))
    assert unread.state is ScalingState.AT_ZERO
    assert "wakes it when" not in unread.text, "nobody looked at the triggers"
