"""The controller's own page while it plans for a workload, without a cluster."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.learn.idle import GpuPod, IdlePod
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.reports import Reports
from adapter.nodepool.run.selfmetrics import NodepoolMetrics
from adapter.nodepool.run.watches import Watches
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import (
    HOME,
    T0,
    autoscaler_status,
    cluster,
    deployment,
    hpa,
    node,
    pod,
    priority_class,
)

VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team/pods/%2A/gpu_utilization"


async def page() -> str:
    """After one round that orders something, for a pool whose boots have been seen."""
    api = FakeApi()
    api.objects["/apis"] = {"groups": []}
    busy = [{"describedObject": {"name": name}, "value": "90"} for name in "ab"]
    api.objects[VALUES] = {"items": busy}
    seen = cluster(
        nodes=[node("n1"), node("n2")],
        pods=[pod("a", on="n1"), pod("b", on="n1")],
        deployments=[deployment(2)],
        autoscalers=[hpa()],
        classes=[priority_class()],
        status=[autoscaler_status()],
    )
    controller = NodepoolController(
        NodepoolSettings(namespace="gpu-metrics", apply=True),
        HOME,
        seen,
        api,
        lambda: True,
        lambda _: "",
        lambda _: None,
        Ledger(),
        Reports(None),
        clock=lambda: T0,
    )
    assert await controller.round(T0 + 60) is not None
    state = controller.state
    state.pools = {name: replace(pool, boot_seconds=420.0) for name, pool in state.pools.items()}
    state.idle = (IdlePod(GpuPod("team", "a", "u", "gput4", 1, 0.0), T0, 3.0, None),)
    controller.ledger.gpu_hours["gput4"] = 3.5
    registry = CollectorRegistry()
    watches = Watches(None, seen, HOME, jobs_too=True, priority_class="low")
    registry.register(NodepoolMetrics(controller, watches, None, clock=lambda: T0 + 61))
    return generate_latest(registry).decode()
