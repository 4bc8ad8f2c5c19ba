"""Nodes, each reduced to its capacity, its pool and the facts that admit pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from adapter.hpa import quantity
from adapter.nodepool.seen.meta import NamedObject, ObjectMeta
from adapter.pipeline.cluster import objects
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.nodelabels import POOL_LABELS
from adapter.pipeline.cluster.nodestarts import marks_state, refusals
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.taints import Taint, is_binding

PATH = "/api/v1/nodes"

ACCELERATOR_LABELS: tuple[str, ...] = (
    "k8s.amazonaws.com/accelerator",
    "cloud.google.com/gke-accelerator",
    "kubernetes.azure.com/accelerator",
    "accelerator",
)
"""Labels by which the Cluster Autoscaler identifies a GPU node, regardless of its allocatable
resources (nodepool.md, GPU traps). The last one is the old label of AKS."""

UNLABELLED = "unlabelled"
"""The pool of nodes without a label that names a pool."""


@dataclass(frozen=True, slots=True)
class NodeInfo(NamedObject):
    """The current state of a node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]
    """Thousandths."""
    healthy: bool
    """Whether pods may start there: its Ready condition is True, and neither a cordon nor another
    passing state, such as DiskPressure, keeps them away."""
    created: float
    devices: Mapping[str, int] = field(default_factory=dict)
    """Allocatable GPU resource -> devices, instances, or shares of one."""

    def pool(self, labels: Sequence[str] = ()) -> str:
        """Return its pool, from the first of the labels that it has."""
        names = (self.labels[key] for key in (*labels, *POOL_LABELS) if key in self.labels)
        return next(names, "") or UNLABELLED


NodeInfoTable = Table[str, NodeInfo]


class _Manifest(SeenNode, frozen=True):
    metadata: ObjectMeta


def decode(raw: msgspec.Raw | bytes, resources: GpuResources = STANDARD) -> NodeInfo:
    """Decode a node.

    Args:
        raw: its JSON.
        resources: those that stand for a GPU.

    Raises:
        msgspec.DecodeError: the text is not a Node.
        ValueError: an amount is not a quantity.
    """
    node = objects.decode(raw, _Manifest)
    passing = [taint for taint in node.taints if marks_state(taint)]
    refused = refusals(node.status.states)
    closed = node.spec.unschedulable or refused or any(map(is_binding, passing))
    allocatable = {
        name: quantity.to_milli(quantity.parse(amount))
        for name, amount in node.status.allocatable.items()
    }
    return NodeInfo(
        name=node.name,
        labels=node.metadata.labels,
        taints=tuple(taint for taint in node.taints if taint not in passing),
        allocatable=allocatable,
        healthy=node.ready and not closed,
        created=node.metadata.created,
        devices={
            name: count
            for name, count in resources.devices(allocatable, 1000).items()
            if resources.is_device(name)
        },
    )
