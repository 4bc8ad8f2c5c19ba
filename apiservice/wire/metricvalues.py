"""Metric values as JSON bytes: the lists of ``k8s.io/metrics`` v1beta1 and v1beta2.

An item is rendered once per API version and cached in the value, so that a list is a join of
fragments. Keys have the order of upstream's structs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from apiservice.errors import BadQuery
from apiservice.labels.selector import Selector
from apiservice.provider import ExternalValue, MetricValue
from apiservice.runtime.steps import Steps, parts
from apiservice.wire import instant
from apiservice.wire.quantity import format_milli

CUSTOM_GROUP = "custom.metrics.k8s.io"
EXTERNAL_GROUP = "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
"""API versions, the preferred one first."""
EXTERNAL_VERSIONS = ("v1beta1",)

MAX_BYTES: Final = 16 << 20
"""Bytes that the items of one answer may take: some 60,000 pods."""
_STEP: Final = 32
"""Items that are rendered in one step."""
_SELECTORS: Final = 256 << 10
"""Bytes that the repeated metric selector may take; a longer one is in the first item only."""
_NO_SELECTOR = b'"selector":null'
_json = msgspec.json.Encoder().encode


def metric_value_list(
    version: str, values: Sequence[MetricValue], selector: Selector
) -> Steps[bytes]:
    """Render a ``MetricValueList`` of custom.metrics.k8s.io; ``selector`` is the metric's.

    Raises:
        BadQuery: the list would be too large.
    """
    render = _RENDERERS[version]
    fragments: list[bytes] = []
    form = selector.match_labels()
    # Inside a JSON string a quote is escaped: the first match is the key.
    filled = b"" if form is None else b'"selector":' + _json(form)
    size, once = 0, len(filled) * len(values) > _SELECTORS
    for some in parts(values, _STEP):
        made = [value.rendered.get(version) or _remember(value, version, render) for value in some]
        if filled and once:
            made[0], filled = made[0].replace(_NO_SELECTOR, filled, 1), b""
        elif filled:
            made = [fragment.replace(_NO_SELECTOR, filled, 1) for fragment in made]
        size = _fits(size, made)
        fragments += made
        yield
    return _list("MetricValueList", f"{CUSTOM_GROUP}/{version}", fragments)


def external_metric_value_list(values: Sequence[ExternalValue]) -> Steps[bytes]:
    """Render an ``ExternalMetricValueList`` of external.metrics.k8s.io/v1beta1.

    Raises:
        BadQuery: the list would be too large.
    """
    fragments: list[bytes] = []
    size = 0
    for some in parts(values, _STEP):
        made = [_external(value) for value in some]
        size = _fits(size, made)
        fragments += made
        yield
    return _list("ExternalMetricValueList", f"{EXTERNAL_GROUP}/v1beta1", fragments)


def _fits(size: int, more: Sequence[bytes]) -> int:
    """Return the size with further items.

    Raises:
        BadQuery: the size is too large.
    """
    size += sum(map(len, more))
    if size > MAX_BYTES:
        raise BadQuery(
            f"the answer would be larger than {MAX_BYTES >> 20} MiB: select fewer objects with "
            f"labelSelector, or request each namespace separately"
        )
    return size


def _list(kind: str, api_version: str, fragments: Sequence[bytes]) -> bytes:
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{}},"items":['
    return head.encode() + b",".join(fragments) + b"]}"


def _remember(value: MetricValue, version: str, render: Callable[[MetricValue], bytes]) -> bytes:
    fragment = render(value)
    value.rendered[version] = fragment
    return fragment


def _object_reference(value: MetricValue) -> dict[str, str]:
    described = value.described
    reference = {"kind": described.kind}
    if described.namespace is not None:
        reference["namespace"] = described.namespace
    return reference | {"name": described.name, "apiVersion": described.api_version}


def _v1beta1(value: MetricValue) -> bytes:
    item: dict[str, Any] = {
        "describedObject": _object_reference(value),
        "metricName": value.metric,
        "timestamp": instant.write(value.timestamp),
    }
    if value.window is not None:
        item["window"] = value.window
    item["value"] = format_milli(value.milli)
    item["selector"] = None
    return _json(item)


def _v1beta2(value: MetricValue) -> bytes:
    item: dict[str, Any] = {
        "describedObject": _object_reference(value),
        "metric": {"name": value.metric, "selector": None},
        "timestamp": instant.write(value.timestamp),
    }
    if value.window is not None:
        item["windowSeconds"] = value.window
    item["value"] = format_milli(value.milli)
    return _json(item)


def _external(value: ExternalValue) -> bytes:
    item: dict[str, Any] = {
        "metricName": value.metric,
        "metricLabels": dict(sorted(value.labels.items())),
        "timestamp": instant.write(value.timestamp),
    }
    if value.window is not None:
        item["window"] = value.window
    item["value"] = format_milli(value.milli)
    return _json(item)


_RENDERERS: dict[str, Callable[[MetricValue], bytes]] = {"v1beta1": _v1beta1, "v1beta2": _v1beta2}
