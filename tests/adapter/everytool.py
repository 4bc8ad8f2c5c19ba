"""Every tool that reads a cluster, and a cluster in which each of them has something to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapter.tools.client.errors import VIEW
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.tools.explain.cluster import NO_PODS_NAMED, World, at, gpu_metric
from tests.adapter.tools.explain.test_pods_and_nodes import GPU
from tests.adapter.tools.migrate import peercluster
from tests.adapter.tools.top import cluster as topcluster

TOOLS = {
    "explain hpa": ("explain", "hpa", "llm"),
    "explain pod": ("explain", "pod", "llm-7f9"),
    "explain node": ("explain", "node", "n1"),
    "explain gpu": ("explain", "gpu", "n1.gpu0"),
    "explain workload": ("explain", "workload", "deployment/llm"),
    "idle": ("idle",),
    "doctor": ("doctor",),
    "migrate": ("migrate", "prometheus-adapter"),
    "top": ("top", "--once"),
    "top gpus": ("top", "gpus"),
    "top pods": ("top", "pods"),
    "top workloads": ("top", "workloads"),
    "top hpas": ("top", "hpas"),
    "top nodes": ("top", "nodes"),
}


@contextmanager
def busy_cluster(folder: Path) -> Iterator[tuple[ApiServer, Path]]:
    """The API server, and the kubeconfig, while the block runs."""
    world = World().pod("llm-7f9", "92").pod("llm-x2k", why=NO_PODS_NAMED)
    world.hpa(gpu_metric(), desired=3).event("SuccessfulRescale", "New size: 3; reason: x", 60)
    for pod in world.gpupods:
        pod["workload"] = {"kind": "Deployment", "name": "llm", "apiVersion": "apps/v1"}
        for device in pod.get("devices", ()):
            device["idleSince"] = at(7200)
    workload: dict[str, Any] = {
        "metadata": {"name": "deployment.llm", "namespace": "chat"},
        "workload": {"kind": "Deployment", "name": "llm"},
        "pods": 2,
        "measured": 1,
        "reasons": [{**NO_PODS_NAMED, "pods": 1}],
    }
    with api_server(folder) as (server, file):
        topcluster.serve(server)
        world.serve(server)
        peercluster.furnish(server)
        node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
        server.answers |= {
            "/version": {"gitVersion": "v1.33.1"},
            "/apis": {"groups": []},
            "/api/v1/nodes": [node],
            "/api/v1/pods": world.pods,
            f"{VIEW}/gpus": [GPU],
            f"{VIEW}/gpupods": world.gpupods,
            f"{VIEW}/namespaces/chat/gpuworkloads": [workload],
        }
        yield server, file
