"""Lists of values are the bytes that the Kubernetes metrics clients read."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.labels.selector import EVERYTHING, parse
from apiservice.provider import ExternalValue, MetricValue, ObjectReference
from apiservice.runtime.steps import at_once
from apiservice.wire.metricvalues import external_metric_value_list, metric_value_list

MEASURED = 1767323045


def _pod(window: int | None = 30) -> MetricValue:
    return MetricValue(
        ObjectReference("Pod", "p0", "ns"), "gpu_utilization", 87_500, MEASURED, window
    )


def test_v1beta1_says_metric_name_and_window() -> None:
    assert at_once(metric_value_list("v1beta1", [_pod()], EVERYTHING)) == (
        b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},'
        b'"items":[{"describedObject":{"kind":"Pod","namespace":"ns","name":"p0",'
        b'"apiVersion":"v1"},"metricName":"gpu_utilization","timestamp":"2026-01-02T03:04:05Z",'
        b'"window":30,"value":"87500m","selector":null}]}'
    )


def test_v1beta2_says_metric_and_window_seconds() -> None:
    assert at_once(metric_value_list("v1beta2", [_pod()], EVERYTHING)) == (
        b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},'
        b'"items":[{"describedObject":{"kind":"Pod","namespace":"ns","name":"p0",'
        b'"apiVersion":"v1"},"metric":{"name":"gpu_utilization","selector":null},'
        b'"timestamp":"2026-01-02T03:04:05Z","windowSeconds":30,"value":"87500m"}]}'
    )


def test_external_says_metric_labels_in_order() -> None:
    value = ExternalValue("gpu_queue", {"zone": "z", "queue": "a"}, 42_000, MEASURED, 30)
    assert at_once(external_metric_value_list([value])) == (
        b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1",'
        b'"metadata":{},"items":[{"metricName":"gpu_queue",'
        b'"metricLabels":{"queue":"a","zone":"z"},"timestamp":"2026-01-02T03:04:05Z",'
        b'"window":30,"value":"42"}]}'
    )


def test_no_values_are_an_empty_list_never_null() -> None:
    assert at_once(metric_value_list("v1beta1", [], EVERYTHING)) == (
        b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},'
        b'"items":[]}'
    )
    assert at_once(external_metric_value_list([])).endswith(b'"items":[]}')


def test_a_momentary_value_has_no_window() -> None:
    for version in ("v1beta1", "v1beta2"):
        assert b"window" not in at_once(metric_value_list(version, [_pod(window=None)], EVERYTHING))
    value = ExternalValue("gpu_queue", {}, 0, MEASURED, None)
    assert at_once(external_metric_value_list([value])).endswith(
        b'"metricLabels":{},"timestamp":"2026-01-02T03:04:05Z","value":"0"}]}'
    )


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    value = MetricValue(ObjectReference("Node", "n1"), "gpu_utilization", 0, MEASURED, 30)
    body = at_once(metric_value_list("v1beta2", [value], EVERYTHING))
    assert b'"describedObject":{"kind":"Node","name":"n1","apiVersion":"v1"}' in body


def test_the_metric_selector_is_repeated_in_every_item() -> None:
    selector = parse("model=A100,sharing!=shared")
    filled = (
        b'"selector":{"matchLabels":{"model":"A100"},"matchExpressions":'
        b'[{"key":"sharing","operator":"NotIn","values":["shared"]}]}'
    )
    for version in ("v1beta1", "v1beta2"):
        assert at_once(metric_value_list(version, [_pod(), _pod()], selector)).count(filled) == 2


def test_an_item_is_rendered_once_per_version() -> None:
    value = _pod()
    first = at_once(metric_value_list("v1beta1", [value], EVERYTHING))
    value.rendered["v1beta1"] = b'{"kept":true}'
    assert at_once(metric_value_list("v1beta1", [value], EVERYTHING)) != first
    assert b"kept" not in at_once(metric_value_list("v1beta2", [value], EVERYTHING))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_long_metric_selector_is_in_the_first_item_only(version: str) -> None:
    """Otherwise, 600 pods and a selector of 13 kB make an answer of 8 MB."""
    where = parse(",".join(f"key{number}={'v' * 60}" for number in range(60)))
    content = at_once(metric_value_list(version, [_pod() for _ in range(100)], where))
    items = msgspec.json.decode(content)["items"]
    metrics = items if version == "v1beta1" else [item["metric"] for item in items]
    assert len(metrics[0]["selector"]["matchLabels"]) == 60
    assert [metric["selector"] for metric in metrics[1:]] == [None] * 99
    assert len(content) < 64 << 10


@given(name=st.text(max_size=30), metric=st.text(max_size=30))
def test_any_name_survives_the_journey_and_never_swallows_the_selector(
    name: str, metric: str
) -> None:
    value = MetricValue(ObjectReference("Pod", name, "ns"), metric, 1, MEASURED, None)
    decoded = msgspec.json.decode(at_once(metric_value_list("v1beta2", [value], parse("a=b"))))
    (item,) = decoded["items"]
    assert item["describedObject"]["name"] == name
    assert item["metric"] == {"name": metric, "selector": {"matchLabels": {"a": "b"}}}


def test_a_name_that_spells_the_selector_key_is_not_taken_for_it() -> None:
    trap = '"selector":null'
    value = MetricValue(ObjectReference("Pod", trap, "ns"), trap, 1, MEASURED, None)
    decoded = msgspec.json.decode(at_once(metric_value_list("v1beta2", [value], parse("a=b"))))
    assert decoded["items"][0]["metric"] == {
        "name": trap,
        "selector": {"matchLabels": {"a": "b"}},
    }
