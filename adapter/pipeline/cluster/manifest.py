"""Decoding of a pod's JSON manifest into the fields that are kept of a pod.

Only the fields below are decoded: a pod is 5 to 20 KB of JSON, of which a few hundred bytes are
kept. Texts and mappings that many pods share (labels of one ReplicaSet, node and namespace names,
owners) are kept once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from adapter.hpa.quantity import parse, to_milli
from adapter.pipeline.cluster import keptbytes
from adapter.pipeline.cluster.devicehealth import ContainerHealth, unhealthy_devices
from adapter.pipeline.cluster.gpugroups import groups
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.nodestarts import StartNeeds
from adapter.pipeline.cluster.placeholder import is_placeholder
from adapter.pipeline.cluster.pod import ContainerPort, Owner, Pod, PodTemplate
from adapter.pipeline.cluster.podgroups import ANNOTATIONS as GROUP_ANNOTATIONS
from adapter.pipeline.cluster.podvalues import pack_values
from adapter.pipeline.cluster.sharedvalues import SharedValues
from adapter.pipeline.cluster.taints import Toleration
from apiservice.wire import instant

_ANNOTATIONS = ("prometheus.io/", "gpu-metrics-adapter.io/", *GROUP_ANNOTATIONS)
"""Prefixes of the annotations that are kept."""
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]{0,315}")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
"""The form of versions, kinds and names. The API server accepts any text in an owner reference, and
users paste these names into commands."""


class OwnerManifest(msgspec.Struct):
    """One of ``metadata.ownerReferences``."""

    kind: str
    name: str
    apiVersion: str = "v1"  # noqa: N815 - the wire's name
    controller: bool = False


class MetaManifest(msgspec.Struct):
    """``metadata``."""

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerManifest] | None = None  # noqa: N815 - as the API spells it
    creationTimestamp: Any = None  # noqa: N815 - a text; YAML makes a datetime of it
    deletionTimestamp: Any = None  # noqa: N815 - as the API spells it


class _Resources(msgspec.Struct):
    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class _Port(msgspec.Struct):
    containerPort: int  # noqa: N815 - as the API spells it
    name: str = ""
    protocol: str = "TCP"


class _Container(msgspec.Struct):
    name: str
    resources: _Resources | None = None
    ports: list[_Port] | None = None
    restartPolicy: str = ""  # noqa: N815 - as the API spells it
    image: str = ""


class _Named(msgspec.Struct):
    name: str = ""


class _Volume(msgspec.Struct):
    hostPath: _Named | None = None  # noqa: N815 - as the API spells it


class _Toleration(msgspec.Struct):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - as the API spells it
    containers: list[_Container] = []
    initContainers: list[_Container] | None = None  # noqa: N815 - as the API spells it
    resourceClaims: list[_Named] | None = None  # noqa: N815 - as the API spells it
    volumes: list[_Volume] | None = None
    priority: int | None = None
    tolerations: list[_Toleration] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    lastTransitionTime: Any = None  # noqa: N815 - a text; YAML makes a datetime of it


class _Waiting(msgspec.Struct):
    reason: str = ""


class _State(msgspec.Struct):
    waiting: _Waiting | None = None


class _ContainerStatus(ContainerHealth):
    state: _State | None = None
    restartCount: int = 0  # noqa: N815 - as the API spells it


class StatusManifest(msgspec.Struct):
    """The fields of a pod's ``status`` that this project reads."""

    phase: str = ""
    reason: str = ""
    podIP: str = ""  # noqa: N815 - as the API spells it
    conditions: list[_Condition] | None = None
    containerStatuses: list[_ContainerStatus] | None = None  # noqa: N815 - as the API spells it
    initContainerStatuses: list[_ContainerStatus] | None = None  # noqa: N815 - the wire's name


class PodManifest(msgspec.Struct):
    """The fields of a ``v1.Pod`` that this project reads."""

    metadata: MetaManifest
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: StatusManifest | None = None


_manifest = msgspec.json.Decoder(PodManifest)


class PodDecoder:
    """Decodes pods. One instance per collection, for the values that its pods share.

    Args:
        resources: those that stand for a GPU.
    """

    def __init__(self, resources: GpuResources = STANDARD) -> None:
        self.resources = resources
        self._is_gpu = resources.is_gpu
        self._shared = SharedValues()

    def decode(self, raw: msgspec.Raw | bytes) -> Pod:
        """Decode a pod from its JSON.

        Raises:
            msgspec.DecodeError: it is not JSON.
            msgspec.ValidationError: it is not a pod; the message has the path of the field.
            OversizedError: so much of it would be kept that it is left out.
        """
        manifest = _manifest.decode(raw)
        keptbytes.check(raw, manifest, _kept_values)
        return self.reduce(manifest)

    def reduce(self, manifest: PodManifest) -> Pod:
        """Return the parts of a manifest that are kept."""
        meta, spec, status = manifest.metadata, manifest.spec, manifest.status or StatusManifest()
        ready, unready = _ready_conditions(status)
        sidecars = [c for c in spec.initContainers or () if c.restartPolicy == "Always"]
        running = [*spec.containers, *sidecars]
        held = self._sum_demand(spec)
        cpu, size = held.pop("cpu", 0), held.pop("memory", 0)
        gpus, extended = self._split_gpus(held)
        labels = self._shared.mapping(meta.labels or {})
        template = PodTemplate(
            namespace=self._shared.text(meta.namespace),
            phase=self._shared.text(status.phase),
            ready=ready is not None,
            deleting=meta.deletionTimestamp is not None,
            labels=labels,
            annotations=self._shared.mapping(_own_annotations(meta)),
            owner=self._owner(meta.ownerReferences or ()),
            containers=self._shared.once(tuple(self._shared.text(c.name) for c in running)),
            gpus=gpus,
            claims=bool(spec.resourceClaims),
            ports=self._shared.once(tuple(self._ports(running))),
            trouble="" if ready else self._shared.text(_trouble(status)),
            extended=extended,
            gpu_groups=self._shared.once(groups(labels)),
            placeholder=is_placeholder(labels, (c.image for c in running), spec.priority),
            host_paths=any(volume.hostPath is not None for volume in spec.volumes or ()),
            unhealthy=self._shared.once(unhealthy_devices(_statuses(status))),
            needs=self._shared.once(StartNeeds(tuple(_tolerations(spec)), cpu, size)),
        )
        born = instant.read(meta.creationTimestamp) or 0.0
        own_values = pack_values(meta.uid, status.podIP, (born, _time(ready), _time(unready)))
        shared = self._shared.record(template)
        return Pod(shared, meta.name, self._shared.text(spec.nodeName), own_values)

    def _owner(self, references: Iterable[OwnerManifest]) -> Owner | None:
        for owner in references:
            if owner.controller and _is_plausible(owner):
                return self._shared.once(Owner(owner.apiVersion, owner.kind, owner.name))
        return None

    def _ports(self, containers: Iterable[_Container]) -> Iterable[ContainerPort]:
        for container in containers:
            for port in container.ports or ():
                if port.protocol == "TCP":
                    yield ContainerPort(self._shared.text(port.name), port.containerPort)

    def _split_gpus(self, demand: Mapping[str, int]) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the GPU resources, and the other extended resources."""
        gpus = {name: count for name, count in demand.items() if self._is_gpu(name)}
        extended = (
            demand if not gpus else {n: count for n, count in demand.items() if n not in gpus}
        )
        return self._shared.mapping(gpus), self._shared.mapping(extended)

    def _sum_demand(self, spec: _Spec) -> dict[str, int]:
        """Sum devices, CPU and memory as the scheduler does: containers and sidecars together, or
        the largest ordinary init container if that is more (Kubernetes, "Resource sharing within
        containers")."""
        held: dict[str, int] = {}
        for container in spec.containers:
            _add(held, self._demand(container))
        largest: dict[str, int] = {}
        sidecars: dict[str, int] = {}
        for container in spec.initContainers or ():
            demand = self._demand(container)
            if container.restartPolicy == "Always":
                _add(held, demand)
                _add(sidecars, demand)
                continue
            for resource, count in demand.items():
                most = count + sidecars.get(resource, 0)
                largest[resource] = max(largest.get(resource, 0), most)
        for resource, count in largest.items():
            held[resource] = max(held.get(resource, 0), count)
        return held

    def _demand(self, container: _Container) -> dict[str, int]:
        resources = container.resources
        if resources is None:
            return {}
        demand: dict[str, int] = {}
        # A limit is the default of a missing request. That of a device equals its limit.
        for amounts in (resources.limits, resources.requests):
            for resource, amount in (amounts or {}).items():
                if "/" in resource:
                    if count := _count(amount):
                        demand[self._shared.text(resource)] = count
                elif resource in _UNITS:
                    demand[resource] = _thousandths(str(amount)) // _UNITS[resource]
        return demand


def _kept_values(manifest: PodManifest) -> object:
    """Return what is kept of a pod, in about the size that it has there."""
    meta, spec = manifest.metadata, manifest.spec
    containers = [*spec.containers, *(spec.initContainers or ())]
    return (
        meta.labels,
        _own_annotations(meta),
        [(row.name, row.ports, row.resources) for row in containers],
        spec.tolerations,
    )


def _own_annotations(meta: MetaManifest) -> dict[str, str]:
    """Return the annotations that this project reads."""
    annotations = meta.annotations or {}
    return {key: text for key, text in annotations.items() if key.startswith(_ANNOTATIONS)}


def _tolerations(spec: _Spec) -> Iterable[Toleration]:
    for row in spec.tolerations or ():
        yield Toleration(row.key, row.operator, row.value, row.effect)


def _statuses(status: StatusManifest) -> list[_ContainerStatus]:
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]


def _ready_conditions(status: StatusManifest) -> tuple[_Condition | None, _Condition | None]:
    """Return the Ready condition, as the first one if it is True and as the second one if not."""
    for condition in status.conditions or ():
        if condition.type == "Ready":
            return (condition, None) if condition.status == "True" else (None, condition)
    return None, None


_STARTING: Final = ("", "ContainerCreating", "PodInitializing")
"""Reasons for which a container waits while nothing is wrong."""
_RESTARTS: Final = 3
"""Restarts after which a container that is not ready does not simply start."""


REJECTED: Final = (
    *("UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "OutOf"),
    "Evicted",
)
"""The kubelet's reasons for pods that it does not admit, ``OutOfnvidia.com/gpu`` and others, or
does not keep (``pkg/kubelet/lifecycle`` and ``pkg/kubelet/eviction`` of k8s.io/kubernetes)."""
REJECTED_FOR: Final = 1200.0
"""Seconds for which such a pod says why its workload lacks pods: it may stay for days."""


def _trouble(status: StatusManifest) -> str:
    """Return why a container of a pod does not run, or why the kubelet has rejected the pod; empty
    if it may be starting."""
    if status.phase == "Failed":
        return status.reason if status.reason.startswith(REJECTED) else ""
    for container in status.containerStatuses or ():
        waiting = container.state.waiting if container.state is not None else None
        if waiting is not None and waiting.reason not in _STARTING:
            return waiting.reason
        if container.restartCount >= _RESTARTS:
            return "Restarting"
    return ""


def _time(condition: _Condition | None) -> float:
    """Return the time of a condition's last transition; 0 if there is none."""
    return 0.0 if condition is None else instant.read(condition.lastTransitionTime) or 0.0


def _is_plausible(owner: OwnerManifest) -> bool:
    """Return whether an object of this kind and name can exist."""
    return bool(
        _VERSION.fullmatch(owner.apiVersion)
        and _KIND.fullmatch(owner.kind)
        and _NAME.fullmatch(owner.name)
    )


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for key, count in more.items():
        total[key] = total.get(key, 0) + count


_UNITS: Final = {"cpu": 1, "memory": 1000}
"""Thousandths of a unit in which an amount is kept: thousandths of a core, bytes."""


@lru_cache(maxsize=4096)
def _thousandths(amount: str) -> int:
    """Return the thousandths of a quantity; 0 for a text that is none, which no API server has."""
    try:
        return max(0, to_milli(parse(amount)))
    except ValueError:
        return 0


_SUFFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_COUNT = re.compile(r"([0-9]+)(k|M|G|Ki|Mi|Gi|)")


def _count(amount: str | float) -> int:
    """Parse a whole number of devices, because extended resources have no fractions; else 0."""
    if not isinstance(amount, str):
        return int(amount)
    match = _COUNT.fullmatch(amount)
    return int(match[1]) * _SUFFIX[match[2]] if match else 0
