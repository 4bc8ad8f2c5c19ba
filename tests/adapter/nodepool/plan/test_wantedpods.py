"""The replicas of an HPA if only its metrics decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapter.hpa import ManifestError, Missing, Observation, PodState
from adapter.hpa.observation import Values
from adapter.nodepool.plan.wantedpods import Want, wanted_pods
from adapter.nodepool.seen.autoscalers import ReadableHpa, parse_readable

HPA = """
metadata: {name: inference, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: inference}
  minReplicas: 2
  maxReplicas: 6
  metrics:
  - type: Pods
    pods:
      metric: {name: gpu_utilization}
      target: {type: AverageValue, averageValue: "50"}
"""
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "waiting"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}
GONE = Missing("no such metric")


def hpa(*more: Mapping[str, Any], **spec: Any) -> ReadableHpa:
    manifest = yaml.safe_load(HPA)
    manifest["spec"]["metrics"].extend(more)
    manifest["spec"].update(spec)
    return parse_readable(manifest)


def seen(*values: Values, replicas: int = 4) -> Observation:
    pods = [PodState(f"pod-{number}") for number in range(replicas)]
    return Observation(replicas, pods, values)


def percent(*values: int) -> dict[str, int]:
    return {f"pod-{number}": value * 1000 for number, value in enumerate(values)}


def status(
    desired: int, limited: str = "", *, current: int = 4, active: bool = True
) -> dict[str, Any]:
    rows = [{"type": "ScalingActive", "status": str(active), "reason": "ValidMetricFound"}]
    if limited:
        rows.append({"type": "ScalingLimited", "status": "True", "reason": limited})
    return {"currentReplicas": current, "desiredReplicas": desired, "conditions": rows}


def test_demand_is_not_clamped_at_max_replicas() -> None:
    want = wanted_pods(hpa(), seen(percent(100, 100, 100, 100)), {})
    assert want.pods == 8


def test_demand_is_not_limited_by_scaling_policies() -> None:
    calm = hpa(
        behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    )
    assert wanted_pods(calm, seen(percent(100, 100, 100, 100)), status(5, "ScaleUpLimit")).pods == 8


def test_demand_is_never_below_min_replicas() -> None:
    assert wanted_pods(hpa(), seen(percent(1, 1, 1, 1)), {}).pods == 2


def test_within_the_tolerance_no_more_pods_are_wanted() -> None:
    assert wanted_pods(hpa(), seen(percent(54, 54, 54, 54)), {}).pods == 4


def test_the_tolerance_of_the_hpa_counts() -> None:
    keen = hpa(behavior={"scaleUp": {"tolerance": "0"}})
    assert wanted_pods(keen, seen(percent(54, 54, 54, 54)), {}).pods == 5


def test_the_largest_metric_decides() -> None:
    want = wanted_pods(hpa(QUEUE), seen(percent(50, 50, 50, 50), [90_000]), {})
    assert want.pods == 9


def test_a_metric_that_cannot_be_read_does_not_affect_the_others() -> None:
    assert wanted_pods(hpa(QUEUE), seen(percent(100, 100, 100, 100), GONE), {}).pods == 8


def test_without_any_metric_the_demand_is_unknown_and_not_0() -> None:
    want = wanted_pods(hpa(), seen(GONE), status(4))
    assert want == Want(None, None)


DECIDED: dict[str, tuple[dict[str, Any], int | None]] = {
    "rate-limited: more is coming": (status(5, "ScaleUpLimit"), 6),
    "at its most: no more than that": (status(6, "TooManyReplicas"), 6),
    "it has decided to grow": (status(5), 5),
    "it stays, perhaps held by a window": (status(4), None),
    "it shrinks": (status(3, "ScaleDownLimit"), None),
    "its own metrics have failed": (
        status(5, "ScaleUpLimit", active=False),
        None,
    ),
    "it was never synced": ({}, None),
}


@pytest.mark.parametrize(("read", "expected"), DECIDED.values(), ids=DECIDED)
def test_the_status_shows_what_unread_metrics_decided(
    read: dict[str, Any], expected: int | None
) -> None:
    assert wanted_pods(hpa(), seen(GONE), read).pods == expected


def test_metrics_of_another_api_count_only_through_the_status() -> None:
    mixed = hpa(CPU)
    assert mixed.left_out == 1
    assert wanted_pods(mixed, seen(percent(50, 50, 50, 50)), status(6)).pods == 6


def test_the_status_does_not_overrule_metrics_that_were_all_read() -> None:
    want = wanted_pods(hpa(), seen(percent(50, 50, 50, 50)), status(5, "ScaleUpLimit"))
    assert want.pods == 4


def test_an_hpa_with_only_other_metrics_is_not_planned_for() -> None:
    manifest = yaml.safe_load(HPA)
    manifest["spec"]["metrics"] = [CPU]
    with pytest.raises(ManifestError, match=r"spec\.metrics has no metric of type Pods"):
        parse_readable(manifest)


def test_a_target_scaled_to_0_wants_no_pods() -> None:
    want = wanted_pods(hpa(), seen(GONE, replicas=0), {})
    assert want == Want(0, 0.0, parked=True)


def test_a_target_that_keda_scales_from_0_wants_pods() -> None:
    manifest = yaml.safe_load(HPA)
    manifest["spec"].update(metrics=[QUEUE], minReplicas=1)
    want = wanted_pods(parse_readable(manifest), seen([35_000], replicas=0), {}, from_zero=True)
    assert want.pods == 4


@pytest.mark.parametrize(
    ("values", "pods", "load"),
    [
        pytest.param((54, 53, 52, 53), 4, 4.24, id="within the tolerance"),
        pytest.param((60, 61, 60, 59), 5, 4.8, id="rounded up"),
        pytest.param((10, 10, 10, 10), 2, 0.8, id="below minReplicas"),
    ],
)
def test_the_load_is_the_want_before_tolerance_and_rounding(
    values: tuple[int, ...], pods: int, load: float
) -> None:
    want = wanted_pods(hpa(), seen(percent(*values)), {})
    assert want.pods == pods
    assert want.load == pytest.approx(load)


def test_the_load_of_several_metrics_is_the_highest() -> None:
    want = wanted_pods(hpa(QUEUE), seen(percent(50, 50, 50, 50), (57_000,)), {})
    assert (want.pods, want.load) == (6, 5.7)


def test_a_scale_out_that_only_the_controller_sees_is_a_load_of_whole_pods() -> None:
    want = wanted_pods(hpa(), seen(GONE), status(6, current=4))
    assert (want.pods, want.load) == (6, 6.0)


def expected(name: str) -> Mapping[str, Any]:
    target = {"type": "AverageValue", "averageValue": "50"}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


@pytest.mark.parametrize("name", ["gpu_utilization_expected", "s1-gpu_utilization_expected"])
def test_what_serve_expects_is_wanted_and_not_a_load_to_forecast_from(name: str) -> None:
    """Else nodepool would order headroom for a rise whose pods the HPA creates already."""
    own = hpa(expected(name))
    now, then = percent(50, 50, 50, 50), percent(80, 80, 80, 80)
    assert wanted_pods(own, seen(now, then), {}) == Want(7, 4.0)
    assert wanted_pods(own, seen(now, now), {}) == Want(4, 4.0)


def test_what_the_hpa_decided_by_an_expectation_is_not_a_load_either() -> None:
    own = hpa(expected("gpu_utilization_expected"), CPU)
    values = seen(percent(50, 50, 50, 50), percent(80, 80, 80, 80))
    assert wanted_pods(own, values, status(7)) == Want(7, 4.0)
    assert wanted_pods(own, values, status(9)) == Want(9, 9.0)


def test_an_expectation_alone_is_the_load() -> None:
    own = hpa(expected("gpu_utilization_expected"))
    values = seen(GONE, percent(80, 80, 80, 80))
    assert wanted_pods(own, values, {}) == Want(7, 6.4)
    assert (
        wanted_pods(
            hpa(expected("foreign_expected")), seen(percent(50), percent(80), replicas=1), {}
        )[1]
        == 1.6
    )
