"""Capacity: nodes, their pools, and the existing headroom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from adapter.nodepool.model.shape import Amounts, Shape
from adapter.pipeline.cluster.taints import Taint


@dataclass(frozen=True, slots=True)
class PoolNode:
    """One node of a pool, without the requests of its DaemonSets."""

    name: str
    pool: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    """Thousandths, without the requests of DaemonSet pods."""
    used: Amounts
    """Thousandths requested by bound pods, except DaemonSet pods and placeholders."""
    ready: bool
    """Ready, schedulable, and with the same devices as the other nodes of its pool."""
    created: float
    """Epoch seconds."""


class Trap(StrEnum):
    """A property of a pool's nodes that confuses the autoscaler (nodepool.md, GPU traps)."""

    MIG_MIXED = "mig_mixed"
    """Labelled as a GPU node, but without a whole allocatable GPU: it never counts as started."""
    RENAMED_SHARED = "renamed_shared"
    """``nvidia.com/gpu.shared``: a resource that the Cluster Autoscaler does not know."""
    TIME_SLICED = "time_sliced"
    """More allocatable GPUs than there are devices."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One node pool (AKS agentpool, GKE node pool, EKS node group, Karpenter NodePool)."""

    name: str
    high: int | None = None
    """Maximum number of nodes; None if unknown."""
    boot_seconds: float | None = None
    """90th percentile from the order to an allocatable GPU; None before the first boot."""
    backoff_until: float | None = None
    """Epoch seconds until which the autoscaler does not scale the pool up."""
    traps: frozenset[Trap] = frozenset()
    example: PoolNode | None = None
    """A model of its next node: the newest ready node, without pods. None if the pool has never
    had a node."""
    limits: Amounts = field(default_factory=dict)
    """Resource -> maximum over all its nodes in thousandths (``spec.limits`` of a Karpenter
    NodePool)."""
    coming: int = 0
    """Nodes that the Cluster Autoscaler has requested from the cloud and that do not exist yet."""
    waits: bool = True
    """Whether its autoscaler lets a new GPU pod wait before it orders a node. The Cluster
    Autoscaler does (30 s), Karpenter does not."""


class ProvisioningMethod(StrEnum):
    """How headroom is ordered."""

    BUFFER = "CapacityBuffer"
    PLACEHOLDER = "Placeholder"


@dataclass(frozen=True, slots=True)
class Headroom:
    """Headroom of this controller that exists in the cluster."""

    namespace: str
    shape: Shape
    replicas: int
    pods: int
    """Pods of the shape that the order assumed: existing pods, and pods about to be created that
    were not expected to take the headroom. Pods beyond that have consumed headroom. The total of
    pods and headroom is kept, because otherwise capacity would double."""
    needed_at: float
    """Epoch seconds when a plan last needed at least this headroom; the hold starts then."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The GPU capacity of the cluster at one time."""

    nodes: tuple[PoolNode, ...]
    pools: Mapping[str, Pool]
    headroom: tuple[Headroom, ...] = ()
    gpu_hours_spent: Mapping[str, float] = field(default_factory=dict)
    """Pool -> GPU-hours of headroom in the current budget period."""
