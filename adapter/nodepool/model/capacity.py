"""What is there: nodes, their pools, and the headroom already ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from adapter.nodepool.model.shape import Amounts, Shape


class Taint(NamedTuple):
    """As in a node's spec."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class PoolNode:
    """One node of a pool, less what its DaemonSets take."""

    name: str
    pool: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    """Thousandths; without what DaemonSet pods request."""
    used: Amounts
    """Thousandths requested by bound pods that are neither DaemonSets' nor placeholders."""
    ready: bool
    """Ready, schedulable, and with the devices its pool's other nodes have."""
    created: float
    """Epoch seconds."""


class Trap(StrEnum):
    """What makes a pool's nodes confuse the autoscaler (nodepool.md, GPU traps)."""

    MIG_MIXED = "mig_mixed"
    """Labelled as a GPU node with no whole GPU allocatable: "not started yet" for ever."""
    RENAMED_SHARED = "renamed_shared"
    """``nvidia.com/gpu.shared``: a resource that the Cluster Autoscaler does not know."""
    TIME_SLICED = "time_sliced"
    """More allocatable GPUs than there are devices."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One node pool (AKS agentpool, GKE node pool, EKS node group, Karpenter NodePool)."""

    name: str
    high: int | None = None
    """Most nodes; None if unknown."""
    boot_seconds: float | None = None
    """p90 from order to GPU allocatable; None until one was seen."""
    backoff_until: float | None = None
    """Epoch seconds; the autoscaler refuses the pool until then."""
    traps: frozenset[Trap] = frozenset()
    example: PoolNode | None = None
    """What its next node would look like: the newest ready one, empty. None where the pool has
    never had one."""
    limits: Amounts = field(default_factory=dict)
    """Most of a resource over all its nodes, thousandths (``spec.limits`` of a Karpenter
    NodePool)."""


class ProvisioningMethod(StrEnum):
    """How headroom is ordered."""

    BUFFER = "CapacityBuffer"
    PLACEHOLDER = "Placeholder"


@dataclass(frozen=True, slots=True)
class Headroom:
    """What this controller ordered and finds in the cluster now."""

    namespace: str
    shape: Shape
    replicas: int
    pods: int
    """Pods of the shape that the order reckoned with: those that were there, and those that
    were about to be created and were not to take the headroom. What they have grown by since has
    consumed headroom: the total is held, not the headroom (or capacity doubles)."""
    needed_at: float
    """Epoch seconds when a plan last wanted at least as much; the hold counts from it."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The GPU capacity of the cluster at one time."""

    nodes: tuple[PoolNode, ...]
    pools: Mapping[str, Pool]
    headroom: tuple[Headroom, ...] = ()
    gpu_hours_spent: Mapping[str, float] = field(default_factory=dict)
    """Pool to GPU-hours of headroom in the running budget period."""
