"""The pods that an HPA creates at its next sync."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.hpa import HpaSpec, HpaState, Observation, PodState, decide, from_manifest
from adapter.nodepool.learn.pace import NEW, Pace, ceiling, follow, replicas_after_next_sync

NOW = 1_700_000_000.0
TARGET = {"type": "AverageValue", "averageValue": "50"}


def spec(most: int = 100, least: int = 1, **behavior: Any) -> HpaSpec:
    rules = {"behavior": behavior} if behavior else {}
    metric = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": TARGET}}
    return from_manifest(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
                "minReplicas": least,
                "maxReplicas": most,
                "metrics": [metric],
                **rules,
            },
        }
    )


def policy(value: int, period: int, **more: Any) -> dict[str, Any]:
    rules = [{"type": "Pods", "value": value, "periodSeconds": period}]
    return {"scaleUp": {"policies": rules, **more}}


STEPS = {
    "twice as many": (spec(), 5, 50, 10),
    "or 4": (spec(), 1, 50, 4),
    "no more than are wanted": (spec(), 5, 7, 7),
    "no more than maxReplicas": (spec(6), 5, 50, 6),
    "fewer are wanted": (spec(), 5, 2, 5),
    "nobody knows what is wanted": (spec(), 5, None, 5),
    "below minReplicas": (spec(least=4), 2, 2, 4),
    "scaled to 0: the HPA is off": (spec(), 0, 9, 0),
    "a policy": (spec(**policy(1, 60)), 5, 50, 6),
    "scaling up is disabled": (spec(**policy(1, 60, selectPolicy="Disabled")), 5, 50, 5),
}


@pytest.mark.parametrize(("hpa", "replicas", "wanted", "soon"), STEPS.values(), ids=STEPS)
def test_the_next_sync_is_predicted(
    hpa: HpaSpec, replicas: int, wanted: int | None, soon: int
) -> None:
    assert replicas_after_next_sync(hpa, NEW, replicas, wanted, NOW) == soon


def test_recent_scale_events_count_against_a_policy() -> None:
    slow = spec(**policy(2, 60))
    pace = follow(follow(NEW, 3, 9, NOW - 30), 5, 9, NOW - 15)
    assert replicas_after_next_sync(slow, pace, 5, 9, NOW) == 5
    assert replicas_after_next_sync(slow, pace, 5, 9, NOW + 45) == 7


def test_a_stabilization_window_delays_a_rise() -> None:
    slow = spec(**policy(100, 15, stabilizationWindowSeconds=120))
    pace = NEW
    for second in range(0, 60, 15):
        pace = follow(pace, 3, 3, NOW + second)
    pace = follow(pace, 3, 9, NOW + 60)
    assert replicas_after_next_sync(slow, pace, 3, 9, NOW + 60) == 3
    for second in range(75, 200, 15):
        pace = follow(pace, 3, 9, NOW + second)
    assert replicas_after_next_sync(slow, pace, 3, 9, NOW + 195) == 9


def test_the_history_is_bounded() -> None:
    pace = NEW
    for number in range(2000):
        pace = follow(pace, number % 2, number, NOW + number)
    assert {len(pace.ups), len(pace.downs), len(pace.recommendations)} == {256}
    assert follow(pace, 1, None, NOW + 7200) == Pace(1)


def test_an_hpa_that_may_not_scale_up_gets_no_more_pods() -> None:
    off = spec(8, **policy(1, 60, selectPolicy="Disabled"))
    assert (ceiling(off, 3), ceiling(off, 9), ceiling(spec(8), 3)) == (3, 8, 8)


@given(st.integers(1, 30), st.integers(0, 60), st.integers(1, 40), st.sampled_from([(), (3, 15)]))
def test_the_prediction_is_never_below_the_decision_of_the_hpa_controller(
    replicas: int, wanted: int, most: int, rule: tuple[int, ...]
) -> None:
    """Otherwise, headroom would be ordered for pods that the HPA creates too."""
    hpa = spec(most, **(policy(*rule) if rule else {}))
    pods = [f"p{number}" for number in range(replicas)]
    values = dict.fromkeys(pods, 50000 * wanted // replicas)
    observation = Observation(replicas, [PodState(name) for name in pods], (values,))
    decided, _ = decide(hpa, HpaState(), observation, NOW)
    metric = -(-sum(values.values()) // 50_000)
    soon = replicas_after_next_sync(hpa, NEW, replicas, max(metric, wanted), NOW)
    assert soon >= min(decided.desired, max(replicas, most))
