"""OpenAPI of read-only resources: their schemas and operations, as kubectl reads them.

``kubectl explain`` looks a kind up by ``x-kubernetes-group-version-kind`` and follows ``$ref``.
Definitions have names of this server's own group, and upstream's for what belongs to upstream.
"""

from __future__ import annotations

from typing import Final

from apiservice.documents.openapi_operation import Operation
from apiservice.documents.openapi_schemas import (
    LIST_META,
    META,
    TYPE_META,
    Json,
    described,
    object_schema,
)
from apiservice.view.resource import ViewGroup, ViewResource

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


def package(group: ViewGroup) -> str:
    """Return what the names of the group's definitions begin with."""
    own, _, domain = group.group.partition(".")
    return ".".join([*reversed(domain.split(".")), own, group.version])


def view_definitions(group: ViewGroup, prefix: str) -> Json:
    """Return all definitions of a group; ``prefix`` starts a ``$ref``."""
    found: Json = {f"{META}.ObjectMeta": _OBJECT_META, f"{META}.ListMeta": LIST_META}
    for resource, _ in group.views:
        name = f"{package(group)}.{resource.kind}"
        found[name] = _object(group, resource, prefix)
        found[f"{name}List"] = _list(group, resource, prefix + name, prefix)
    return found


def _object(group: ViewGroup, resource: ViewResource, prefix: str) -> Json:
    own = resource.schema.get("properties", {})
    metadata = described(prefix, f"{META}.ObjectMeta", "Standard metadata of the object.")
    return resource.schema | {
        "type": "object",
        "properties": {**TYPE_META, "metadata": metadata, **own},
        "x-kubernetes-group-version-kind": [_kind(group, resource.kind)],
    }


def _list(group: ViewGroup, resource: ViewResource, item: str, prefix: str) -> Json:
    properties = {
        **TYPE_META,
        "metadata": described(prefix, f"{META}.ListMeta", "Standard metadata of the list."),
        "items": {"type": "array", "items": {"$ref": item}, "description": "The objects."},
    }
    kind = f"{resource.kind}List"
    schema = object_schema(properties, ["items"], f"A list of {resource.plural}.")
    return schema | {"x-kubernetes-group-version-kind": [_kind(group, kind)]}


def _kind(group: ViewGroup, kind: str) -> Json:
    return {"group": group.group, "kind": kind, "version": group.version}


def view_operations(group: ViewGroup) -> list[Operation]:
    """Return all paths of a group."""
    found: list[Operation] = []
    for resource, _ in group.views:
        everywhere = "ForAllNamespaces" if resource.namespaced else ""
        found.append(_listing(group, resource, "", everywhere))
        below = ""
        if resource.namespaced:
            below = "namespaces/{namespace}/"
            found.append(_listing(group, resource, below, "InNamespace"))
        found.append(
            Operation(
                f"/apis/{group.api_version}/{below}{resource.plural}/{{name}}",
                f"{package(group)}.{resource.kind}",
                _entry(group, resource, "get", f"read{resource.kind}"),
                (_PRETTY,),
            )
        )
    return found


def _listing(group: ViewGroup, resource: ViewResource, below: str, scope: str) -> Operation:
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
