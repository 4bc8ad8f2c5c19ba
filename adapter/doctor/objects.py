"""The fields of Kubernetes objects that the checks read. Other fields are not kept."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from adapter.cluster.manifest import PodDecoder, PodManifest
from adapter.cluster.pod import Pod

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


class EnvVar(_Object, frozen=True):
    """A variable; the value is empty if the spec takes it from elsewhere."""

    name: str = ""
    value: str = ""


class Port(_Object, frozen=True):
    """A container port."""

    name: str = ""
    container_port: int = 0


class Resources(_Object, frozen=True):
    """Requests and limits."""

    limits: dict[str, str | int | float] = {}
    requests: dict[str, str | int | float] = {}


class Container(_Object, frozen=True):
    """A container of a pod."""

    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    env: list[EnvVar] = []
    ports: list[Port] = []
    resources: Resources = Resources()

    def variable(self, name: str) -> str | None:
        """Return the value of a variable, or None without it."""
        return next((each.value for each in self.env if each.name == name), None)


class SeenName(_Object, frozen=True):
    """An object of which only the name is read."""

    name: str = ""


class SecretVolume(_Object, frozen=True):
    """``secret`` of a volume."""

    secret_name: str = ""


class ConfigVolume(_Object, frozen=True):
    """A volume; ``configMap`` names the ConfigMap, ``secret`` the Secret."""

    name: str = ""
    config_map: SeenName | None = None
    secret: SecretVolume | None = None


class PodSpec(_Object, frozen=True):
    """``spec`` of a pod, or of a template."""

    node_name: str = ""
    containers: list[Container] = []
    volumes: list[ConfigVolume] = []
    resource_claims: list[SeenName] = []
    service_account_name: str = ""
    node_selector: dict[str, str] = {}


class _Ended(_Object, frozen=True):
    reason: str = ""


class _State(_Object, frozen=True):
    waiting: _Ended | None = None
    terminated: _Ended | None = None


class ContainerStatus(_Object, frozen=True):
    """One of ``status.containerStatuses``."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()
    image: str = ""


class _PodStatus(_Object, frozen=True):
    phase: str = ""
    container_statuses: list[ContainerStatus] = []
    conditions: list[SeenCondition] = []


class _PodObject(_Object, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: _PodStatus = _PodStatus()


class SeenPod(msgspec.Struct, frozen=True):
    """A pod: as the adapter keeps it, and what the checks read besides."""

    pod: Pod
    spec: PodSpec
    status: _PodStatus

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.pod.ref.namespace}/{self.pod.ref.name}"

    @property
    def runs(self) -> bool:
        """Whether the pod runs and is not being deleted."""
        return self.pod.phase == "Running" and not self.pod.deleting


class Template(_Object, frozen=True):
    """A pod template."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()


class LabelSelector(_Object, frozen=True):
    """A label selector; ``matchExpressions`` are kept as they are."""

    match_labels: dict[str, str] = {}
    match_expressions: list[dict[str, Any]] = []


class _WorkloadSpec(_Object, frozen=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Template = Template()


class SeenWorkload(_Object, frozen=True):
    """A Deployment, StatefulSet or another object with a pod template."""

    kind: str = ""
    metadata: Meta = Meta()
    spec: _WorkloadSpec = _WorkloadSpec()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


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


class ConfigMap(_Object, frozen=True):
    """A ConfigMap."""

    metadata: Meta = Meta()
    data: dict[str, str] = {}


_pods = PodDecoder()


def read(content: Any, kind: type[T]) -> T:
    """Read the fields of an object from its JSON.

    Raises:
        msgspec.ValidationError: a field has another type; the text names it.
    """
    return msgspec.convert(without_nulls(content), kind, strict=False)


def read_pod(content: Any, decoder: PodDecoder = _pods) -> SeenPod:
    """Read a pod; raises msgspec.ValidationError."""
    content = without_nulls(content)
    both = msgspec.convert(content, _PodObject, strict=False)
    kept = decoder.reduce(msgspec.convert(content, PodManifest, strict=False))
    return SeenPod(kept, both.spec, both.status)


def read_workload(kind: str, content: Any) -> SeenWorkload:
    """Read a workload of a kind, which the objects of a list do not state."""
    found = read(content, SeenWorkload)
    meta = msgspec.structs.replace(found.metadata, namespace=found.metadata.namespace or "default")
    return msgspec.structs.replace(found, kind=kind, metadata=meta)


def without_nulls(content: Any) -> Any:
    """Return the content without keys whose value is null: Kubernetes takes them as missing."""
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None}
    if isinstance(content, list):
        return [without_nulls(each) for each in content if each is not None]
    return content
