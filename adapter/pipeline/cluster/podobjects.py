"""Pods, with the fields that the tools read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.manifest import PodDecoder, PodManifest
from adapter.pipeline.cluster.nodeaffinity import matches_terms
from adapter.pipeline.cluster.objects import (
    KubeObject,
    SeenConditions,
    without_nulls,
)
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.taints import Toleration
from apiservice.wire import instant


class _Object(KubeObject, msgspec.Struct, frozen=True):
    """Names the base again: the linter sees no other module, and allows a Struct ``[]``."""


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


class SeenProbe(_Object, frozen=True):
    """A probe; that there is one is all that is read."""


class Mount(_Object, frozen=True):
    """Where a container sees a volume."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class Container(_Object, frozen=True):
    """A container of a pod. Its mounts are not kept: the name of one is another in each pod."""

    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    env: list[EnvVar] = []
    ports: list[Port] = []
    resources: Resources = Resources()
    readiness_probe: SeenProbe | None = None
    startup_probe: SeenProbe | None = None
    restart_policy: str = ""
    """Of an init container: ``Always`` makes it a sidecar."""

    def variable(self, name: str) -> str | None:
        """Return the value of a variable, or None without it."""
        return next((variable.value for variable in self.env if variable.name == name), None)


class TemplateContainer(Container, frozen=True):
    """A container of a pod template."""

    volume_mounts: list[Mount] = []


class SeenName(_Object, frozen=True):
    """An object of which only the name is read."""

    name: str = ""


class SecretVolume(_Object, frozen=True):
    """``secret`` of a volume."""

    secret_name: str = ""


class _Item(_Object, frozen=True):
    key: str = ""
    path: str = ""


class ConfigMapVolume(_Object, frozen=True):
    """``configMap`` of a volume."""

    name: str = ""
    items: list[_Item] = []

    def key(self, path: str) -> str:
        """Return the key behind a file of the volume; empty without one."""
        if not self.items:
            return path
        return next((item.key for item in self.items if item.path == path), "")


class ClaimVolume(_Object, frozen=True):
    """``persistentVolumeClaim`` of a volume."""

    claim_name: str = ""


class ConfigVolume(_Object, frozen=True):
    """A volume; ``configMap`` names the ConfigMap, ``secret`` the Secret."""

    name: str = ""
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None

    @property
    def names_an_object(self) -> bool:
        """Whether it needs another object of the namespace."""
        return bool(self.config_map or self.secret or self.persistent_volume_claim)


class _Toleration(_Object, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(_Object, frozen=True):
    """``spec`` of a pod: what it has in common with the other pods of its template."""

    containers: Sequence[Container] = []
    init_containers: list[Container] = []
    scheduling_gates: list[SeenName] = []
    seen_tolerations: list[_Toleration] = msgspec.field(default_factory=list, name="tolerations")
    volumes: list[ConfigVolume] = []
    """Those that name an object. The name of a token's volume is another in each pod."""
    resource_claims: list[SeenName] = []
    service_account_name: str = ""
    scheduler_name: str = ""
    image_pull_secrets: list[SeenName] = []
    priority: int = 0
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Keep of the volumes what is read, and take a null as missing, at any depth."""
        volumes = [row for row in self.volumes if row.names_an_object]
        msgspec.structs.force_setattr(self, "volumes", volumes)
        if self.affinity:
            msgspec.structs.force_setattr(self, "affinity", without_nulls(self.affinity))

    @property
    def node_terms(self) -> list[dict[str, Any]] | None:
        """``nodeSelectorTerms`` of the required node affinity; None without one."""
        required = (self.affinity.get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        return list(required.get("nodeSelectorTerms") or ()) if required else None

    def selects(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether node selector and required affinity admit a node."""
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        terms = self.node_terms
        return terms is None or matches_terms(terms, labels, name)

    @property
    def tolerations(self) -> list[Toleration]:
        """The tolerations of the pod."""
        rows = self.seen_tolerations
        return [Toleration(t.key, t.operator, t.value, t.effect) for t in rows]


class TemplateSpec(PodSpec, frozen=True):
    """``spec`` of a pod template."""

    containers: Sequence[TemplateContainer] = []


class _Packed(_Object, frozen=True, omit_defaults=True):
    """Of the status, which is kept packed."""


class _Waiting(_Packed, frozen=True):
    reason: str = ""
    message: str = ""


class Ended(_Packed, frozen=True):
    """``terminated`` of a container's state."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: str = ""


class _Running(_Packed, frozen=True):
    started_at: str = ""


class _State(_Packed, frozen=True):
    running: _Running | None = None
    waiting: _Waiting | None = None
    terminated: Ended | None = None


class ContainerStatus(_Packed, frozen=True):
    """One of ``status.containerStatuses``."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()
    image: str = ""


class _PodStatus(_Packed, SeenConditions, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str = ""
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEEPING: Final = {DO_NOT_DISRUPT: "true", SAFE_TO_EVICT: "false"}
"""Annotation of a pod -> the value with which an autoscaler leaves its node alone."""


class _PodMeta(_Object, frozen=True):
    deletion_timestamp: str = ""
    finalizers: list[str] = []
    annotations: dict[str, str] = {}


class _PodObject(_Object, frozen=True):
    metadata: _PodMeta = _PodMeta()
    spec: PodSpec = PodSpec()
    status: _PodStatus = _PodStatus()


class SeenPod(msgspec.Struct, frozen=True):
    """A pod: as the adapter keeps it, and what the checks read besides."""

    pod: Pod
    spec: PodSpec
    packed: bytes
    """The status, which few checks read and of few pods: a fifth of the memory of its objects."""
    deleted: float | None = None
    """Epoch seconds since when it is being deleted; None if it is not."""
    finalizers: tuple[str, ...] = ()
    keeping: tuple[str, ...] = ()
    """Annotations by which the pod asks to stay on its node, of :data:`KEEPING`."""

    @property
    def status(self) -> _PodStatus:
        """What its kubelet and the scheduler say."""
        return _statuses.decode(self.packed)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.pod.ref.namespace}/{self.pod.ref.name}"

    @property
    def subject(self) -> str:
        """What a finding calls the pod."""
        return f"pod {self.key}"

    @property
    def runs(self) -> bool:
        """Whether the pod runs and is not being deleted."""
        return self.pod.phase == "Running" and not self.pod.deleting


_pods = PodDecoder()
_pod_objects = msgspec.json.Decoder(_PodObject)
_encoder = msgspec.msgpack.Encoder()
_statuses = msgspec.msgpack.Decoder(_PodStatus)
_specs: dict[tuple[type[PodSpec], bytes], Any] = {}
"""Of the pods and templates that were read last, each once: by its encoded form."""
_MOST_SPECS: Final = 5_000
"""Specs of that table: the pods of one Deployment follow one another in a list."""
S = TypeVar("S", bound=PodSpec)


def read_pod(content: Any) -> SeenPod:
    """Read a pod; raises msgspec.ValidationError."""
    content = without_nulls(content)
    both = msgspec.convert(content, _PodObject, strict=False)
    return _build_pod(both, _pods.reduce(msgspec.convert(content, PodManifest, strict=False)))


def decode_pod(text: bytes | msgspec.Raw) -> SeenPod:
    """Read a pod from its text: :func:`read_pod` at a tenth of the cost.

    Raises:
        msgspec.MsgspecError: it is not JSON, or a field has another type; the text names it.
    """
    try:
        return _build_pod(_pod_objects.decode(text), _pods.decode(text))
    except msgspec.ValidationError:  # also a null, which stands for a field that is missing
        return read_pod(msgspec.json.decode(text))


def _build_pod(decoded: _PodObject, pod: Pod) -> SeenPod:
    meta = decoded.metadata
    deleted = instant.read(meta.deletion_timestamp)
    packed = _encoder.encode(decoded.status)
    keeping = tuple(key for key, word in KEEPING.items() if meta.annotations.get(key) == word)
    return SeenPod(pod, shared_spec(decoded.spec), packed, deleted, tuple(meta.finalizers), keeping)


def shared_spec(spec: S) -> S:
    """Return the first spec equal to this one; itself if a file has a number of more than 64 bits,
    which has no MessagePack."""
    if len(_specs) >= _MOST_SPECS:
        _specs.clear()
    try:
        packed = _encoder.encode(spec)
    except OverflowError:
        return spec
    first: S = _specs.setdefault((type(spec), packed), spec)
    return first


def recount_gpus(seen_pod: SeenPod, resources: GpuResources) -> SeenPod:
    """Return a pod with its GPUs by the settings, which are known only after the pods."""
    held = {**seen_pod.pod.gpus, **seen_pod.pod.extended}
    gpus = {name: count for name, count in held.items() if resources.is_gpu(name)}
    if gpus == seen_pod.pod.gpus:
        return seen_pod
    extended = {name: count for name, count in held.items() if name not in gpus}
    pod = seen_pod.pod.replace(gpus=gpus, extended=extended)
    return msgspec.structs.replace(seen_pod, pod=pod)
