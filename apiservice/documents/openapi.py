"""OpenAPI documents of the served group-versions: Swagger 2.0 and OpenAPI 3.0.

The documents are static. kube-apiserver polls them once a minute per APIService and merges them
into its own, so definitions have upstream's names (``k8s.io/metrics``, ``k8s.io/apimachinery``).
FastAPI's own schema is 3.1 and does not contain these routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from apiservice.documents.document import Document
from apiservice.documents.openapi_operation import Operation
from apiservice.documents.openapi_schemas import (
    LIST_META,
    META,
    TYPE_META,
    Json,
    definitions,
    described_reference,
    list_type,
    object_schema,
)
from apiservice.view.resource import ViewGroup, ViewResource
from apiservice.wire.metricvalues import EXTERNAL_GROUP

_OBJECT_META: Final = object_schema(
    {
        "name": {"type": "string", "description": "The object's name."},
        "namespace": {"type": "string", "description": "The object's namespace."},
        "uid": {"type": "string", "description": "The UID of the object that is described."},
        "creationTimestamp": {
            "type": "string",
            "format": "date-time",
            "description": "When the object that is described was created.",
        },
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Labels, by which a list selects objects.",
        },
    },
    [],
    "Metadata of an object.",
)
_LIST_QUERY: Final = (
    ("labelSelector", "string", "Restricts the list by the objects' labels."),
    ("fieldSelector", "string", "Restricts the list by the objects' fields."),
    ("limit", "integer", "The most objects of one answer; continue names the rest."),
    ("continue", "string", "Position in the list, from the metadata of the page before."),
    ("resourceVersion", "string", "Accepted and ignored."),
    ("timeoutSeconds", "integer", "Accepted and ignored."),
    ("watch", "boolean", "Not supported: answered with 405."),
)
_PRETTY: Final = ("pretty", "string", "Accepted and ignored.")
_TITLE = "Kubernetes metrics API"
_QUERY = (
    ("labelSelector", "string", "Restricts the list by the objects' (or series') labels."),
    ("limit", "integer", "Accepted and ignored."),
    ("pretty", "string", "Accepted and ignored."),
    ("timeoutSeconds", "integer", "Accepted and ignored."),
)
_METRIC_QUERY = ("metricLabelSelector", "string", "Restricts the values by the metric's labels.")


def package(group: ViewGroup) -> str:
    """Return what the names of the group's definitions begin with."""
    first, _, domain = group.group.partition(".")
    return ".".join([*reversed(domain.split(".")), first, group.version])


def view_definitions(group: ViewGroup, prefix: str) -> Json:
    """Return all definitions of a group; ``prefix`` starts a ``$ref``."""
    schemas: Json = {f"{META}.ObjectMeta": _OBJECT_META, f"{META}.ListMeta": LIST_META}
    for resource, *_ in group.views:
        name = f"{package(group)}.{resource.kind}"
        schemas[name] = _object(group, resource, prefix)
        schemas[f"{name}List"] = _list(group, resource, prefix + name, prefix)
    return schemas


def _object(group: ViewGroup, resource: ViewResource, prefix: str) -> Json:
    properties = resource.schema.get("properties", {})
    metadata = described_reference(prefix, f"{META}.ObjectMeta", "Standard metadata of the object.")
    return resource.schema | {
        "type": "object",
        "properties": {**TYPE_META, "metadata": metadata, **properties},
        "x-kubernetes-group-version-kind": [_kind(group, resource.kind)],
    }


def _list(group: ViewGroup, resource: ViewResource, item: str, prefix: str) -> Json:
    properties = {
        **TYPE_META,
        "metadata": described_reference(
            prefix, f"{META}.ListMeta", "Standard metadata of the list."
        ),
        "items": {"type": "array", "items": {"$ref": item}, "description": "The objects."},
    }
    kind = f"{resource.kind}List"
    schema = object_schema(properties, ["items"], f"A list of {resource.plural}.")
    return schema | {"x-kubernetes-group-version-kind": [_kind(group, kind)]}


def _kind(group: ViewGroup, kind: str) -> Json:
    return {"group": group.group, "kind": kind, "version": group.version}


def view_operations(group: ViewGroup) -> list[Operation]:
    """Return all paths of a group."""
    operations: list[Operation] = []
    for resource, *_ in group.views:
        everywhere = "ForAllNamespaces" if resource.namespaced else ""
        operations.append(_list_operation(group, resource, "", everywhere))
        below = ""
        if resource.namespaced:
            below = "namespaces/{namespace}/"
            operations.append(_list_operation(group, resource, below, "InNamespace"))
        operations.append(
            Operation(
                f"/apis/{group.api_version}/{below}{resource.plural}/{{name}}",
                f"{package(group)}.{resource.kind}",
                _entry(group, resource, "get", f"read{resource.kind}"),
                (_PRETTY,),
            )
        )
    return operations


def _list_operation(group: ViewGroup, resource: ViewResource, below: str, scope: str) -> Operation:
    return Operation(
        f"/apis/{group.api_version}/{below}{resource.plural}",
        f"{package(group)}.{resource.kind}List",
        _entry(group, resource, "list", f"list{resource.kind}{scope}"),
        (*_LIST_QUERY, _PRETTY),
    )


def _entry(group: ViewGroup, resource: ViewResource, action: str, name: str) -> Json:
    stem = group.group.split(".", 1)[0] + group.version.capitalize()
    return {
        "description": f"{action} {resource.plural}",
        "operationId": f"{name}{stem.capitalize()}",
        "tags": [stem],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(group, resource.kind),
    }


class _Described(NamedTuple):
    """The description of one group-version."""

    name: str
    """Such as ``apis/custom.metrics.k8s.io/v1beta2``."""
    definitions: Callable[[str], Json]
    """Returns its definitions; takes what a ``$ref`` begins with."""
    operations: list[Operation]


class OpenApi:
    """All documents of a server, built once."""

    def __init__(
        self,
        group_versions: Iterable[tuple[str, str]],
        release: str,
        views: Iterable[ViewGroup] = (),
    ) -> None:
        served = [_metrics(group, version) for group, version in group_versions]
        served += map(_views, views)
        self.v2 = Document(_swagger(served, release))
        self.v3 = {described.name: Document(_openapi3(described, release)) for described in served}
        self.v3_root = Document(
            {
                "paths": {
                    name: {"serverRelativeURL": self.url(name, document)}
                    for name, document in self.v3.items()
                }
            }
        )

    @staticmethod
    def url(name: str, document: Document) -> str:
        """Return the immutable URL of the current content of ``apis/GROUP/VERSION``."""
        return f"/openapi/v3/{name}?hash={document.hash}"


def _metrics(group: str, version: str) -> _Described:
    return _Described(
        f"apis/{group}/{version}",
        lambda prefix: definitions(group, version, prefix),
        _operations(group, version),
    )


def _views(group: ViewGroup) -> _Described:
    return _Described(
        f"apis/{group.api_version}",
        lambda prefix: view_definitions(group, prefix),
        view_operations(group),
    )


def _swagger(served: list[_Described], release: str) -> Json:
    schemas: Json = {}
    for group in served:
        schemas |= group.definitions("#/definitions/")
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": release},
        "paths": {
            operation.path: operation.swagger()
            for group in served
            for operation in group.operations
        },
        "definitions": schemas,
    }


def _openapi3(group: _Described, release: str) -> Json:
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": {operation.path: operation.openapi3() for operation in group.operations},
        "components": {"schemas": group.definitions("#/components/schemas/")},
    }


def _operations(group: str, version: str) -> list[Operation]:
    base = f"/apis/{group}/{version}"
    stem = f"{group.split('.', 1)[0].capitalize()}Metrics{version.capitalize()}"
    if group == EXTERNAL_GROUP:
        routes = [("namespaces/{namespace}/{metric}", "Namespaced", "values of an external metric")]
    else:
        routes = [
            ("{resource}/{name}/{metric}", "", "values about cluster-scoped objects"),
            (
                "namespaces/{namespace}/{resource}/{name}/{metric}",
                "Namespaced",
                "values about objects in a namespace",
            ),
            ("namespaces/{namespace}/metrics/{metric}", "OfNamespace", "the value of a namespace"),
        ]
    answer = list_type(group, version)
    kind = {"group": group, "kind": answer.rpartition(".")[2]}
    return [
        Operation(
            f"{base}/{route}",
            answer,
            {
                "description": f"list the {words}",
                "operationId": f"list{stem}{scope}",
                "tags": [f"{stem[0].lower()}{stem[1:]}"],
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": kind | {"version": version},
            },
            _QUERY if group == EXTERNAL_GROUP else (*_QUERY, _METRIC_QUERY),
        )
        for route, scope, words in routes
    ]
