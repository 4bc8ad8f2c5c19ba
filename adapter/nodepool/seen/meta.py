"""The common parts of all objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from adapter.pipeline.cluster.workload import plural
from apiservice.provider import GroupResource
from apiservice.wire import instant


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


class OwnerReference(msgspec.Struct, rename="camel"):
    """One of ``metadata.ownerReferences``."""

    kind: str
    name: str
    api_version: str = "v1"
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, rename="camel"):
    """``metadata``."""

    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def created(self) -> float:
        """Epoch seconds; 0 if missing."""
        return instant.read(self.creation_timestamp) or 0.0

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that controls it."""
        return next((row for row in self.owner_references or () if row.controller), None)


class ConditionRow(msgspec.Struct, rename="camel"):
    """One of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ObjectCondition(NamedTuple):
    """A condition that exists."""

    status: str
    """True, False or Unknown."""
    reason: str
    message: str
    since: float | None
    """Epoch seconds."""


def conditions(rows: list[ConditionRow] | None) -> Mapping[str, ObjectCondition]:
    """Return type -> condition."""
    return {
        row.type: ObjectCondition(
            row.status, row.reason, row.message, instant.read(row.last_transition_time)
        )
        for row in rows or ()
    }


def resource_of(api_version: str, kind: str) -> GroupResource:
    """Return the resource of a kind."""
    group, _, _ = api_version.rpartition("/")
    return GroupResource(plural(kind), group)
