"""Reflectors of pods, services and nodes, each with the collection that it updates."""

from __future__ import annotations

from typing import Any

from adapter.cluster import nodes, services
from adapter.cluster.index import PodIndex
from adapter.cluster.manifest import PodDecoder
from adapter.cluster.nodes import Node, Nodes
from adapter.cluster.pod import Pod
from adapter.cluster.services import Service, Services
from apiservice.kube.reflector import Reflector, ReflectorOptions


def watch_pods(
    client: Any,
    index: PodIndex,
    decoder: PodDecoder,
    options: ReflectorOptions | None = None,
) -> Reflector[Pod]:
    """Return a reflector of all pods into ``index``, to be run by the caller. Needs list and
    watch on pods."""
    reflector = Reflector(client, "/api/v1/pods", decoder.decode, index, options=options)
    index.fed_by(reflector)
    return reflector


def watch_services(
    client: Any, table: Services, options: ReflectorOptions | None = None
) -> Reflector[Service]:
    """Return a reflector of all Services. Without the right, only Object metrics on them fail."""
    reflector = Reflector(client, "/api/v1/services", services.decode, table, options=options)
    table.fed_by(reflector)
    return reflector


def watch_nodes(
    client: Any, table: Nodes, options: ReflectorOptions | None = None
) -> Reflector[Node]:
    """Return a reflector of all nodes. Without the right, only node selectors fail."""
    reflector = Reflector(client, "/api/v1/nodes", nodes.decode, table, options=options)
    table.fed_by(reflector)
    return reflector
