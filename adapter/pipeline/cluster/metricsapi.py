"""What the HPA controller asks of the metrics APIs, and what it reads from their answers.

Paths: ``k8s.io/metrics/pkg/client/custom_metrics/versioned_client.go`` and
``external_metrics/client.go``, as ``pkg/controller/podautoscaler/metrics/client.go`` of Kubernetes
calls them. An Object metric is always one of the HPA's own namespace: for an object of kind
Namespace, the controller ignores the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from adapter.hpa import MetricKind, MetricSpec, quantity
from adapter.pipeline.cluster.workload import plural
from apiservice.labels.manifest import selector_text
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.wire import instant
from apiservice.wire.metricvalues import CUSTOM_GROUP, EXTERNAL_GROUP

CUSTOM: Final = f"/apis/{CUSTOM_GROUP}"
EXTERNAL: Final = f"/apis/{EXTERNAL_GROUP}/v1beta1"
VIEW_GROUP: Final = "view.gpu-metrics-adapter.io"
"""The adapter's own API. No other program serves it."""
NEWEST: Final = "v1beta2"
"""The version of custom.metrics.k8s.io that the controller prefers."""
OLDER: Final = "v1beta1"


class GarbledAnswerError(ValueError):
    """The controller cannot decode a field of an answer, so it rejects the whole answer."""


class AnsweredValue(NamedTuple):
    """One value of an answer."""

    name: str
    """Of the described object; empty for an external metric."""
    milli: int
    """Thousandths."""
    time: float | None
    """Epoch seconds of the measurement; None if the answer does not say."""
    window: int | None
    """Seconds of its window; None for a newest value, and if the answer does not say."""


class _Object(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct, rename="camel"):
    value: str | int | float
    described_object: _Object = msgspec.field(default_factory=_Object)
    metric_name: str = ""
    timestamp: str | None = None
    window_seconds: int | None = None
    """Of a custom metric."""
    window: int | None = None
    """Of an external metric."""


class _List(msgspec.Struct):
    items: list[_Item] | None


_decoder = msgspec.json.Decoder(_List)


def read_values(answer: bytes | Mapping[str, Any]) -> list[AnsweredValue]:
    """Return the values of a MetricValueList or an ExternalMetricValueList.

    Args:
        answer: the JSON, or what was decoded from it.

    Raises:
        GarbledAnswerError: it is not such a list, or a value or a time is not valid.
    """
    try:
        decoded = (
            _decoder.decode(answer) if isinstance(answer, bytes) else msgspec.convert(answer, _List)
        )
    except UNREADABLE as error:
        raise GarbledAnswerError(f"it is not a list of values: {error}") from None
    return [_value(item) for item in decoded.items or ()]


def _value(item: _Item) -> AnsweredValue:
    name = item.described_object.name
    subject = name or item.metric_name
    try:
        milli = quantity.to_milli(quantity.parse(item.value))
    except ValueError:
        raise GarbledAnswerError(
            f"the value of {subject}, {item.value!r}, is not a quantity"
        ) from None
    time = instant.read(item.timestamp)
    if item.timestamp is not None and time is None:
        raise GarbledAnswerError(f"the timestamp of {subject}, {item.timestamp!r}, is not a time")
    window = item.window_seconds if item.window_seconds is not None else item.window
    return AnsweredValue(name, milli, time, window)


def value_path(metric: MetricSpec, selector: str, namespace: str, version: str = NEWEST) -> str:
    """Return the path that the controller asks for a metric's values.

    Args:
        metric: of type Pods, Object or External.
        selector: of the scale target's pods.
        namespace: of the HPA.
        version: of custom.metrics.k8s.io.

    Raises:
        KeyError, ValueError: the metric's selector is not valid.
    """
    chosen = selector_text(metric.selector)
    if metric.kind is MetricKind.EXTERNAL:
        return external_path(namespace, metric.name, chosen)
    described = metric.described
    if metric.kind is MetricKind.PODS or described is None:
        return pods_path(namespace, metric.name, selector, chosen, version)
    query = {"metricLabelSelector": chosen}
    if described.kind == "Namespace" and "/" not in described.api_version:
        return _path(f"{CUSTOM}/{version}", query, namespace, "metrics", metric.name)
    group, _, _ = described.api_version.rpartition("/")
    resource = plural(described.kind) + (f".{group}" if group else "")
    return _path(f"{CUSTOM}/{version}", query, namespace, resource, described.name, metric.name)


def pods_path(
    namespace: str, metric: str, selector: str = "", chosen: str = "", version: str = NEWEST
) -> str:
    """Return the path of a metric's values of all pods that a label selector matches.

    Args:
        namespace: of the pods.
        metric: the name.
        selector: of the pods' labels; empty for all pods.
        chosen: the metric's own selector; empty for none.
        version: of custom.metrics.k8s.io.
    """
    query = {"metricLabelSelector": chosen, "labelSelector": selector}
    return _path(f"{CUSTOM}/{version}", query, namespace, "pods", "*", metric)


def external_path(namespace: str, metric: str, chosen: str = "") -> str:
    """Return the path of an external metric's values; ``chosen`` is the metric's own selector."""
    return _path(EXTERNAL, {"labelSelector": chosen}, namespace, metric)


def _path(root: str, query: Mapping[str, str], *parts: str) -> str:
    path = "/".join(quote(part, safe="") for part in parts)
    encoded = urlencode({key: value for key, value in query.items() if value})
    return f"{root}/namespaces/{path}" + (f"?{encoded}" if encoded else "")
