"""The cluster's nodes: labels, GPUs, and what keeps pods from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.nodestarts import NOTHING_KNOWN, NodeState, state_of
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.taints import Taint
from apiservice.labels.selector import Selector


@dataclass(frozen=True, slots=True)
class Node:
    """A node, reduced to its name, labels, GPUs and what keeps pods from it."""

    name: str
    labels: Mapping[str, str]
    gpus: Mapping[str, int] = field(default_factory=dict)
    """GPU resource -> devices, replicas or shares of the node's capacity."""
    state: NodeState = NOTHING_KNOWN

    @property
    def key(self) -> str:
        """The name."""
        return self.name


class Nodes(Table[str, Node]):
    """The cluster's nodes."""

    def get(self, name: str) -> Node | None:
        """The node of that name."""
        return self.find(name)

    def select(self, selector: Selector) -> Sequence[Node]:
        """The nodes that the selector matches, by name."""
        return sorted(
            (node for node in self if selector.matches(node.labels)), key=lambda node: node.name
        )


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _Taint(msgspec.Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(msgspec.Struct):
    """The fields of a node's ``spec`` that this project reads."""

    taints: list[_Taint] | None = None
    unschedulable: bool = False

    def known_taints(self) -> list[Taint]:
        """Return the taints."""
        return [Taint(row.key, row.value, row.effect) for row in self.taints or ()]


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    capacity: dict[str, str | int] | None = None
    allocatable: dict[str, str | int] | None = None
    conditions: list[_Condition] | None = None


class NodeManifest(msgspec.Struct):
    """The fields of a ``v1.Node`` that this project reads."""

    metadata: _Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: _Status = msgspec.field(default_factory=_Status)


_manifest = msgspec.json.Decoder(NodeManifest)


def decode(raw: msgspec.Raw | bytes, resources: GpuResources = STANDARD) -> Node:
    """Decode a node from its JSON. Raises msgspec.DecodeError.

    Args:
        raw: its JSON.
        resources: those that stand for a GPU.
    """
    return reduce(_manifest.decode(raw), resources)


def reduce(manifest: NodeManifest, resources: GpuResources = STANDARD) -> Node:
    """Return the parts of a manifest that are kept."""
    meta, spec, status = manifest.metadata, manifest.spec, manifest.status
    state = state_of(
        spec.known_taints(),
        {row.type: row.status for row in status.conditions or ()},
        status.capacity or {},
        status.allocatable or {},
        resources,
        cordoned=spec.unschedulable,
    )
    return Node(meta.name, meta.labels or {}, resources.devices(state.has), state)
