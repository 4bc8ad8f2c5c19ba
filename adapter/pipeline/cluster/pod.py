"""A pod, reduced to what attribution and selection need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

import msgspec

from adapter.pipeline.cluster.gpuresources import is_known_other
from adapter.pipeline.cluster.nodestarts import NO_NEEDS, StartNeeds
from adapter.pipeline.cluster.podvalues import OwnValues, address_of, pack_values, times_of, uid_of


class PodRef(NamedTuple):
    """A pod's namespace and name, which identify it among the pods of one time."""

    namespace: str
    name: str


class Owner(NamedTuple):
    """A controlling owner reference."""

    api_version: str
    kind: str
    name: str


class ContainerPort(NamedTuple):
    """A declared container port; ``name`` is empty if the spec gives none."""

    name: str
    port: int


@dataclass(frozen=True, slots=True)
class PodFields:
    """The fields of a pod as of one resourceVersion, as a manifest or a recording gives them."""

    ref: PodRef
    uid: str
    node: str
    """Empty until the pod is bound."""
    ip: str
    """Empty until the pod has an address."""
    phase: str
    """``status.phase``: Pending, Running, Succeeded, Failed or Unknown."""
    ready: bool
    """The Ready condition is True."""
    deleting: bool
    """A deletionTimestamp is set."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Only the annotations that this project reads."""
    owner: Owner | None
    containers: tuple[str, ...]
    gpus: Mapping[str, int]
    """Extended GPU resources summed over the containers, such as ``nvidia.com/gpu: 2``."""
    claims: bool
    """The pod has DRA resource claims: it may hold a GPU without a limit in its spec. Only a sample
    that names it shows whether a claim is one of a GPU, or of a network card."""
    ports: tuple[ContainerPort, ...]
    born: float = 0.0
    """Epoch seconds of its creation; 0 if not known. Earlier measurements are about a
    predecessor of the same name."""
    ready_since: float = 0.0
    """Epoch seconds of the last transition of the Ready condition to True, by the clock of the
    pod's node; 0 if not known or if the pod is not ready."""
    unready_since: float = 0.0
    """Epoch seconds since when the Ready condition is not True, by the same clock; 0 if not known,
    or if the pod is ready."""
    trouble: str = ""
    """Why a container of a pod that is not ready does not run, as the kubelet writes it:
    ``CrashLoopBackOff``, ``ImagePullBackOff``; ``Restarting`` after three restarts; empty if it may
    be starting."""
    host_paths: bool = False
    """The pod mounts a directory of its node (a ``hostPath`` volume)."""
    placeholder: bool = False
    """The pod has no work: it holds room for others
    (:mod:`adapter.pipeline.cluster.placeholder`)."""
    extended: Mapping[str, int] = field(default_factory=dict)
    """Extended resources besides ``gpus``, summed in the same way."""
    gpu_groups: tuple[str, ...] = ()
    """See :mod:`adapter.pipeline.cluster.gpugroups`. A pod of a group either reserves a device for
    it, or has a fraction of that device and requests none."""
    unhealthy: tuple[str, ...] = ()
    """Ids of its devices that are not healthy (:mod:`adapter.pipeline.cluster.devicehealth`)."""
    needs: StartNeeds = NO_NEEDS
    """What it needs of a node besides its GPUs, and takes there."""


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """The fields that pods of one controller have in common, as long as they are in one state.

    A cluster has far fewer of them than pods. See :class:`PodFields`.
    """

    namespace: str
    phase: str
    ready: bool
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner | None
    containers: tuple[str, ...]
    gpus: Mapping[str, int]
    claims: bool
    ports: tuple[ContainerPort, ...]
    trouble: str
    host_paths: bool
    placeholder: bool
    extended: Mapping[str, int]
    gpu_groups: tuple[str, ...]
    unhealthy: tuple[str, ...]
    needs: StartNeeds


def _of_template(name: str) -> Any:
    """Return a property that reads a field of the template."""
    return property(attrgetter(f"template.{name}"))


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as of one resourceVersion. Replaced on every change, never edited.

    A cluster has 150,000 of them. So what a pod has for itself is packed, and nothing in it is
    visited by a garbage collection. The attributes are those of :class:`PodFields`.
    """

    template: PodTemplate
    name: str
    node: str
    own: OwnValues

    namespace = cast("str", _of_template("namespace"))
    phase = cast("str", _of_template("phase"))
    ready = cast("bool", _of_template("ready"))
    deleting = cast("bool", _of_template("deleting"))
    labels = cast("Mapping[str, str]", _of_template("labels"))
    annotations = cast("Mapping[str, str]", _of_template("annotations"))
    owner = cast("Owner | None", _of_template("owner"))
    containers = cast("tuple[str, ...]", _of_template("containers"))
    gpus = cast("Mapping[str, int]", _of_template("gpus"))
    claims = cast("bool", _of_template("claims"))
    ports = cast("tuple[ContainerPort, ...]", _of_template("ports"))
    trouble = cast("str", _of_template("trouble"))
    host_paths = cast("bool", _of_template("host_paths"))
    placeholder = cast("bool", _of_template("placeholder"))
    extended = cast("Mapping[str, int]", _of_template("extended"))
    gpu_groups = cast("tuple[str, ...]", _of_template("gpu_groups"))
    unhealthy = cast("tuple[str, ...]", _of_template("unhealthy"))
    needs = cast("StartNeeds", _of_template("needs"))

    @classmethod
    def of(cls, fields: PodFields) -> Pod:
        """Return the pod with these fields."""
        shared = {name: getattr(fields, name) for name in _SHARED}
        template = PodTemplate(namespace=fields.ref.namespace, **shared)
        moments = (fields.born, fields.ready_since, fields.unready_since)
        own_values = pack_values(fields.uid, fields.ip, moments)
        return cls(template, fields.ref.name, fields.node, own_values)

    def fields(self) -> PodFields:
        """Return all fields."""
        return PodFields(**{name: getattr(self, name) for name in _FIELDS})

    def replace(self, **changes: Any) -> Pod:
        """Return a pod that differs in these fields."""
        return Pod.of(replace(self.fields(), **changes))

    @property
    def ref(self) -> PodRef:
        """The pod's namespace and name."""
        return _new(PodRef, (self.template.namespace, self.name))  # half the time of the class

    @property
    def uid(self) -> str:
        """See :class:`PodFields`."""
        return uid_of(self.own)

    @property
    def ip(self) -> str:
        """See :class:`PodFields`."""
        return address_of(self.own)

    @property
    def born(self) -> float:
        """See :class:`PodFields`."""
        return times_of(self.own)[0]

    @property
    def ready_since(self) -> float:
        """See :class:`PodFields`."""
        return times_of(self.own)[1]

    @property
    def unready_since(self) -> float:
        """See :class:`PodFields`."""
        return times_of(self.own)[2]

    @property
    def holds_gpu(self) -> bool:
        """Whether the pod holds a GPU by its manifest: it requests one, or a fraction of one."""
        return bool(self.gpus or self.gpu_groups)

    @property
    def may_hold_gpu(self) -> bool:
        """Whether an exporter's sample can be about this pod, by its spec.

        A claim may be one of a GPU, and a resource of an unknown name may stand for one.
        """
        stated = self.gpus or self.gpu_groups or self.claims
        return bool(stated) or not all(map(is_known_other, self.extended))

    @property
    def finished(self) -> bool:
        """Whether all processes of this pod have ended."""
        return self.phase in ("Succeeded", "Failed")


_new: Final = tuple.__new__
_SHARED: Final = tuple(name for name in PodTemplate.__struct_fields__ if name != "namespace")
_FIELDS: Final = tuple(field.name for field in fields(PodFields))

Find = Callable[[PodRef], Pod | None]
"""Returns the known pod of that name."""
