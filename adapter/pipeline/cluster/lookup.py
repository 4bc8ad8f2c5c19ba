"""The pods behind an object of an API query: pods, nodes, namespaces, services, workloads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.cluster.workload import DEPLOYMENTS, KINDS, REPLICASETS, plural
from apiservice.errors import BadQuery, MetricNotFound, NotFound, Unavailable
from apiservice.labels.selector import EVERYTHING
from apiservice.provider import GroupResource, ObjectQuery, ObjectReference
from apiservice.runtime.steps import Steps

PODS: Final = GroupResource("pods", "")
NAMESPACES: Final = GroupResource("namespaces", "")
NODES: Final = GroupResource("nodes", "")
SERVICES: Final = GroupResource("services", "")

LISTED: Final = (
    SERVICES,
    DEPLOYMENTS,
    GroupResource("statefulsets", "apps"),
    GroupResource("daemonsets", "apps"),
    REPLICASETS,
    GroupResource("jobs", "batch"),
)
"""Workloads that discovery lists. Any other kind that owns pods is answered too."""

_MOST_OBJECTS: Final = 500
_MOST_PODS: Final = 2000
"""Objects, and pods of all of them, in one answer to a request that names no object."""


class PodGroup(NamedTuple):
    """An object and its pods."""

    reference: ObjectReference
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class ObjectLookup:
    """Looks objects up in the watched collections."""

    pod_index: PodIndex
    services: Services
    nodes: Nodes
    hpas: Hpas | None = None
    """Read only if they are shown. No query of the metrics APIs needs them."""

    @property
    def version(self) -> int:
        """Grows with every change of a collection."""
        return self.pod_index.version + self.services.version + self.nodes.version

    def pods(self, query: ObjectQuery) -> Steps[Sequence[Pod]]:
        """The pods that a query on ``pods`` selects."""
        if query.name is None:
            return (
                yield from self.pod_index.select_in_steps(query.namespace, query.object_selector)
            )
        pod = self.pod_index.get(query.namespace or "", query.name)
        return () if pod is None else (pod,)

    def node_names(self, query: ObjectQuery, known_nodes: Sequence[str]) -> Sequence[str]:
        """Return the nodes that a query on ``nodes`` selects, of ``known_nodes`` if it says ``*``.

        Raises:
            BadQuery: several nodes are requested below a namespace.
            Unavailable: the selector needs labels of nodes, which could not be read.
        """
        if query.name is not None:
            return (query.name,)
        if query.namespace is not None:
            # An HPA requests its node below its own namespace. A right in one namespace must
            # not list the nodes of the cluster.
            raise BadQuery("nodes are not namespaced: name one, or leave the namespace out")
        if query.object_selector.empty:
            return sorted(known_nodes)
        if self.nodes.problem:
            raise Unavailable(f"labels of nodes are needed for labelSelector: {self.nodes.problem}")
        return [node.name for node in self.nodes.select(query.object_selector)]

    def check_node(self, query: ObjectQuery, node: str, namespaces: Collection[str]) -> None:
        """Reject a node below a namespace unless only that namespace's pods hold its GPUs.

        An HPA requests its node below its own namespace. The right to read there must not reveal
        what the pods of another namespace do.

        Args:
            namespaces: namespaces of the pods that the node's samples name.

        Raises:
            NotFound: pods of another namespace hold GPUs of the node.
        """
        if query.namespace is None:
            return
        holding = {
            pod.ref.namespace
            for pod in self.pod_index.on_node(node)
            if (pod.holds_gpu or pod.claims) and not pod.finished
        }.union(namespaces)
        if holding != {query.namespace}:
            raise NotFound(
                f"the server could not find the metric {query.metric} for nodes {node}: below a "
                f"namespace a node has a value only while pods of that namespace alone hold its "
                f"GPUs; request nodes/{node}/{query.metric} without a namespace"
            )

    def groups(self, query: ObjectQuery) -> Steps[Sequence[PodGroup]]:
        """Return the objects that a query on namespaces or workloads selects.

        Raises:
            BadQuery: the selection needs what is not watched, or is about too much.
            MetricNotFound: the resource is not one that has pods.
            Unavailable: the query is about Services, which could not be read.
        """
        if query.resource == NAMESPACES:
            return (yield from self._namespaces(query))
        if query.namespace is None:
            raise MetricNotFound(query.metric, query.resource, query.name)
        if query.resource == SERVICES and self.services.problem:
            raise Unavailable(f"Services could not be read: {self.services.problem}")
        if query.name is None:
            return (yield from self._all(query, query.namespace))
        return (yield from self._one(query.resource, query.namespace, query.name))

    def _all(self, query: ObjectQuery, namespace: str) -> Steps[list[PodGroup]]:
        groups: list[PodGroup] = []
        pods = 0
        for name in (yield from self._names(query, namespace)):
            object_groups = yield from self._one(query.resource, namespace, name)
            groups += object_groups
            pods += sum(len(group.pods) for group in object_groups)
            yield
            if len(groups) > _MOST_OBJECTS or pods > _MOST_PODS:
                raise BadQuery(
                    f"{query.resource}/* in namespace {namespace} is about more than "
                    f"{_MOST_OBJECTS} objects or {_MOST_PODS} pods: name one object"
                )
        return groups

    def _names(self, query: ObjectQuery, namespace: str) -> Steps[Sequence[str]]:
        resource = query.resource
        if resource == SERVICES:
            return [
                service.name for service in self.services.select(namespace, query.object_selector)
            ]
        names = yield from self.pod_index.workloads(namespace, resource)
        if not names and resource not in LISTED and resource not in KINDS:
            raise MetricNotFound(query.metric, resource)
        if not query.object_selector.empty:
            raise BadQuery(f"labels of {resource} are not watched: leave labelSelector out")
        return names

    def _namespaces(self, query: ObjectQuery) -> Steps[list[PodGroup]]:
        if not query.object_selector.empty:
            raise BadQuery("labels of namespaces are not watched: leave labelSelector out")
        names = self.pod_index.namespaces() if query.name is None else (query.name,)
        groups: list[PodGroup] = []
        for name in names:
            pods = yield from self.pod_index.select_in_steps(name, EVERYTHING)
            groups.append(PodGroup(ObjectReference("Namespace", name), pods))
            yield
        return groups

    def _one(self, resource: GroupResource, namespace: str, name: str) -> Steps[Sequence[PodGroup]]:
        if resource != SERVICES:
            return (yield from self._workload(resource, namespace, name))
        service = self.services.get(namespace, name)
        if service is None or service.selector is None:
            return ()
        pods = yield from self.pod_index.select_in_steps(namespace, service.selector)
        return (PodGroup(ObjectReference("Service", name, namespace), pods),)

    def _workload(
        self, resource: GroupResource, namespace: str, name: str
    ) -> Steps[Sequence[PodGroup]]:
        pods = yield from self.pod_index.owned_by_in_steps(namespace, resource, name)
        if not pods:
            return ()
        api_version, kind = workload_kind(resource, pods[0])
        return (PodGroup(ObjectReference(kind, name, namespace, api_version), pods),)


def workload_kind(resource: GroupResource, pod: Pod) -> tuple[str, str]:
    """Return apiVersion and kind of the workload that owns the pod."""
    owner = pod.owner
    if owner is not None and plural(owner.kind) == resource.resource:
        return owner.api_version, owner.kind
    return KINDS[resource]
