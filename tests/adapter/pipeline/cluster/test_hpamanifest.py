"""What is kept of the manifest of an HPA."""

from __future__ import annotations

import msgspec
import pytest

from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.podsfile import parse

TEXT = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 8
  metrics:
  - {type: Pods, pods: {metric: {name: gpu_utilization}, target: {averageValue: 60}}}
  - {type: Object, object: {metric: {name: a}, describedObject: {}, target: {value: 5k}}}
  - {type: External, external: {metric: {name: b}, target: {averageValue: "1500m"}}}
  - {type: Resource, resource: {name: cpu, target: {averageUtilization: 70}}}
  - {type: ContainerResource, containerResource: {name: memory, target: {averageValue: 1Gi}}}
status:
  currentReplicas: 2
  desiredReplicas: 3
  currentMetrics:
  - {type: Resource, resource: {name: cpu, current: {averageUtilization: 12, averageValue: 5m}}}
  - {type: ""}
"""


def test_every_type_of_metric_is_read_with_target_and_current_value() -> None:
    (hpa,) = parse(TEXT.encode(), PodDecoder()).hpas
    assert (hpa.low, hpa.high, hpa.current, hpa.desired) == (1, 8, 2, 3)
    assert hpa.metrics == (
        ShownMetric("Pods", "gpu_utilization", "60", "", "AverageValue"),
        ShownMetric("Object", "a", "5k", "", "Value"),
        ShownMetric("External", "b", "1500m", "", "AverageValue"),
        ShownMetric("Resource", "cpu", "70%", "12%", "Utilization"),
        ShownMetric("ContainerResource", "memory", "1Gi", "", "AverageValue"),
    )
    assert [metric.custom for metric in hpa.metrics] == [True, True, True, False, False]


def test_an_hpa_without_status_has_no_replicas_yet() -> None:
    spec = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "llm"}}
    hpa = decode(msgspec.json.encode({"metadata": {"name": "new"}, "spec": spec}))
    assert (hpa.current, hpa.desired, hpa.metrics, hpa.conditions) == (None, None, (), ())


def test_a_long_message_of_a_condition_is_cut() -> None:
    hpa = decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {"maxReplicas": 1, "scaleTargetRef": {"kind": "A", "name": "b"}},
                "status": {"conditions": [{"type": "ScalingActive", "message": "x" * 40_000}]},
            }
        )
    )
    assert len(hpa.conditions[0].message) == 1024


def test_an_hpa_with_very_many_metrics_keeps_64() -> None:
    metric = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"averageValue": "1"}}}
    condition = {"type": "ScalingActive", "status": "True"}
    hpa = decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"kind": "A", "name": "b"},
                    "metrics": [metric] * 5000,
                },
                "status": {"conditions": [condition] * 5000},
            }
        )
    )
    assert (len(hpa.metrics), len(hpa.conditions)) == (64, 64)


def _external(*names: str, current: tuple[str, ...]) -> ShownHpa:
    """An HPA with external metrics, and the current values of its status, in order."""

    def source(name: str, key: str, value: str) -> dict[str, object]:
        metric = {"metric": {"name": name}, key: {"value": value}}
        return {"type": "External", "external": metric}

    return decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"kind": "A", "name": "b"},
                    "metrics": [source(name, "target", "1") for name in names],
                },
                "status": {
                    "currentMetrics": [
                        source(name, "current", value)
                        for name, _, value in (text.partition("=") for text in current)
                    ]
                },
            }
        )
    )


def test_metrics_of_one_name_have_their_own_current_values() -> None:
    hpa = _external("q", "q", "r", current=("q=1", "q=2", "r=3"))
    assert [metric.current for metric in hpa.metrics] == ["1", "2", "3"]
    changed = _external("new", "r", "q", current=("q=1", "q=2", "r=3"))
    assert [metric.current for metric in changed.metrics] == ["", "3", ""]


def test_a_long_name_of_a_metric_is_cut() -> None:
    assert len(_external("q" * 100_000, current=()).metrics[0].name) == 253


def _decoded(spec: dict[str, object] | None = None, **body: object) -> ShownHpa:
    wanted = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "llm"}}
    manifest = {"metadata": {"name": "a"}, "spec": wanted | (spec or {})}
    return decode(msgspec.json.encode(manifest | body))


def test_what_a_judgement_needs_is_read() -> None:
    owners = [{"kind": "ScaledObject", "name": "llm"}]
    meta = {
        "name": "a",
        "creationTimestamp": "1970-01-01T00:01:40Z",
        "ownerReferences": owners,
        "generation": 4,
        "managedFields": [
            {"time": "1970-01-01T00:02:00Z"},
            {"time": "1970-01-01T00:09:00Z", "subresource": "status"},
        ],
    }
    status = {
        "lastScaleTime": "1970-01-01T00:03:20Z",
        "observedGeneration": 3,
        "conditions": [{"type": "x", "lastTransitionTime": "1970-01-01T00:05:00Z"}],
    }
    up, down = {"tolerance": "50m"}, {"selectPolicy": "Disabled"}
    behavior: dict[str, object] = {"behavior": {"scaleUp": up, "scaleDown": down}}
    hpa = _decoded(behavior, metadata=meta, status=status)
    assert (hpa.kind, hpa.created, hpa.last_scale) == ("Deployment", 100.0, 200.0)
    assert (hpa.scaled_object, hpa.unseen_since) == ("llm", 120.0)
    assert (hpa.tolerances, hpa.never_in, hpa.never_out) == ((0.1, 0.05), True, False)
    assert hpa.conditions[0].since == 300.0


def test_an_api_server_that_counts_no_generations_leaves_nothing_unseen() -> None:
    assert _decoded(metadata={"name": "a", "generation": 4}).unseen_since is None
    status = {"observedGeneration": 4}
    assert _decoded(metadata={"name": "a", "generation": 4}, status=status).unseen_since is None


def test_a_current_value_is_that_of_the_targets_type() -> None:
    target = {"type": "AverageValue", "averageValue": "500m"}
    current = {"averageUtilization": 12, "averageValue": "250m"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    now = {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    hpa = _decoded({"metrics": [metric]}, status={"currentMetrics": [now]})
    assert hpa.metrics == (ShownMetric("Resource", "cpu", "500m", "250m", "AverageValue"),)
    share = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}
    lost = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "250m"}}}
    hpa = _decoded({"metrics": [share]}, status={"currentMetrics": [lost]})
    assert hpa.metrics[0].current == ""


@pytest.mark.parametrize(
    ("conditions", "wants"),
    [
        ({}, None),
        ({"AbleToScale": "False"}, None),
        ({"AbleToScale": "True"}, 0),  # the controller corrects a size out of bounds
        ({"AbleToScale": "True", "ScalingActive": "False"}, None),
        ({"AbleToScale": "True", "ScalingActive": "True"}, 0),
    ],
)
def test_the_0_of_a_status_without_a_decision_is_not_a_wish(
    conditions: dict[str, str], wants: int | None
) -> None:
    rows = [{"type": kind, "status": status} for kind, status in conditions.items()]
    hpa = _decoded({}, status={"desiredReplicas": 0, "conditions": rows})
    assert hpa.wants == wants
    assert hpa.current == (0 if conditions.get("AbleToScale") == "True" else None)
