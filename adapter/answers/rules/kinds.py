"""The cluster's resources: which name in a rule or request means which resource.

This is the REST mapping of Kubernetes' clients (``k8s.io/client-go/restmapper``): a name in plural
or singular, with or without a group, means the first match in the order of the API server's
groups, the preferred version of each first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from apiservice.provider import GroupResource


class ResourceKind(NamedTuple):
    """A resource of the API server."""

    group: str
    version: str
    resource: str
    """The plural."""
    singular: str
    kind: str

    @property
    def name(self) -> GroupResource:
        """The resource and its group."""
        return GroupResource(self.resource, self.group)

    @property
    def api_version(self) -> str:
        """Group and version as manifests write them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The path of its group-version on the API server."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"


def _kind(group: str, resource: str, kind: str) -> ResourceKind:
    return ResourceKind(group, "v1", resource, kind.lower(), kind)


BUILT_IN: Final = (
    _kind("", "namespaces", "Namespace"),
    _kind("", "nodes", "Node"),
    _kind("", "persistentvolumes", "PersistentVolume"),
    _kind("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    _kind("", "pods", "Pod"),
    _kind("", "services", "Service"),
    _kind("apps", "daemonsets", "DaemonSet"),
    _kind("apps", "deployments", "Deployment"),
    _kind("apps", "replicasets", "ReplicaSet"),
    _kind("apps", "statefulsets", "StatefulSet"),
    _kind("batch", "cronjobs", "CronJob"),
    _kind("batch", "jobs", "Job"),
    _kind("networking.k8s.io", "ingresses", "Ingress"),
)
"""Resources of every cluster, for the time before its API server has answered."""


class KindTable:
    """The resources, in the order in which a name is looked up."""

    def __init__(self, kinds: Iterable[ResourceKind]) -> None:
        self.kinds = tuple(kinds)
        self._named: dict[str, list[ResourceKind]] = {}
        for kind in self.kinds:
            for name in {kind.resource, kind.singular}:
                self._named.setdefault(name.lower(), []).append(kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KindTable) and self.kinds == other.kinds

    def __hash__(self) -> int:
        return hash(self.kinds)

    def find(self, name: GroupResource) -> ResourceKind | None:
        """Return the resource that a name means; None if there is none."""
        kinds = self._named.get(name.resource.lower(), ())
        if not name.group:
            return next(iter(kinds), None)
        group = name.group.lower()
        exact = (kind for kind in kinds if kind.group == group)
        return next(exact, None) or next(
            (kind for kind in kinds if kind.group.startswith(group)), None
        )

    def singular(self, resource: str) -> str | None:
        """Return the singular of a resource's name; None if the resource is not known."""
        kind = next(iter(self._named.get(resource.lower(), ())), None)
        return None if kind is None else kind.singular
