"""The fields of Kubernetes objects that the tools read. Other fields are not kept.

Pods are in :mod:`adapter.pipeline.cluster.podobjects`, and workloads with a pod template in
:mod:`adapter.pipeline.cluster.workloadobjects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.managers import Manager, manager_of
from adapter.pipeline.cluster.nodestarts import NodeState, state_of
from adapter.pipeline.cluster.taints import Taint
from apiservice.wire import instant

T = TypeVar("T")


class KubeObject(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Fields that are missing, or null, have the value that they have in Kubernetes."""


class SeenOwnerReference(KubeObject, frozen=True):
    """One of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class FieldManager(KubeObject, frozen=True):
    """One of ``metadata.managedFields``."""

    manager: str = ""


class Meta(KubeObject, frozen=True):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[SeenOwnerReference] = []
    managed_fields: Sequence[FieldManager] = []
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: list[str] = []

    @property
    def controller(self) -> SeenOwnerReference | None:
        """The owner that controls it."""
        return next((row for row in self.owner_references if row.controller), None)

    @property
    def created(self) -> float:
        """Epoch seconds; 0 if not known."""
        return instant.read(self.creation_timestamp) or 0.0

    @property
    def manager(self) -> Manager | None:
        """What writes the object again; None if nothing does."""
        return manager_of(msgspec.to_builtins(self), self.namespace)


class SeenCondition(KubeObject, frozen=True, omit_defaults=True):
    """One of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""

    @property
    def since(self) -> float | None:
        """Epoch seconds of the last change of ``status``; None if not known."""
        return instant.read(self.last_transition_time)


class ServiceReference(KubeObject, frozen=True):
    """``spec.service`` of an APIService."""

    name: str = ""
    namespace: str = ""
    port: int = 443


class _ApiServiceSpec(KubeObject, frozen=True):
    group: str = ""
    version: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class SeenConditions(KubeObject, frozen=True):
    """A status of which only the conditions are read."""

    conditions: list[SeenCondition] = []

    def of(self, kind: str) -> SeenCondition | None:
        """Return the condition of a type; None without one."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    @property
    def states(self) -> dict[str, str]:
        """Type -> status of each condition."""
        return {condition.type: condition.status for condition in self.conditions}


class ApiService(KubeObject, frozen=True):
    """An APIService."""

    metadata: Meta = Meta()
    spec: _ApiServiceSpec = _ApiServiceSpec()
    status: SeenConditions = SeenConditions()


class _Taint(KubeObject, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(KubeObject, frozen=True):
    unschedulable: bool = False
    taints: list[_Taint] = []


class _NodeStatus(SeenConditions, frozen=True):
    allocatable: dict[str, str | int | float] = {}
    capacity: dict[str, str | int | float] = {}


class SeenNode(KubeObject, frozen=True):
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
        condition = self.status.of("Ready")
        return condition is not None and condition.status == "True"

    @property
    def taints(self) -> list[Taint]:
        """The node's taints."""
        return [Taint(taint.key, taint.value, taint.effect) for taint in self.spec.taints]

    def state(self, resources: GpuResources = STANDARD) -> NodeState:
        """Return what keeps pods from the node, and what it offers."""
        return state_of(
            self.taints,
            self.status.states,
            self.status.capacity,
            self.status.allocatable,
            resources,
            cordoned=self.spec.unschedulable,
        )


class _LeaseSpec(KubeObject, frozen=True):
    renew_time: str = ""


class Lease(KubeObject, frozen=True):
    """A node's heartbeat."""

    metadata: Meta = Meta()
    spec: _LeaseSpec = _LeaseSpec()


class SeenPriorityClass(KubeObject, frozen=True):
    """A PriorityClass."""

    metadata: Meta = Meta()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


class ClusterPolicy(KubeObject, frozen=True):
    """A ClusterPolicy of the NVIDIA GPU Operator."""

    metadata: Meta = Meta()
    spec: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Take a null as missing, at any depth."""
        msgspec.structs.force_setattr(self, "spec", without_nulls(self.spec))

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def manager(self) -> Manager | None:
        """What writes it again."""
        return self.metadata.manager


class _QuotaStatus(KubeObject, frozen=True):
    hard: dict[str, str | int | float] = {}
    used: dict[str, str | int | float] = {}


class _QuotaSpec(KubeObject, frozen=True):
    hard: dict[str, str | int | float] = {}


class ResourceQuota(KubeObject, frozen=True):
    """A ResourceQuota."""

    metadata: Meta = Meta()
    spec: _QuotaSpec = _QuotaSpec()
    status: _QuotaStatus = _QuotaStatus()


class _About(KubeObject, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Series(KubeObject, frozen=True):
    count: int = 0
    last_observed_time: str = ""


class SeenEvent(KubeObject, frozen=True):
    """An event of the core API."""

    metadata: Meta = Meta()
    involved_object: _About = _About()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: str = ""
    last_timestamp: str = ""
    event_time: str = ""
    series: _Series = _Series()

    @property
    def times(self) -> int:
        """How often it happened: a series of ``events.k8s.io`` counts elsewhere."""
        return max(1, self.count, self.series.count)

    @property
    def last(self) -> float | None:
        """Epoch seconds of the last time; None if not known."""
        return _first_known(
            self.series.last_observed_time,
            self.last_timestamp,
            self.event_time,
            self.metadata.creation_timestamp,
        )

    @property
    def first(self) -> float | None:
        """Epoch seconds of the first time; None if not known."""
        return _first_known(self.first_timestamp, self.event_time, self.metadata.creation_timestamp)


def _first_known(*stamps: str) -> float | None:
    """Return the first of these times that is written."""
    return next((time for time in map(instant.read, stamps) if time is not None), None)


class _DeviceTaint(_Taint, frozen=True):
    time_added: str = ""


class _Device(KubeObject, frozen=True):
    name: str = ""
    taints: list[_DeviceTaint] = []


class _Slice(KubeObject, frozen=True):
    driver: str = ""
    node_name: str = ""
    devices: list[_Device] = []


class ResourceSlice(KubeObject, frozen=True):
    """A ResourceSlice (DRA) of ``resource.k8s.io/v1``: devices of a driver on a node."""

    metadata: Meta = Meta()
    spec: _Slice = _Slice()


class _NodeClaimStatus(SeenConditions, frozen=True):
    node_name: str = ""


class SeenNodeClaim(KubeObject, frozen=True):
    """A NodeClaim of Karpenter: a node that it orders."""

    metadata: Meta = Meta()
    status: _NodeClaimStatus = _NodeClaimStatus()


class _VolumeClaimSpec(KubeObject, frozen=True):
    access_modes: list[str] = []


class SeenVolumeClaim(KubeObject, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Meta = Meta()
    spec: _VolumeClaimSpec = _VolumeClaimSpec()
    origin: str = ""
    """The file; empty for one of the cluster."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.metadata.namespace or "default", self.metadata.name)


class ConfigMap(KubeObject, frozen=True):
    """A ConfigMap."""

    metadata: Meta = Meta()
    data: dict[str, str] = {}
    origin: str = ""
    """The file; empty for one of the cluster."""


def read(content: Any, kind: type[T]) -> T:
    """Read the fields of an object from its JSON.

    Raises:
        msgspec.ValidationError: a field has another type; the text names it.
    """
    return msgspec.convert(without_nulls(content), kind, strict=False)


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
"""Of each kind that was read."""


def decode(text: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Read the fields of an object from its text: :func:`read` at a tenth of the cost.

    Raises:
        msgspec.MsgspecError: it is not JSON, or a field has another type; the text names it.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        fields: T = decoder.decode(text)
    except msgspec.ValidationError:  # also a null, which stands for a field that is missing
        return read(msgspec.json.decode(text), kind)
    return fields


def without_nulls(content: Any) -> Any:
    """Return the content without keys whose value is null: Kubernetes takes them as missing."""
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None}
    if isinstance(content, list):
        return [without_nulls(part) for part in content if part is not None]
    return content
