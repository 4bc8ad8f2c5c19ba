"""The cluster's nodes and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from adapter.cluster.table import Table
from apiservice.labels.selector import Selector


@dataclass(frozen=True, slots=True)
class Node:
    """A node, reduced to its name and labels."""

    name: str
    labels: Mapping[str, str]

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


class NodeManifest(msgspec.Struct):
    """The fields of a ``v1.Node`` that this project reads."""

    metadata: _Meta


_manifest = msgspec.json.Decoder(NodeManifest)


def decode(raw: msgspec.Raw | bytes) -> Node:
    """Decode a node from its JSON. Raises msgspec.DecodeError."""
    return reduce(_manifest.decode(raw))


def reduce(manifest: NodeManifest) -> Node:
    """Return the parts of a manifest that are kept."""
    return Node(manifest.metadata.name, manifest.metadata.labels or {})
