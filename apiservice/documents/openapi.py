"""OpenAPI documents of the served group-versions: Swagger 2.0 and OpenAPI 3.0.

The documents are static. kube-apiserver polls them once a minute per APIService and merges them
into its own, so definitions have upstream's names (``k8s.io/metrics``, ``k8s.io/apimachinery``).
FastAPI's own schema is 3.1 and does not contain these routes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from apiservice.documents.openapi_schemas import Json, definitions, list_type
from apiservice.wire.metricvalues import EXTERNAL_GROUP

_json = msgspec.json.Encoder(order="deterministic").encode
_TITLE = "Kubernetes metrics API"
_QUERY = (
    ("labelSelector", "string", "Restricts the list by the objects' (or series') labels."),
    ("limit", "integer", "Accepted and ignored."),
    ("pretty", "string", "Accepted and ignored."),
    ("timeoutSeconds", "integer", "Accepted and ignored."),
)
_METRIC_QUERY = ("metricLabelSelector", "string", "Restricts the values by the metric's labels.")


class Document:
    """A document's bytes and their hash, which is the ETag and, in v3, the ``hash`` parameter."""

    __slots__ = ("body", "hash")

    def __init__(self, content: Json) -> None:
        self.body = _json(content)
        self.hash = hashlib.sha256(self.body).hexdigest()[:32].upper()

    @property
    def etag(self) -> str:
        """The ETag in double quotes, as HTTP requires."""
        return f'"{self.hash}"'


class OpenApi:
    """All documents of a server, built once."""

    def __init__(self, group_versions: Iterable[tuple[str, str]], release: str) -> None:
        served = list(group_versions)
        self.v2 = Document(_swagger(served, release))
        self.v3 = {
            f"apis/{group}/{version}": Document(_openapi3(group, version, release))
            for group, version in served
        }
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


def _swagger(served: list[tuple[str, str]], release: str) -> Json:
    paths: Json = {}
    schemas: Json = {}
    for group, version in served:
        schemas |= definitions(group, version, "#/definitions/")
        reference = {"$ref": f"#/definitions/{list_type(group, version)}"}
        answer = {"description": "OK", "schema": reference}
        for path, operation in _operations(group, version):
            parameters = [
                {**place, "type": kind, "uniqueItems": True} for place, kind in _parameters(path)
            ]
            operation |= {
                "produces": ["application/json"],
                "schemes": ["https"],
                "responses": {"200": answer, "401": {"description": "Unauthorized"}},
            }
            paths[path] = {"get": operation, "parameters": parameters}
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": release},
        "paths": paths,
        "definitions": schemas,
    }


def _openapi3(group: str, version: str, release: str) -> Json:
    reference = {"$ref": f"#/components/schemas/{list_type(group, version)}"}
    answer = {"description": "OK", "content": {"application/json": {"schema": reference}}}
    paths: Json = {}
    for path, operation in _operations(group, version):
        parameters = [
            {**place, "schema": {"type": kind, "uniqueItems": True}}
            for place, kind in _parameters(path)
        ]
        operation["responses"] = {"200": answer, "401": {"description": "Unauthorized"}}
        paths[path] = {"get": operation, "parameters": parameters}
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": paths,
        "components": {"schemas": definitions(group, version, "#/components/schemas/")},
    }


def _operations(group: str, version: str) -> list[tuple[str, dict[str, Any]]]:
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
    kind = {"group": group, "kind": list_type(group, version).rpartition(".")[2]}
    return [
        (
            f"{base}/{route}",
            {
                "description": f"list the {words}",
                "operationId": f"list{stem}{scope}",
                "tags": [f"{stem[0].lower()}{stem[1:]}"],
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": kind | {"version": version},
            },
        )
        for route, scope, words in routes
    ]


def _parameters(path: str) -> list[tuple[dict[str, Any], str]]:
    """Return every parameter of a path template: (name, place and description; type)."""
    variables = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    found: list[tuple[dict[str, Any], str]] = [
        ({"name": name, "in": "path", "required": True, "description": f"the {name}"}, "string")
        for name in variables
    ]
    queries = _QUERY if EXTERNAL_GROUP in path else (*_QUERY, _METRIC_QUERY)
    for name, kind, words in queries:
        found.append(({"name": name, "in": "query", "description": words}, kind))
    return found
