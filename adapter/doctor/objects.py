"""The fields of Kubernetes objects that the checks read. Other fields are not kept."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class _Object(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Fields that are missing, or null, have the value that they have in Kubernetes."""


class SeenOwnerReference(_Object, frozen=True):
    """One of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class Meta(_Object, frozen=True):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[SeenOwnerReference] = []
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class SeenCondition(_Object, frozen=True):
    """One of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ServiceReference(_Object, frozen=True):
    """``spec.service`` of an APIService."""

    name: str = ""
    namespace: str = ""
    port: int = 443


class _ApiServiceSpec(_Object, frozen=True):
    group: str = ""
    version: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class SeenConditions(_Object, frozen=True):
    """A status of which only the conditions are read."""

    conditions: list[SeenCondition] = []


class ApiService(_Object, frozen=True):
    """An APIService."""

    metadata: Meta = Meta()
    spec: _ApiServiceSpec = _ApiServiceSpec()
    status: SeenConditions = SeenConditions()


class SeenTaint(_Object, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(_Object, frozen=True):
    unschedulable: bool = False
    taints: list[SeenTaint] = []


class _NodeStatus(_Object, frozen=True):
    allocatable: dict[str, str | int] = {}
    capacity: dict[str, str | int] = {}
    conditions: list[SeenCondition] = []


class SeenNode(_Object, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @property
    def ready(self) -> bool:
        """Whether the kubelet reports the node Ready."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class _LeaseSpec(_Object, frozen=True):
    renew_time: str = ""


class Lease(_Object, frozen=True):
    """A node's heartbeat."""

    metadata: Meta = Meta()
    spec: _LeaseSpec = _LeaseSpec()


class SeenPriorityClass(_Object, frozen=True):
    """A PriorityClass."""

    metadata: Meta = Meta()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"


class _QuotaStatus(_Object, frozen=True):
    hard: dict[str, str | int] = {}
    used: dict[str, str | int] = {}


class _QuotaSpec(_Object, frozen=True):
    hard: dict[str, str | int] = {}


class ResourceQuota(_Object, frozen=True):
    """A ResourceQuota."""

    metadata: Meta = Meta()
    spec: _QuotaSpec = _QuotaSpec()
    status: _QuotaStatus = _QuotaStatus()


class _VolumeClaimSpec(_Object, frozen=True):
    access_modes: list[str] = []


class SeenVolumeClaim(_Object, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Meta = Meta()
    spec: _VolumeClaimSpec = _VolumeClaimSpec()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.metadata.namespace or "default", self.metadata.name)


class ConfigMap(_Object, frozen=True):
    """A ConfigMap."""

    metadata: Meta = Meta()
    data: dict[str, str] = {}


def read(content: Any, kind: type[T]) -> T:
    """Read the fields of an object from its JSON.

    Raises:
        msgspec.ValidationError: a field has another type; the text names it.
    """
    return msgspec.convert(without_nulls(content), kind, strict=False)


def without_nulls(content: Any) -> Any:
    """Return the content without keys whose value is null: Kubernetes takes them as missing."""
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None}
    if isinstance(content, list):
        return [without_nulls(each) for each in content if each is not None]
    return content
