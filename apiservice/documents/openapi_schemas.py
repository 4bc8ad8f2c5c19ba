"""JSON schemas of the metric types, after ``k8s.io/metrics/pkg/apis`` v0.36."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_METRICS = "io.k8s.metrics.pkg.apis"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE = "io.k8s.api.core.v1.ObjectReference"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

TYPE_META: Json = {
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
    schemas: Json = {
        list_type(group, version): _list(group, version, item, prefix),
        f"{META}.ListMeta": LIST_META,
        f"{META}.Time": {"type": "string", "format": "date-time"},
        _QUANTITY: {"type": "string", "description": "A fixed-point number such as 87500m."},
    }
    if group.startswith("external"):
        return schemas | {item: _external_value(prefix)}
    schemas |= {
        _REFERENCE: _OBJECT_REFERENCE,
        f"{META}.LabelSelector": _label_selector(prefix),
        f"{META}.LabelSelectorRequirement": _LABEL_SELECTOR_REQUIREMENT,
    }
    if version == "v1beta1":
        return schemas | {item: _value_v1beta1(prefix)}
    identifier = f"{_package(group, version)}.MetricIdentifier"
    return schemas | {
        item: _value_v1beta2(prefix, identifier),
        identifier: _metric_identifier(prefix),
    }


def described_reference(prefix: str, name: str, words: str) -> Json:
    """Return a reference to a definition, with a description."""
    # Siblings of $ref are ignored in both dialects: a description needs allOf.
    return {"allOf": [{"$ref": prefix + name}], "description": words}


def object_schema(properties: Json, required: list[str], words: str) -> Json:
    """Return the schema of an object."""
    schema: Json = {"type": "object", "description": words, "properties": properties}
    return schema | {"required": required} if required else schema


def _list(group: str, version: str, item: str, prefix: str) -> Json:
    kind = list_type(group, version).rpartition(".")[2]
    properties = TYPE_META | {
        "metadata": described_reference(
            prefix, f"{META}.ListMeta", "Standard metadata of the list."
        ),
        "items": {
            "type": "array",
            "items": {"$ref": prefix + item},
            "description": "The values.",
        },
    }
    gvk = {"group": group, "kind": kind, "version": version}
    return object_schema(properties, ["items"], "A list of metric values.") | {
        "x-kubernetes-group-version-kind": [gvk]
    }


def _measurement(prefix: str, window: str) -> Json:
    return {
        "timestamp": described_reference(prefix, f"{META}.Time", "When the value was measured."),
        window: {
            "type": "integer",
            "format": "int64",
            "description": "Seconds before the timestamp that the value is a mean over.",
        },
        "value": described_reference(prefix, _QUANTITY, "The value."),
    }


def _value_v1beta1(prefix: str) -> Json:
    properties = (
        TYPE_META
        | {
            "describedObject": described_reference(
                prefix, _REFERENCE, "The object the value is about."
            ),
            "metricName": {"type": "string", "description": "The metric's name."},
            "selector": described_reference(
                prefix, f"{META}.LabelSelector", "The metric's selector."
            ),
        }
        | _measurement(prefix, "window")
    )
    required = ["describedObject", "metricName", "timestamp", "value", "selector"]
    return object_schema(properties, required, "The value of a metric for one object.")


def _value_v1beta2(prefix: str, identifier: str) -> Json:
    properties = (
        TYPE_META
        | {
            "describedObject": described_reference(
                prefix, _REFERENCE, "The object the value is about."
            ),
            "metric": described_reference(prefix, identifier, "The metric."),
        }
        | _measurement(prefix, "windowSeconds")
    )
    required = ["describedObject", "metric", "timestamp", "value"]
    return object_schema(properties, required, "The value of a metric for one object.")


def _metric_identifier(prefix: str) -> Json:
    properties = {
        "name": {"type": "string", "description": "The metric's name."},
        "selector": described_reference(
            prefix, f"{META}.LabelSelector", "The selector of the request."
        ),
    }
    return object_schema(properties, ["name", "selector"], "A metric's name and selector.")


def _external_value(prefix: str) -> Json:
    labels = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "The labels that identify a series of the metric.",
    }
    properties = (
        TYPE_META
        | {
            "metricName": {"type": "string", "description": "The metric's name."},
            "metricLabels": labels,
        }
        | _measurement(prefix, "window")
    )
    required = ["metricName", "metricLabels", "timestamp", "value"]
    return object_schema(properties, required, "The value of one series of an external metric.")


LIST_META = object_schema(
    {
        "continue": {
            "type": "string",
            "description": "Position of the next page; set if the list has one.",
        },
        "remainingItemCount": {
            "type": "integer",
            "format": "int64",
            "description": "Objects after this page; not set if a selector may leave out some.",
        },
        "resourceVersion": {"type": "string", "description": "Opaque; no watch can use it."},
    },
    [],
    "Metadata of a list.",
)

_OBJECT_REFERENCE = object_schema(
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

_LABEL_SELECTOR_REQUIREMENT = object_schema(
    {
        "key": {"type": "string", "description": "The label's key."},
        "operator": {"type": "string", "description": "In, NotIn, Exists or DoesNotExist."},
        "values": {"type": "array", "items": {"type": "string"}, "description": "The values."},
    },
    ["key", "operator"],
    "One condition of a selector.",
)


def _label_selector(prefix: str) -> Json:
    expression = {"$ref": f"{prefix}{META}.LabelSelectorRequirement"}
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
    return object_schema(properties, [], "Selects by labels; empty selects everything.")
