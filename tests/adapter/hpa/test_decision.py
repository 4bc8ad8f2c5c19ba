"""adapter.hpa: the table without a cluster, manifests, conditions and laws."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from adapter.hpa import (
    Behavior,
    ControllerOptions,
    HpaSpec,
    HpaState,
    ManifestError,
    MetricKind,
    MetricSpec,
    MetricTarget,
    Missing,
    Observation,
    PodState,
    PolicyKind,
    Rules,
    ScalingPolicy,
    Select,
    TargetKind,
    decide,
    from_manifest,
)
from adapter.hpa.quantity import parse, to_milli
from tests.adapter.hpa.cases.case import Case, each, play, run
from tests.adapter.hpa.cases.table import CASES

GPU = MetricSpec(MetricKind.PODS, "gpu", MetricTarget(TargetKind.AVERAGE_VALUE, 50_000))

MANIFEST = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: inference, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: inference}
  minReplicas: 2
  maxReplicas: 10
  metrics:
  - type: Pods
    pods:
      metric: {name: gpu_utilization, selector: {matchLabels: {model: A100}}}
      target: {type: AverageValue, averageValue: "70"}
  - type: Object
    object:
      describedObject: {apiVersion: v1, kind: Service, name: inference}
      metric: {name: inference_requests_waiting}
      target: {type: Value, value: 2k}
  - type: External
    external:
      metric: {name: queue}
      target: {type: AverageValue, averageValue: 1500m}
  behavior:
    scaleUp:
      selectPolicy: Min
      tolerance: 50m
      policies:
      - {type: Pods, value: 3, periodSeconds: 60}
    scaleDown:
      stabilizationWindowSeconds: 120
"""


def manifest(**spec: Any) -> dict[str, Any]:
    """Return the manifest above with keys of its spec replaced, or removed by None."""
    loaded: dict[str, Any] = yaml.safe_load(MANIFEST)
    for key, value in spec.items():
        loaded["spec"][key] = value
        if value is None:
            del loaded["spec"][key]
    return loaded


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_sizes_of_the_table(case: Case) -> None:
    """The sizes that the real controller was seen to set."""
    assert tuple(size for steps, _ in play(case) for size, _ in steps) == case.sizes


def test_a_manifest_is_read_with_its_defaults() -> None:
    """Quantities become thousandths, and behaviour's gaps the API server's defaults."""
    spec = from_manifest(manifest())
    assert (spec.name, spec.namespace, spec.min_replicas, spec.max_replicas) == (
        "inference",
        "ml",
        2,
        10,
    )
    assert [(m.kind, m.name, *m.target) for m in spec.metrics] == [
        ("Pods", "gpu_utilization", "AverageValue", 70_000),
        ("Object", "inference_requests_waiting", "Value", 2_000_000),
        ("External", "queue", "AverageValue", 1_500),
    ]
    assert spec.metrics[0].selector == {"matchLabels": {"model": "A100"}}
    assert spec.behavior == Behavior(
        Rules((ScalingPolicy(PolicyKind.PODS, 3, 60),), Select.MIN, 0, 0.05),
        Rules((ScalingPolicy(PolicyKind.PERCENT, 100, 15),), Select.MAX, 120),
    )


def test_an_empty_behavior_is_not_none() -> None:
    """The controller remembers scale events for the one and not for the other."""
    assert from_manifest(manifest(behavior={})).behavior == Behavior()
    assert from_manifest(manifest(behavior=None)).behavior is None


def resource(name: str, target: dict[str, Any], container: str | None = None) -> dict[str, Any]:
    """A Resource metric, or a ContainerResource metric."""
    if container is None:
        return {"type": "Resource", "resource": {"name": name, "target": target}}
    source = {"name": name, "container": container, "target": target}
    return {"type": "ContainerResource", "containerResource": source}


POLICY = {"type": "Pods", "value": 1, "periodSeconds": 60}
PODS = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"maxReplicas": None}, "spec.maxReplicas is missing"),
        ({"maxReplicas": 0}, "spec.maxReplicas is 0: give a whole number from 1"),
        ({"maxReplicas": "3"}, "spec.maxReplicas is '3'"),
        ({"maxReplicas": True}, "spec.maxReplicas is True"),
        ({"maxReplicas": 1}, "spec.maxReplicas 1 is less than spec.minReplicas 2"),
        ({"minReplicas": -1}, "spec.minReplicas is -1"),
        ({"metrics": ["x"]}, r"spec.metrics\[0\] is not a mapping"),
        ({"metrics": [{"type": "Resource"}]}, r"spec.metrics\[0\].resource is missing"),
        ({"metrics": [resource("", {})]}, "resource.name is missing: name the resource"),
        ({"metrics": [resource("cpu", {}, "")]}, "containerResource.container is missing"),
        ({"metrics": [{"type": "Pod"}]}, r"type is 'Pod': use one of Pods, Object, External"),
        ({"metrics": [{"type": "Pods"}]}, r"spec.metrics\[0\].pods is missing"),
        ({"metrics": [{"type": "Pods", "pods": PODS | {"metric": {}}}]}, "metric.name is missing"),
        ({"metrics": [{"type": "Pods", "pods": PODS}], "minReplicas": 0}, "needs an Object"),
        (
            {"metrics": [{"type": "Pods", "pods": PODS | {"target": {"type": "Value"}}}]},
            "averageValue is missing",
        ),
        (
            {
                "metrics": [
                    {
                        "type": "Pods",
                        "pods": PODS | {"target": {"type": "AverageValue", "averageValue": "7x"}},
                    }
                ]
            },
            "averageValue is '7x': give a quantity",
        ),
        (
            {
                "metrics": [
                    {
                        "type": "Pods",
                        "pods": PODS | {"target": {"type": "AverageValue", "averageValue": "0"}},
                    }
                ]
            },
            "averageValue is 0: give a quantity above 0",
        ),
        (
            {
                "metrics": [
                    {
                        "type": "External",
                        "external": PODS
                        | {"target": {"type": "Value", "averageValue": "1", "value": "1"}},
                    }
                ]
            },
            "sets value and averageValue",
        ),
        ({"metrics": [{"type": "Object", "object": PODS}]}, "describedObject is missing"),
        ({"behavior": []}, "spec.behavior is not a mapping"),
        ({"behavior": {"scaleUp": {"policies": []}}}, "scaleUp.policies is empty"),
        ({"behavior": {"scaleUp": {"selectPolicy": "max"}}}, "use one of Max, Min, Disabled"),
        ({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601}}}, "0 to 3600"),
        ({"behavior": {"scaleDown": {"tolerance": "-1"}}}, "tolerance is negative"),
        ({"behavior": {"scaleUp": {"policies": [POLICY | {"value": 0}]}}}, "value is 0"),
        ({"behavior": {"scaleUp": {"policies": [POLICY | {"type": "All"}]}}}, "Pods, Percent"),
        ({"behavior": {"scaleUp": {"policies": [POLICY | {"periodSeconds": 1801}]}}}, "1 to 1800"),
        ({"behavior": {"scaleUp": {"policies": ["x"]}}}, "is not a mapping"),
        ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name is missing"),
    ],
)
def test_a_wrong_manifest_names_the_key(spec: dict[str, Any], words: str) -> None:
    """Every refusal says which key, and what to write there."""
    with pytest.raises(ManifestError, match=words):
        from_manifest(manifest(**spec))


def test_another_kind_is_refused() -> None:
    """autoscaling/v1 and other kinds are not guessed at."""
    with pytest.raises(ManifestError, match=r"give an autoscaling/v2 HorizontalPodAutoscaler"):
        from_manifest({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"})


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [
        ("70", 70_000),
        (70, 70_000),
        ("87500m", 87_500),
        (0.1, 100),
        ("1.0005", 1_001),
        ("-1.0005", -1_001),
        ("1u", 1),
        (".5", 500),
        ("5.", 5_000),
        ("+2", 2_000),
        ("1k", 1_000_000),
        ("2Ki", 2_048_000),
        ("1Gi", 1_073_741_824_000),
        ("1E", 10**21),
        ("1e3", 1_000_000),
        ("12E2", 1_200_000),
    ],
)
def test_a_quantity_in_thousandths(quantity: object, milli: int) -> None:
    """Text and YAML's numbers alike; thousandths are rounded away from zero."""
    assert to_milli(parse(quantity)) == milli


@pytest.mark.parametrize(
    "quantity",
    [
        "",
        "x",
        "7x",
        "1_0",
        "1 ",
        "1\n",
        "NaN",
        "inf",
        "1K",
        "1ki",
        "1e3k",
        "1e999999",
        "٣",
        True,
        None,
    ],
)
def test_what_is_not_a_quantity_is_rejected(quantity: object) -> None:
    """Also what Decimal would take, and what would take Decimal a while."""
    with pytest.raises(ValueError, match=r"is not a quantity|an exponent and a suffix"):
        parse(quantity)


@given(
    st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?", fullmatch=True)
)
def test_quantities_are_the_client_librarys(text: str) -> None:
    """Canonical quantities mean what ``kubernetes.utils.quantity`` says."""
    assert parse(text) == parse_quantity(text)


def test_the_conditions_of_a_scale_out_and_after() -> None:
    """The words of `kubectl describe hpa`; `since` moves only when a status turns."""
    spec = HpaSpec(10, (GPU,))
    first, state = decide(spec, HpaState(), Observation(2, run(2), (each(2, 95),)), 100.0)
    assert (first.desired, first.reason) == (4, "pods metric gpu above target")
    assert [(c.type, c.status, c.reason) for c in first.conditions] == [
        ("AbleToScale", True, "SucceededRescale"),
        ("ScalingActive", True, "ValidMetricFound"),
        ("ScalingLimited", False, "DesiredWithinRange"),
    ]
    assert first.proposals[0].usage == 95_000
    gone = Missing("the server could not find the metric gpu for pods")
    second, state = decide(spec, state, Observation(4, run(4), (gone,)), 115.0)
    assert not second.rescale
    assert [(c.type, c.status, c.reason, c.since) for c in second.conditions] == [
        ("AbleToScale", True, "SucceededGetScale", 100.0),
        ("ScalingActive", False, "FailedGetPodsMetric", 115.0),
        ("ScalingLimited", False, "DesiredWithinRange", 100.0),
    ]
    assert second.error == (
        "invalid metrics (1 invalid out of 1), first error is: failed to get pods metric value: "
        "unable to get metric gpu: unable to fetch metrics from custom metrics API: "
        "the server could not find the metric gpu for pods"
    )


def test_as_many_values_as_metrics() -> None:
    """A caller's mistake is not a missing metric."""
    with pytest.raises(ValueError, match="1 values for 2 metrics"):
        decide(HpaSpec(10, (GPU, GPU)), HpaState(), Observation(1, run(1), ({},)), 0.0)


def test_zero_replicas_without_the_feature_gate_stay() -> None:
    """A target that somebody set to 0 is not changed, for all values of its metrics."""
    spec = from_manifest(manifest(minReplicas=0))
    seen = Observation(0, (), ({}, 9_000_000, [9_000_000]))
    decision, _ = decide(spec, HpaState(), seen, 0.0, ControllerOptions(scale_to_zero=False))
    assert (decision.desired, decision.conditions[-1].reason) == (0, "ScalingDisabled")


VALUES = st.integers(0, 200_000)
REPLICAS = st.integers(1, 30)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Pods of every kind, some without a value."""
    phases = st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded"])
    count = draw(st.integers(0, 8))
    pods = tuple(
        PodState(f"p{i}", draw(phases), draw(st.booleans()), draw(st.booleans()))
        for i in range(count)
    )
    values = draw(st.dictionaries(st.sampled_from([f"p{i}" for i in range(9)]), VALUES))
    return Observation(draw(REPLICAS), pods, (values,))


@given(observations(), st.booleans())
def test_the_bounds_hold(seen: Observation, behaves: bool) -> None:
    """From inside the bounds no decision leaves them."""
    spec = HpaSpec(30, (GPU,), behavior=Behavior() if behaves else None)
    decision, _ = decide(spec, HpaState(), seen, 0.0)
    assert 1 <= decision.desired <= 30


@given(observations())
def test_a_missing_metric_never_scales_in(seen: Observation) -> None:
    """With one metric of two unknown, there is no way down."""
    spec = HpaSpec(
        30,
        (GPU, GPU),
        behavior=Behavior(
            scale_down=Rules((ScalingPolicy(PolicyKind.PERCENT, 100, 15),), window=0)
        ),
    )
    both = Observation(seen.replicas, seen.pods, (Missing("gone"), seen.values[0]))
    decision, _ = decide(spec, HpaState(), both, 0.0)
    assert decision.desired >= seen.replicas


@given(st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 7), VALUES)
def test_more_load_never_means_fewer_pods(loads: list[int], which: int, more: int) -> None:
    """The decision rises with every value."""
    spec = HpaSpec(1000, (GPU,))
    names = [f"p{i}" for i in range(len(loads))]
    before = dict(zip(names, loads, strict=True))
    after = copy.copy(before)
    after[names[which % len(names)]] += more
    asked = [
        decide(spec, HpaState(), Observation(len(loads), run(len(loads)), (values,)), 0.0)[0]
        .proposals[0]
        .replicas
        for values in (before, after)
    ]
    assert asked[0] is not None
    assert asked[1] is not None
    assert asked[0] <= asked[1]


@given(st.lists(VALUES, min_size=2, max_size=8), st.data())
def test_a_missing_value_only_damps(loads: list[int], data: st.DataObject) -> None:
    """Taking values away never makes a step larger than if the missing had been like the rest."""
    count = len(loads)
    kept = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count))
    values = {f"p{i}": loads[i] for i in kept}
    mean = sum(values.values()) // len(values)
    filled = {f"p{i}": values.get(f"p{i}", mean) for i in range(count)}
    spec = HpaSpec(1000, (GPU,))
    steps = []
    for each_values in (values, filled):
        seen = Observation(count, run(count), (each_values,))
        replicas = decide(spec, HpaState(), seen, 0.0)[0].proposals[0].replicas
        assert replicas is not None
        steps.append(replicas - count)
    # One pod of slack: the filled mean loses its fraction of a thousandth.
    assert abs(steps[0]) <= abs(steps[1]) + 1
    assert steps[0] * steps[1] >= 0


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=40),
    st.integers(1, 6),
    st.integers(15, 120),
)
def test_a_pods_policy_bounds_every_period(loads: list[int], value: int, period: int) -> None:
    """No window as long as the period sees more pods added than the policy allows."""
    rules = Rules((ScalingPolicy(PolicyKind.PODS, value, period),), window=0)
    never = Rules((ScalingPolicy(PolicyKind.PODS, 1, 15),), Select.DISABLED, 0)
    spec = HpaSpec(1000, (GPU,), behavior=Behavior(rules, never))
    state, replicas, added = HpaState(), 1, list[tuple[float, int]]()
    for tick, load in enumerate(loads):
        now = tick * 15.0
        seen = Observation(replicas, run(replicas), (each(replicas, load),))
        decision, state = decide(spec, state, seen, now)
        added.append((now, decision.desired - replicas))
        replicas = decision.desired
        assert sum(n for moment, n in added if moment > now - period) <= value


@given(observations())
def test_deciding_changes_nothing_it_was_given(seen: Observation) -> None:
    """The same question has the same answer."""
    state = HpaState()
    before = copy.deepcopy(seen)
    spec = HpaSpec(30, (GPU,))
    assert decide(spec, state, seen, 5.0) == decide(spec, state, seen, 5.0)
    assert (seen, state) == (before, HpaState())


@pytest.mark.parametrize("utilization", [1, 100])
def test_a_utilization_of_one_percent_is_a_target(utilization: int) -> None:
    manifest = yaml.safe_load(MANIFEST)
    target = {"type": "Utilization", "averageUtilization": utilization}
    manifest["spec"]["metrics"] = [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    assert from_manifest(manifest).metrics[0].target.milli == utilization * 1000


@pytest.mark.parametrize(
    ("text", "milli"),
    [("1n", 1), ("1000000n", 1), ("1500u", 2), ("1u", 1), ("7m", 7), ("2500m", 2500)],
)
def test_small_quantities_are_rounded_up_to_thousandths(text: str, milli: int) -> None:
    assert to_milli(parse(text)) == milli
