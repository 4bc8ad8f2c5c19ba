"""The paths of the HPA controller, and what it reads from the answers: one room for every tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.hpa import MetricSpec
from adapter.hpa.manifest import from_manifest
from adapter.pipeline.cluster.metricsapi import (
    AnsweredValue,
    GarbledAnswerError,
    external_path,
    pods_path,
    read_values,
    value_path,
)

NAMESPACED = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team"
NAMED = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}}


def _object(api_version: str, kind: str, name: str) -> dict[str, Any]:
    described = {"apiVersion": api_version, "kind": kind, "name": name}
    return {"type": "Object", "object": {**NAMED, "describedObject": described}}


def _pods(selector: dict[str, Any]) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": "50"}
    return {
        "type": "Pods",
        "pods": {"metric": {"name": "u", "selector": selector}, "target": target},
    }


PATHS = {
    "pods": (_pods({}), "/pods/%2A/u?labelSelector=app%3Dx"),
    "pods of a selection": (
        _pods({"matchLabels": {"sharing": "shared"}}),
        "/pods/%2A/u?metricLabelSelector=sharing%3Dshared&labelSelector=app%3Dx",
    ),
    "an object of a group": (
        _object("apps/v1", "Deployment", "llm"),
        "/deployments.apps/llm/queue",
    ),
    "an object of the core group": (_object("v1", "Service", "llm"), "/services/llm/queue"),
    "its own namespace": (_object("v1", "Namespace", "team"), "/metrics/queue"),
    "a namespace of another name, which the controller ignores": (
        _object("v1", "Namespace", "other"),
        "/metrics/queue",
    ),
    "a Namespace of another group": (
        _object("example.com/v1", "Namespace", "other"),
        "/namespaces.example.com/other/queue",
    ),
    "a kind that ends in y": (_object("x.io/v1", "Gateway", "a b"), "/gateways.x.io/a%20b/queue"),
}
"""A metric of an HPA in the namespace ``team``, and the path of its values below NAMESPACED."""


def _spec(metric: dict[str, Any]) -> MetricSpec:
    target = {"kind": "Deployment", "name": "llm", "apiVersion": "apps/v1"}
    return from_manifest(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "llm", "namespace": "team"},
            "spec": {"maxReplicas": 2, "scaleTargetRef": target, "metrics": [metric]},
        }
    ).metrics[0]


@pytest.mark.parametrize(("metric", "path"), PATHS.values(), ids=PATHS)
def test_a_path_is_the_one_of_the_controller(metric: dict[str, Any], path: str) -> None:
    assert value_path(_spec(metric), "app=x", "team") == NAMESPACED + path


def test_an_external_metric_has_the_selector_of_the_metric() -> None:
    metric = {"name": "s0", "selector": {"matchLabels": {"app": "x"}}}
    external = {"type": "External", "external": {**NAMED, "metric": metric}}
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/team/s0"
    assert value_path(_spec(external), "unused=true", "team") == f"{path}?labelSelector=app%3Dx"
    assert external_path("team", "s0") == path


def test_an_older_server_is_asked_at_its_version() -> None:
    path = pods_path("team", "u", version="v1beta1")
    assert path == "/apis/custom.metrics.k8s.io/v1beta1/namespaces/team/pods/%2A/u"


ITEM = {
    "describedObject": {"kind": "Pod", "name": "a", "apiVersion": "/v1"},
    "metric": {"name": "u"},
    "timestamp": "2026-01-31T12:00:00Z",
    "windowSeconds": 15,
    "value": "12500m",
}


def test_a_value_has_its_name_time_and_window() -> None:
    answer = {"kind": "MetricValueList", "items": [ITEM]}
    expected = [AnsweredValue("a", 12_500, 1_769_860_800.0, 15)]
    assert read_values(answer) == expected
    assert read_values(json.dumps(answer).encode()) == expected


def test_an_external_value_has_no_name_and_may_have_no_time() -> None:
    items = [{"metricName": "s0", "value": "2k", "window": 30}]
    assert read_values({"items": items}) == [AnsweredValue("", 2_000_000, None, 30)]


@pytest.mark.parametrize("items", [[], None])
def test_an_empty_list_has_no_values(items: object) -> None:
    assert read_values({"items": items}) == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "not a list of values"),
        (b"<html>", "not a list of values"),
        ({"kind": "Status"}, "missing required field `items`"),
        ({"items": [{}]}, "missing required field `value`"),
        ({"items": [ITEM | {"value": "many"}]}, "the value of a, 'many', is not a quantity"),
        ({"items": [ITEM | {"value": None}]}, "not a list of values"),
        ({"items": [ITEM | {"value": "x" * 90_000}]}, "the value of a"),
        ({"items": [ITEM | {"timestamp": "noon"}]}, "the timestamp of a, 'noon', is not a time"),
        ({"items": [ITEM | {"windowSeconds": "15"}]}, "not a list of values"),
    ],
)
def test_an_answer_that_the_controller_rejects_is_named(answer: Any, why: str) -> None:
    with pytest.raises(GarbledAnswerError, match=why):
        read_values(answer)
