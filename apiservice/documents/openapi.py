"""OpenAPI documents of the served group-versions: Swagger 2.0 and OpenAPI 3.0.

The documents are static. kube-apiserver polls them once a minute per APIService and merges them
into its own, so definitions have upstream's names (``k8s.io/metrics``, ``k8s.io/apimachinery``).
FastAPI's own schema is 3.1 and does not contain these routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from apiservice.documents.document import Document
from apiservice.documents.openapi_operation import Operation
from apiservice.documents.openapi_schemas import Json, definitions, list_type
from apiservice.documents.openapi_views import view_definitions, view_operations
from apiservice.view.resource import ViewGroup
from apiservice.wire.metricvalues import EXTERNAL_GROUP

_TITLE = "Kubernetes metrics API"
_QUERY = (
    ("labelSelector", "string", "Restricts the list by the objects' (or series') labels."),
    ("limit", "integer", "Accepted and ignored."),
    ("pretty", "string", "Accepted and ignored."),
    ("timeoutSeconds", "integer", "Accepted and ignored."),
)
_METRIC_QUERY = ("metricLabelSelector", "string", "Restricts the values by the metric's labels.")


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
    for described in served:
        schemas |= described.definitions("#/definitions/")
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": release},
        "paths": {
            operation.path: operation.swagger()
            for described in served
            for operation in described.operations
        },
        "definitions": schemas,
    }


def _openapi3(described: _Described, release: str) -> Json:
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": {operation.path: operation.openapi3() for operation in described.operations},
        "components": {"schemas": described.definitions("#/components/schemas/")},
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
