"""A pod, reduced to what attribution and selection need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from adapter.pipeline.cluster.gpuresources import known_other
from adapter.pipeline.cluster.nodestarts import NO_NEEDS, StartNeeds


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
class Pod:
    """A pod as of one resourceVersion. Replaced on every change, never edited."""

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
    needs: StartNeeds = NO_NEEDS
    """What it needs of a node besides its GPUs, and takes there."""

    @property
    def holds_gpu(self) -> bool:
        """Whether the pod holds a GPU by its manifest: it requests one, or a fraction of one."""
        return bool(self.gpus or self.gpu_groups)

    @property
    def may_hold_gpu(self) -> bool:
        """Whether an exporter's sample can be about this pod, by its spec.

        A claim may be one of a GPU, and a resource of an unknown name may stand for one.
        """
        known = self.gpus or self.gpu_groups or self.claims
        return bool(known) or not all(map(known_other, self.extended))

    @property
    def finished(self) -> bool:
        """Whether all processes of this pod have ended."""
        return self.phase in ("Succeeded", "Failed")


Find = Callable[[PodRef], Pod | None]
"""Returns the known pod of that name."""
