"""Reflectors of pods, services, nodes and HPAs, each with the collection that it updates."""

from __future__ import annotations

from functools import partial
from typing import Any

from adapter.pipeline.cluster import hpamanifest, nodes, services
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.hpas import Hpas, ShownHpa
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.services import Service, Services
from apiservice.kube.reflector import Reflector, ReflectorOptions


def watch_pods(client: Any, index: PodIndex, decoder: PodDecoder) -> Reflector[Pod]:
    """Return a reflector of all pods into ``index``, to be run by the caller. Needs list and
    watch on pods."""
    return _watch(client, "/api/v1/pods", decoder.decode, index)


def watch_services(
    client: Any, table: Services, options: ReflectorOptions | None = None
) -> Reflector[Service]:
    """Return a reflector of all Services. Without the right, only Object metrics on them fail."""
    return _watch(client, "/api/v1/services", services.decode, table, options)


def watch_nodes(client: Any, table: Nodes, resources: GpuResources = STANDARD) -> Reflector[Node]:
    """Return a reflector of all nodes. Without the right, only node selectors fail."""
    return _watch(client, "/api/v1/nodes", partial(nodes.decode, resources=resources), table)


def watch_hpas(
    client: Any, table: Hpas, options: ReflectorOptions | None = None
) -> Reflector[ShownHpa]:
    """Return a reflector of all HPAs. Without the right, the view API shows none."""
    path = "/apis/autoscaling/v2/horizontalpodautoscalers"
    return _watch(client, path, hpamanifest.decode, table, options)


def _watch(
    client: Any, path: str, decode: Any, into: Any, options: ReflectorOptions | None = None
) -> Reflector[Any]:
    reflector: Reflector[Any] = Reflector(client, path, decode, into, options=options)
    into.fed_by(reflector)
    return reflector
