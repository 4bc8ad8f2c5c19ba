"""The common parts of all objects."""

from __future__ import annotations

from adapter.pipeline.cluster.objects import Meta
from adapter.pipeline.cluster.workload import plural
from apiservice.provider import GroupResource


class NamedObject:
    """An object that a table finds by its name."""

    __slots__ = ()
    name: str

    @property
    def key(self) -> str:
        """The name."""
        return self.name


class NamespacedObject:
    """An object that a table finds by its namespace and name."""

    __slots__ = ()
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


class ObjectMeta(Meta, frozen=True):
    """``metadata`` of an object, which has a name."""

    name: str


def resource_of(api_version: str, kind: str) -> GroupResource:
    """Return the resource of a kind."""
    group, _, _ = api_version.rpartition("/")
    return GroupResource(plural(kind), group)
