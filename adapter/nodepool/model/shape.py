"""What one pod asks of a node. Pods of one shape are interchangeable to a scheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

Amounts = Mapping[str, int]
"""Resource name to thousandths of its unit (``cpu: 100`` is 0.1 core, memory in milli-bytes)."""

_DEVICES = re.compile(
    r"nvidia\.com/(?:gpu(?:\.shared)?|mig-.+?(?:\.shared)?)|amd\.com/(?:gpu|cpx_.+|spx_.+|dpx_.+)"
    r"|gpu\.intel\.com/(?:i915|xe)|habana\.ai/gaudi|microsoft\.com/directx|volcano\.sh/vgpu-number"
)
"""Resources whose unit is a device, an instance or a share of one; memory and core quotas of
the same vendors are none. Each unit counts as a whole GPU: a cap is then never exceeded."""


class Toleration(NamedTuple):
    """As in a pod's spec; an empty key with ``Exists`` tolerates everything."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A pod's needs; hashable, in a canonical order."""

    requests: tuple[tuple[str, int], ...]
    """Sorted resource names with thousandths: the larger of the containers' sum and any init
    container, sidecars and overhead added, as the scheduler counts; ``pods`` is always 1000."""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_affinity: str = ""
    """``requiredDuringSchedulingIgnoredDuringExecution`` of the node affinity, as canonical
    JSON; empty without one. Preferences do not bind and are left out."""
    claims: tuple[str, ...] = ()
    """Names of the ResourceClaimTemplates (DRA) of the pod, sorted."""
    claim_devices: int | None = 0
    """Devices that all claims of one pod ask for; None where a template's size is unknown."""
    runtime_class: str = ""
    priority: int = 0
    """The resolved priority: a placeholder's must be below it."""


@lru_cache(maxsize=4096)
def key(shape: Shape) -> str:
    """Ten hexadecimal digits that stand for the shape in names of objects, stable for ever."""
    text = repr((shape.requests, shape.node_selector, [tuple(t) for t in shape.tolerations]))
    rest = (shape.node_affinity, shape.claims, shape.runtime_class, shape.priority)
    return sha256(f"{text}{rest!r}".encode()).hexdigest()[:10]


@lru_cache(maxsize=4096)
def gpus(shape: Shape) -> int | None:
    """Devices that one pod holds; None where a claim's size is unknown."""
    if shape.claim_devices is None:
        return None
    return shape.claim_devices + sum(
        -(-milli // 1000) for name, milli in shape.requests if _DEVICES.fullmatch(name)
    )


def device_resource(name: str) -> bool:
    """Whether a resource's unit is a device, an instance or a share of one."""
    return _DEVICES.fullmatch(name) is not None
