"""The shape of a pod: its requirements on a node. A scheduler treats pods of one shape alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.taints import Toleration

Amounts = Mapping[str, int]
"""Resource name to thousandths of its unit (``cpu: 100`` is 0.1 core, memory in milli-bytes)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A pod's requirements; hashable, in a canonical order."""

    requests: tuple[tuple[str, int], ...]
    """Sorted resource names with thousandths. The calculation is the scheduler's: the maximum of
    the containers' sum and any init container, plus sidecars and overhead. ``pods`` is 1000."""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_affinity: str = ""
    """``requiredDuringSchedulingIgnoredDuringExecution`` of the node affinity, as canonical
    JSON; empty without one. Preferences are not binding and are left out."""
    claims: tuple[str, ...] = ()
    """Names of the ResourceClaimTemplates (DRA) of the pod, sorted."""
    claim_devices: int | None = 0
    """Devices of all claims of one pod; None if the size of a template is unknown."""
    runtime_class: str = ""
    priority: int = 0
    """The resolved priority. The priority of placeholders must be below it."""
    resources: GpuResources = field(default=STANDARD, compare=False, repr=False)
    """Those that stand for a GPU, from the settings; no part of the identity."""

    @property
    def devices(self) -> Mapping[str, int]:
        """GPU resource -> devices of one pod, besides those of its claims."""
        return _devices(self.requests, self.resources)


@lru_cache(maxsize=4096)
def key(shape: Shape) -> str:
    """Return ten hexadecimal digits that identify the shape in object names. They never change."""
    text = repr((shape.requests, shape.node_selector, [tuple(t) for t in shape.tolerations]))
    rest = (shape.node_affinity, shape.claims, shape.runtime_class, shape.priority)
    return sha256(f"{text}{rest!r}".encode()).hexdigest()[:10]


@lru_cache(maxsize=4096)
def _devices(requests: tuple[tuple[str, int], ...], resources: GpuResources) -> Mapping[str, int]:
    return resources.devices(dict(requests), 1000)


def gpus(shape: Shape) -> int | None:
    """Return the devices that one pod holds; None if the size of a claim is unknown."""
    if shape.claim_devices is None:
        return None
    return shape.claim_devices + sum(shape.devices.values())
