"""JSON schemas of the metric types, after ``k8s.io/metrics/pkg/apis`` v0.36."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_METRICS = "io.k8s.metrics.pkg.apis"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE = "io.k8s.api.core.v1.ObjectReference"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

_TYPE_META: Json = {
    "apiVersion": {"type": "string", "description": "The versioned schema of this object."},
    "kind": {"type": "string", "description": "The REST resource this object represents."},
}


def _package(group: str, version: str) -> str:
    return f"{_METRICS}.{group.split('.', 1)[0]}_metrics.{version}"


def list_type(group: str, version: str) -> str:
    """Return the name of the definition of the group-version's list."""
    kind = "ExternalMetricValueList" if group.startswith("external") else "MetricValueList"
    return f"{_package(group, version)}.{kind}"


def definitions(group: str, version: str, prefix: str) -> Json:
    """Return all definitions that a group-version's list needs; ``prefix`` starts a ``$ref``."""
    item = list_type(group, version).removesuffix("List")
    found: Json = {
        list_type(group, version): _list(group, version, item, prefix),
        f"{_META}.ListMeta": _LIST_META,
        f"{_META}.Time": {"type": "string", "format": "date-time"},
        _QUANTITY: {"type": "string", "description": "A fixed-point number such as 87500m."},
    }
    if group.startswith("external"):
        return found | {item: _external_value(prefix)}
    found |= {
        _REFERENCE: _OBJECT_REFERENCE,
        f"{_META}.LabelSelector": _label_selector(prefix),
        f"{_META}.LabelSelectorRequirement": _LABEL_SELECTOR_REQUIREMENT,
    }
    if version == "v1beta1":
        return found | {item: _value_v1beta1(prefix)}
    identifier = f"{_package(group, version)}.MetricIdentifier"
    return found | {
        item: _value_v1beta2(prefix, identifier),
        identifier: _metric_identifier(prefix),
    }


def _ref(prefix: str, name: str, words: str) -> Json:
    # Siblings of $ref are ignored in both dialects: a description needs allOf.
    return {"allOf": [{"$ref": prefix + name}], "description": words}


def _object(properties: Json, required: list[str], words: str) -> Json:
    schema: Json = {"type": "object", "description": words, "properties": properties}
    return schema | {"required": required} if required else schema


def _list(group: str, version: str, item: str, prefix: str) -> Json:
    kind = list_type(group, version).rpartition(".")[2]
    properties = _TYPE_META | {
        "metadata": _ref(prefix, f"{_META}.ListMeta", "Always empty."),
        "items": {
            "type": "array",
            "items": {"$ref": prefix + item},
            "description": "The values.",
        },
    }
    gvk = {"group": group, "kind": kind, "version": version}
    return _object(properties, ["items"], "A list of metric values.") | {
        "x-kubernetes-group-version-kind": [gvk]
    }


def _measurement(prefix: str, window: str) -> Json:
    return {
        "timestamp": _ref(prefix, f"{_META}.Time", "When the value was measured."),
        window: {
            "type": "integer",
            "format": "int64",
            "description": "Seconds before the timestamp that the value is a mean over.",
        },
        "value": _ref(prefix, _QUANTITY, "The value."),
    }


def _value_v1beta1(prefix: str) -> Json:
    properties = (
        _TYPE_META
        | {
            "describedObject": _ref(prefix, _REFERENCE, "The object the value is about."),
            "metricName": {"type": "string", "description": "The metric's name."},
            "selector": _ref(prefix, f"{_META}.LabelSelector", "The metric's selector."),
        }
        | _measurement(prefix, "window")
    )
    required = ["describedObject", "metricName", "timestamp", "value", "selector"]
    return _object(properties, required, "The value of a metric for one object.")


def _value_v1beta2(prefix: str, identifier: str) -> Json:
    properties = (
        _TYPE_META
        | {
            "describedObject": _ref(prefix, _REFERENCE, "The object the value is about."),
            "metric": _ref(prefix, identifier, "The metric."),
        }
        | _measurement(prefix, "windowSeconds")
    )
    required = ["describedObject", "metric", "timestamp", "value"]
    return _object(properties, required, "The value of a metric for one object.")


def _metric_identifier(prefix: str) -> Json:
    properties = {
        "name": {"type": "string", "description": "The metric's name."},
        "selector": _ref(prefix, f"{_META}.LabelSelector", "The selector of the request."),
    }
    return _object(properties, ["name", "selector"], "A metric's name and selector.")


def _external_value(prefix: str) -> Json:
    labels = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "The labels that identify a series of the metric.",
    }
    properties = (
        _TYPE_META
        | {
            "metricName": {"type": "string", "description": "The metric's name."},
            "metricLabels": labels,
        }
        | _measurement(prefix, "window")
    )
    required = ["metricName", "metricLabels", "timestamp", "value"]
    return _object(properties, required, "The value of one series of an external metric.")


_LIST_META = _object(
    {
        "continue": {"type": "string", "description": "Never set."},
        "remainingItemCount": {"type": "integer", "format": "int64", "description": "Never set."},
        "resourceVersion": {"type": "string", "description": "Never set."},
    },
    [],
    "Metadata of a list.",
)

_OBJECT_REFERENCE = _object(
    {
        name: {"type": "string", "description": words}
        for name, words in (
            ("apiVersion", "The API version of the referent."),
            ("fieldPath", "Never set."),
            ("kind", "The kind of the referent."),
            ("name", "The name of the referent."),
            ("namespace", "The namespace of the referent."),
            ("resourceVersion", "Never set."),
            ("uid", "Never set."),
        )
    },
    [],
    "A reference to the object that a value is about.",
)

_LABEL_SELECTOR_REQUIREMENT = _object(
    {
        "key": {"type": "string", "description": "The label's key."},
        "operator": {"type": "string", "description": "In, NotIn, Exists or DoesNotExist."},
        "values": {"type": "array", "items": {"type": "string"}, "description": "The values."},
    },
    ["key", "operator"],
    "One condition of a selector.",
)


def _label_selector(prefix: str) -> Json:
    expression = {"$ref": f"{prefix}{_META}.LabelSelectorRequirement"}
    properties = {
        "matchExpressions": {
            "type": "array",
            "items": expression,
            "description": "Conditions that must all hold.",
        },
        "matchLabels": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Labels that must all be present.",
        },
    }
    return _object(properties, [], "Selects by labels; empty selects everything.")
