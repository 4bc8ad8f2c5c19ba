"""Values of HPAs' metrics are requested as the HPA controller requests them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapter.hpa import Missing
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.seen.metricvalues import MetricValues
from adapter.nodepool.seen.targets import ScaleTarget, pods_by_workload, targets
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import cluster, deployment, hpa, node, pod

ROOT = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team"
VALUE = {"type": "Value", "value": "5"}
AVERAGE = {"type": "AverageValue", "averageValue": "50"}
REF = WorkloadRef("team", "Deployment", "inference")


def target(*metrics: dict[str, Any]) -> ScaleTarget:
    seen = cluster(
        nodes=[node("n")],
        pods=[pod("a", on="n")],
        deployments=[deployment(1)],
        autoscalers=[hpa(metrics)],
    )
    (scale_target,) = targets(seen, pods_by_workload(seen.pods)).targets
    return scale_target


PODS = {
    "type": "Pods",
    "pods": {
        "metric": {"name": "gpu_utilization", "selector": {"matchLabels": {"sharing": "shared"}}},
        "target": AVERAGE,
    },
}
OBJECT = {
    "type": "Object",
    "object": {
        "metric": {"name": "queue"},
        "describedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"},
        "target": VALUE,
    },
}
NAMESPACE = {
    "type": "Object",
    "object": {
        "metric": {"name": "queue"},
        "describedObject": {"apiVersion": "v1", "kind": "Namespace", "name": "team"},
        "target": VALUE,
    },
}
EXTERNAL = {
    "type": "External",
    "external": {
        "metric": {"name": "s0-gpu", "selector": {"matchLabels": {"app": "x"}}},
        "target": VALUE,
    },
}


def items(*rows: tuple[str, str]) -> dict[str, Any]:
    return {"items": [{"describedObject": {"name": name}, "value": v} for name, v in rows]}


async def test_values_are_thousandths_in_the_order_of_the_metrics() -> None:
    api = FakeApi()
    api.objects[f"{ROOT}/pods/%2A/gpu_utilization"] = items(("a", "90"), ("b", "12500m"))
    api.objects[f"{ROOT}/deployments.apps/inference/queue"] = items(("inference", "7"))
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/team/s0-gpu"
    api.objects[path] = items(("", "1"), ("", "2"))
    values = await MetricValues(api).read([target(PODS, OBJECT, EXTERNAL)], 5)
    assert values == {REF: ({"a": 90_000, "b": 12_500}, 7000, (1000, 2000))}


async def test_a_request_without_an_answer_is_missing_and_counted() -> None:
    api = FakeApi()
    api.fail("GET", "gpu_utilization", 503, "no endpoints")
    api.objects[f"{ROOT}/deployments.apps/inference/queue"] = {"items": [{"value": "x"}]}
    values = MetricValues(api)
    ((pods, queue),) = (await values.read([target(PODS, OBJECT)], 5)).values()
    assert isinstance(pods, Missing)
    assert isinstance(queue, Missing)
    assert values.failures == {"503": 1, "garbled": 1}


async def test_a_late_answer_is_missing() -> None:
    async def never(*_: object, **__: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    values = MetricValues(never)
    assert await values.read([target(PODS)], 0.01) == {REF: (Missing("no answer in time"),)}
    assert values.failures == {"late": 1}


@pytest.mark.parametrize(
    "row", [{"key": "app"}, {"key": "app", "operator": "Like"}], ids=["no operator", "unknown"]
)
async def test_an_invalid_selector_affects_only_its_metric(row: dict[str, Any]) -> None:
    """The API server stores such an HPA."""
    api = FakeApi()
    api.objects[f"{ROOT}/deployments.apps/inference/queue"] = items(("inference", "7"))
    metric = {"name": "gpu_utilization", "selector": {"matchExpressions": [row]}}
    values = MetricValues(api)
    bad = {"type": "Pods", "pods": {"metric": metric, "target": AVERAGE}}
    ((pods, queue),) = (await values.read([target(bad, OBJECT)], 5)).values()
    assert isinstance(pods, Missing)
    assert queue == 7000
    assert values.failures["selector"] == 1


async def test_namespaces_without_an_answer_are_absent() -> None:
    api = FakeApi()
    api.objects[f"{ROOT}/pods/%2A/gpu_utilization"] = items(("a", "0"))
    values = await MetricValues(api).pods(["team", "other"], "gpu_utilization", 5)
    assert values == {"team": {"a": 0.0}}


async def test_reading_pods_ends_at_the_timeout() -> None:
    async def never(*_: object, **__: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    assert await MetricValues(never).pods(["team", "other"], "gpu_utilization", 0.01) == {}
