"""Which pods stand behind an object that an API query names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.cluster.index import PodIndex
from adapter.cluster.nodes import Nodes
from adapter.cluster.pod import Pod
from adapter.cluster.services import Services
from adapter.cluster.workload import CRONJOBS, DEPLOYMENTS, REPLICASETS, ROLLOUTS, plural
from apiservice.errors import BadQuery, Unavailable
from apiservice.provider import GroupResource, ObjectQuery, ObjectReference
from apiservice.selector import EVERYTHING

PODS: Final = GroupResource("pods", "")
NAMESPACES: Final = GroupResource("namespaces", "")
NODES: Final = GroupResource("nodes", "")
SERVICES: Final = GroupResource("services", "")

_ABOVE: Final = {
    DEPLOYMENTS: ("apps/v1", "Deployment"),
    ROLLOUTS: ("argoproj.io/v1alpha1", "Rollout"),
    CRONJOBS: ("batch/v1", "CronJob"),
}
"""Kinds that pods do not name themselves."""

LISTED: Final = (
    SERVICES,
    DEPLOYMENTS,
    GroupResource("statefulsets", "apps"),
    GroupResource("daemonsets", "apps"),
    REPLICASETS,
    GroupResource("jobs", "batch"),
)
"""Workloads that discovery lists; any other kind that owns pods is answered too."""


class Group(NamedTuple):
    """An object and its pods."""

    reference: ObjectReference
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class Objects:
    """Looks objects up in the watched collections."""

    pod_index: PodIndex
    services: Services
    nodes: Nodes

    @property
    def version(self) -> int:
        """Grows with every change of a collection."""
        return self.pod_index.version + self.services.version + self.nodes.version

    def pods(self, query: ObjectQuery) -> Sequence[Pod]:
        """The pods that a query on ``pods`` selects."""
        if query.name is None:
            return self.pod_index.select(query.namespace, query.object_selector)
        pod = self.pod_index.get(query.namespace or "", query.name)
        return () if pod is None else (pod,)

    def node_names(self, query: ObjectQuery, known: Sequence[str]) -> Sequence[str]:
        """The nodes that a query on ``nodes`` selects, of the ``known`` where it says ``*``.

        Raises:
            BadQuery: several nodes are asked for below a namespace.
            Unavailable: the selector needs labels of nodes, which could not be read.
        """
        if query.name is not None:
            return (query.name,)
        if query.namespace is not None:
            # An HPA names its node below its own namespace; a right in one namespace must
            # not list the nodes of the cluster.
            raise BadQuery("nodes are in no namespace: name one, or leave the namespace out")
        if query.object_selector.empty:
            return sorted(known)
        if self.nodes.problem:
            raise Unavailable(f"labels of nodes are needed for labelSelector: {self.nodes.problem}")
        return [node.name for node in self.nodes.select(query.object_selector)]

    def groups(self, query: ObjectQuery) -> Iterator[Group]:
        """The objects that a query on namespaces or workloads selects.

        Raises:
            BadQuery: the selection needs what is not watched.
            Unavailable: Services are asked for and could not be read.
        """
        if query.resource == NAMESPACES:
            return self._namespaces(query)
        if query.name is None:
            raise BadQuery(f"{query.resource} are not listed here: name one of them in place of *")
        if query.resource == SERVICES:
            return self._service(query.namespace or "", query.name)
        return self._workload(query.resource, query.namespace or "", query.name)

    def _namespaces(self, query: ObjectQuery) -> Iterator[Group]:
        if not query.object_selector.empty:
            raise BadQuery("labels of namespaces are not watched: leave labelSelector out")
        names = self.pod_index.namespaces() if query.name is None else (query.name,)
        for name in names:
            pods = self.pod_index.select(name, EVERYTHING)
            yield Group(ObjectReference("Namespace", name), pods)

    def _service(self, namespace: str, name: str) -> Iterator[Group]:
        if self.services.problem:
            raise Unavailable(f"Services could not be read: {self.services.problem}")
        service = self.services.get(namespace, name)
        if service is not None and service.selector is not None:
            pods = self.pod_index.select(namespace, service.selector)
            yield Group(ObjectReference("Service", name, namespace), pods)

    def _workload(self, resource: GroupResource, namespace: str, name: str) -> Iterator[Group]:
        pods = self.pod_index.owned_by(namespace, resource, name)
        if pods:
            api_version, kind = workload_kind(resource, pods[0])
            yield Group(ObjectReference(kind, name, namespace, api_version), pods)


def workload_kind(resource: GroupResource, pod: Pod) -> tuple[str, str]:
    """apiVersion and kind of the workload; the pod is one of its own."""
    owner = pod.owner
    if owner is not None and plural(owner.kind) == resource.resource:
        return owner.api_version, owner.kind
    return _ABOVE[resource]
