"""Discovery documents, answered from memory. kube-aggregator probes availability with them.

Nothing here waits for data: an APIService whose discovery fails blocks the deletion of every
namespace in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_not
from typing import Any, Protocol

import msgspec
import structlog

from apiservice.documents.aggregateddiscovery import aggregated_document
from apiservice.documents.document import Document
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider, MetricResource
from apiservice.view.resource import ServedResource, ViewGroup
from apiservice.wire.accept import Form
from apiservice.wire.metricvalues import (
    CUSTOM_GROUP,
    CUSTOM_VERSIONS,
    EXTERNAL_GROUP,
    EXTERNAL_VERSIONS,
)

log = structlog.get_logger(__name__)

_json = msgspec.json.Encoder().encode
Json = dict[str, Any]


class ResourceLists:
    """The APIResourceList of each version of one group; rendered when the rows change."""

    def __init__(
        self,
        group: str,
        versions: tuple[str, ...],
        rows: Callable[[], Sequence[Any]],
        render: Callable[[Sequence[Any]], list[Json]],
    ) -> None:
        self._group = group
        self.versions = versions
        self._rows = rows
        self._render = render
        self._seen: tuple[Any, ...] | None = None
        self._resources: list[Json] = []
        self._documents: dict[str, bytes] = {}

    def document(self, version: str) -> bytes:
        """Return the current list of ``GROUP/version``."""
        self.resources()
        return self._documents[version]

    def resources(self) -> list[Json]:
        """Return the current resources; the same list until they change."""
        rows = tuple(self._rows())
        if rows != self._seen:
            resources = self._render(rows)
            self._documents = {
                version: _json(
                    {
                        "kind": "APIResourceList",
                        "apiVersion": "v1",
                        "groupVersion": f"{self._group}/{version}",
                        "resources": resources,
                    }
                )
                for version in self.versions
            }
            self._seen, self._resources = rows, resources
        return self._resources


class OtherRows(Protocol):
    """Adds the metrics of other servers to the lists."""

    def custom_rows(self, own_rows: Sequence[MetricResource]) -> Sequence[MetricResource]:
        """Return the rows of custom.metrics.k8s.io, those of this server first."""

    def external_names(self, own_names: Sequence[str]) -> Sequence[str]:
        """Return the names of external.metrics.k8s.io, those of this server first."""


class Discovery:
    """The documents at ``/apis`` and below it, down to the versions."""

    def __init__(
        self,
        custom: CustomMetricsProvider | None,
        external: ExternalMetricsProvider | None,
        views: Sequence[ViewGroup] = (),
        others: OtherRows | None = None,
    ) -> None:
        self.views = views
        self._aggregated: dict[Form, tuple[list[list[Json]], Document]] = {}
        self._lists: dict[str, ResourceLists] = {}
        self.own = self if others is None else Discovery(custom, external, views)
        """The documents without the metrics of other servers."""
        if custom is not None:
            own_rows = custom.resources
            rows = own_rows if others is None else lambda: others.custom_rows(own_rows())
            self._lists[CUSTOM_GROUP] = ResourceLists(
                CUSTOM_GROUP, CUSTOM_VERSIONS, rows, _custom_resources
            )
        if external is not None:
            mine = external.metrics
            names = mine if others is None else lambda: others.external_names(mine())
            self._lists[EXTERNAL_GROUP] = ResourceLists(
                EXTERNAL_GROUP, EXTERNAL_VERSIONS, names, _external_resources
            )
        for group in views:
            self._lists[group.group] = ResourceLists(
                group.group, (group.version,), partial(_views, group), view_resources
            )
        groups = {name: _group(name, lists.versions) for name, lists in self._lists.items()}
        kind = {"kind": "APIGroupList", "apiVersion": "v1"}
        self.group_list = _json(kind | {"groups": list(groups.values())})
        self._groups = {
            name: _json({"kind": "APIGroup", "apiVersion": "v1"} | group)
            for name, group in groups.items()
        }

    def group_versions(self) -> list[tuple[str, str]]:
        """Every (group, version) that is served."""
        return [
            (name, version) for name, lists in self._lists.items() for version in lists.versions
        ]

    def metric_versions(self) -> list[tuple[str, str]]:
        """Every (group, version) of metrics that is served."""
        view_groups = {view.group for view in self.views}
        return [
            (group, version) for group, version in self.group_versions() if group not in view_groups
        ]

    def group(self, name: str) -> bytes | None:
        """Return the APIGroup, or None if it is not served."""
        return self._groups.get(name)

    def resource_list(self, group: str, version: str) -> bytes | None:
        """Return the APIResourceList, or None if the group-version is not served."""
        lists = self._lists.get(group)
        if lists is None or version not in lists.versions:
            return None
        return lists.document(version)

    def aggregated_document(self, form: Form) -> Document:
        """Return all groups in one document; the same one until a resource changes."""
        resources = [lists.resources() for lists in self._lists.values()]
        made = self._aggregated.get(form)
        if made is None or any(map(is_not, made[0], resources)):
            groups = [
                (name, [(version, rows) for version in lists.versions])
                for (name, lists), rows in zip(self._lists.items(), resources, strict=True)
            ]
            made = self._aggregated[form] = (resources, Document(aggregated_document(form, groups)))
        return made[1]


def _views(group: ViewGroup) -> Sequence[ServedResource]:
    return group.views


def _group(name: str, versions: tuple[str, ...]) -> Json:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _custom_resources(rows: Sequence[MetricResource]) -> list[Json]:
    """Return one row per metric and resource, with one ``namespaced`` per resource.

    If a resource is namespaced in one row and not in another, the aggregator rejects the whole
    group-version. The first row decides.
    """
    scopes: dict[str, bool] = {}
    entries: dict[str, Json] = {}
    for row in rows:
        resource = str(row.resource)
        if scopes.setdefault(resource, row.namespaced) != row.namespaced:
            log.error("metrics of one resource differ in scope", resource=resource, row=row.metric)
        name = f"{resource}/{row.metric}"
        entries[name] = _resource(name, "MetricValueList", namespaced=scopes[resource])
    return list(entries.values())


def _external_resources(rows: Sequence[str]) -> list[Json]:
    return [_resource(name, "ExternalMetricValueList", namespaced=True) for name in rows]


def view_resources(rows: Sequence[ServedResource]) -> list[Json]:
    """Return the entries of an APIResourceList for read-only resources."""
    return [
        {
            "name": row.plural,
            "singularName": row.singular,
            "namespaced": row.namespaced,
            "kind": row.kind,
            "verbs": ["get", "list"],
            "shortNames": list(row.short_names),
            "categories": list(row.categories),
        }
        for row, *_ in rows
    ]


def _resource(name: str, kind: str, *, namespaced: bool) -> Json:
    return {
        "name": name,
        "singularName": "",
        "namespaced": namespaced,
        "kind": kind,
        "verbs": ["get"],
    }
