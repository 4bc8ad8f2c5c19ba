"""Check a delegate's answer, and convert it between the versions of custom.metrics.k8s.io.

Values, times and described objects are passed on byte by byte.
"""

from __future__ import annotations

from typing import Any

import msgspec

from apiservice.delegate.failure import DelegateFailure
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.wire.metricvalues import CUSTOM_GROUP

_NULL = msgspec.Raw(b"null")
_json = msgspec.json.Encoder().encode


class _List(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    items: list[msgspec.Raw]


class _Metric(msgspec.Struct):
    name: str
    selector: msgspec.Raw = _NULL


class _Item(msgspec.Struct, rename="camel"):
    """An item of either version."""

    described_object: msgspec.Raw
    timestamp: msgspec.Raw
    value: msgspec.Raw
    metric_name: str = ""
    window: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    selector: msgspec.Raw = _NULL
    metric: _Metric | None = None
    window_seconds: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Status(msgspec.Struct):
    kind: str
    status: str
    message: str = ""


_decode_list = msgspec.json.Decoder(_List).decode
_decode_items = msgspec.json.Decoder(list[_Item]).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_KINDS = {CUSTOM_GROUP: "MetricValueList"}


def metric_list(body: bytes, group: str, version: str, wanted: str) -> bytes:
    """Return the list in the version that the client wants.

    Args:
        version: the version that the delegate was asked for.

    Raises:
        DelegateFailure: the answer is not such a list.
    """
    kind = _KINDS.get(group, "ExternalMetricValueList")
    try:
        answer = _decode_list(body)
        if (answer.kind, answer.api_version) != (kind, f"{group}/{version}"):
            raise DelegateFailure(
                "invalid", f"the answer is a {answer.kind[:80]} of {answer.api_version[:80]}"
            )
        if version == wanted:
            return body
        # Both versions are lists of the same items under other names.
        items = [_item(item, wanted) for item in _decode_items(_json(answer.items))]
    except UNREADABLE as error:
        raise DelegateFailure("invalid", f"the answer is not a {kind}: {error}") from error
    return _json({"kind": kind, "apiVersion": f"{group}/{wanted}", "metadata": {}, "items": items})


def _item(item: _Item, wanted: str) -> dict[str, Any]:
    metric = item.metric or _Metric(item.metric_name, item.selector)
    window = item.window if item.window_seconds is msgspec.UNSET else item.window_seconds
    made: dict[str, Any] = {"describedObject": item.described_object}
    if wanted == "v1beta2":
        made["metric"] = metric
    else:
        made["metricName"] = metric.name
    made["timestamp"] = item.timestamp
    if window is not msgspec.UNSET:
        made["windowSeconds" if wanted == "v1beta2" else "window"] = window
    made["value"] = item.value
    if wanted == "v1beta1":
        made["selector"] = metric.selector
    return made


def status_message(status: int, body: bytes) -> str:
    """Return the message of an error.

    Raises:
        DelegateFailure: the body is not a Status of a failure.
    """
    try:
        decoded = _decode_status(body)
    except UNREADABLE:
        decoded = _Status("", "")
    if (decoded.kind, decoded.status) != ("Status", "Failure"):
        raise DelegateFailure("invalid", f"status {status} without a Status object")
    return " ".join(decoded.message[:500].split())
