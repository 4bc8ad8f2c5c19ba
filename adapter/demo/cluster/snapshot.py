"""The objects that ``serve`` watches in a cluster: pods, nodes and HPAs, as one list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adapter.demo.cluster.hpas import hpas
from adapter.demo.cluster.nodes import nodes
from adapter.demo.manifests import pods
from adapter.demo.state import DemoState

Json = dict[str, Any]


def objects(state: DemoState) -> list[Json]:
    """Return the objects of all clusters, for the file that ``serve`` reads."""
    return [
        *all_pods(state),
        *({"apiVersion": "v1", "kind": "Node", **row} for row in nodes(state)),
        *hpas(state),
    ]


def all_pods(state: DemoState) -> Iterator[Json]:
    """Yield the pods of all clusters, the exporters' included."""
    exporters, servers = state.exporters.ports, state.servers.ports
    for cluster in state.everything:
        yield from pods(cluster.world, cluster.namespace, exporters, state.times, servers)
