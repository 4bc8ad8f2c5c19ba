"""Every kind of decision has its sentence."""

from __future__ import annotations

import pytest

from adapter.demo.autoscaler import explain
from adapter.hpa import HpaState, Missing, Observation, PodState, Values, decide, from_manifest

MANIFEST = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"},
        "minReplicas": 2,
        "maxReplicas": 12,
        "metrics": [
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "gpu_utilization"},
                    "target": {"type": "AverageValue", "averageValue": "70"},
                },
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    },
}
SPEC = from_manifest(MANIFEST)


def said(replicas: int, value: float | None, missing: int = 0, history: int = 0) -> str:
    """``history`` is an earlier number of replicas wanted, still inside the window."""
    pods = [PodState(f"p{number}") for number in range(replicas)]
    values: Values = Missing("no metrics")
    if value is not None:
        values = {pod.name: round(value * 1000) for pod in pods[missing:]}
    state = HpaState()
    if history:
        busy: dict[str, int] = {pod.name: 70_000 for pod in pods[:history]}
        _, state = decide(SPEC, state, Observation(history, pods[:history], (busy,)), 0.0)
    decision, _ = decide(SPEC, state, Observation(replicas, pods, (values,)), 30.0)
    return explain(SPEC, decision, missing)


@pytest.mark.parametrize(
    ("replicas", "value", "missing", "history", "sentence"),
    [
        (4, 91.5, 0, 0, "91.5 is over the target of 70: wants 6"),
        (4, 70, 0, 0, "70 is the target: stays at 4"),
        (4, 72, 0, 0, "72 is over the target of 70 within the tolerance: stays at 4"),
        (4, 60, 0, 0, "60 is under the target of 70: stays at 4"),
        (4, 91, 1, 0, "91 is over the target of 70 (1 without a value): stays at 4"),
        (
            10,
            100,
            0,
            0,
            "100 is over the target of 70: wants 15, gets 12 (TooManyReplicas)",
        ),
        (
            4,
            5,
            0,
            0,
            "5 is under the target of 70: wants 1, the scale-down window allows 4",
        ),
        (4, None, 4, 0, "no value: keeps 4 (ScalingActive=False, FailedGetPodsMetric)"),
    ],
)
def test_a_decision_in_words(
    replicas: int, value: float | None, missing: int, history: int, sentence: str
) -> None:
    assert said(replicas, value, missing, history) == sentence
