"""The cluster's nodes and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.table import Table
from apiservice.labels.selector import Selector


@dataclass(frozen=True, slots=True)
class Node:
    """A node, reduced to its name, labels and GPUs."""

    name: str
    labels: Mapping[str, str]
    gpus: Mapping[str, int] = field(default_factory=dict)
    """GPU resource -> devices, replicas or shares of the node's capacity."""

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


class _Status(msgspec.Struct):
    capacity: dict[str, str | int] | None = None


class NodeManifest(msgspec.Struct):
    """The fields of a ``v1.Node`` that this project reads."""

    metadata: _Meta
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
    capacity = (manifest.status.capacity or {}).items()
    amounts = {
        name: int(amount)
        for name, amount in capacity
        if resources.is_device(name) and str(amount).isdecimal()
    }
    return Node(manifest.metadata.name, manifest.metadata.labels or {}, resources.devices(amounts))
