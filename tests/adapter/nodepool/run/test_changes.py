"""Changes of pods start a round soon, collected and at a bounded rate."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapter.nodepool.run import changes as module
from adapter.nodepool.run.changes import (
    ChangeSignal,
    WatchedTable,
    living_gpu_pod,
    requested_nodes,
    requested_pods,
    usable_capacity,
)
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.nodes import NodeInfo
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.workloads import ScalableWorkload
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.reflector import EventType
from tests.adapter.nodepool.manifests import SPEC, autoscaler_status, deployment, node, pod

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


class Noted(ChangeSignal):
    """Counts."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def note(self) -> None:
        self.count += 1
        super().note()


def pods_of(changes: ChangeSignal) -> WatchedTable[tuple[str, str], PodInfo]:
    return WatchedTable(ClusterTables().pods, changes, living_gpu_pod)


def test_created_ended_and_deleted_pods_are_noted_and_bound_ones_are_not() -> None:
    changes = Noted()
    pods = pods_of(changes)
    pods.apply(ADDED, pod("a"))
    assert changes.count == 1
    pods.apply(MODIFIED, pod("a", on="n1"))
    assert changes.count == 1, "it counted before"
    pods.apply(MODIFIED, pod("a", on="n1", deletionTimestamp="2026-01-01T00:00:50Z"))
    assert changes.count == 2
    pods.apply(DELETED, pod("a", on="n1", deletionTimestamp="2026-01-01T00:00:50Z"))
    assert changes.count == 2, "it was going"
    pods.apply(ADDED, pod("b", on="n1"))
    pods.apply(DELETED, pod("b", on="n1"))
    assert changes.count == 4, "an ended pod leaves the watch as a deleted one"


def test_pods_without_gpus_daemonset_pods_and_placeholders_are_ignored() -> None:
    changes = Noted()
    pods = pods_of(changes)
    pods.apply(ADDED, pod("a", spec={"containers": [{"resources": {"requests": {"cpu": "1"}}}]}))
    low = SPEC | {"priorityClassName": "gpu-metrics-adapter-headroom"}
    pods.apply(ADDED, pod("b", spec=low, labels={"gpu-metrics-adapter.io/headroom": "x"}))
    pods.apply(ADDED, pod("c", owner=("DaemonSet", "exporter")))
    assert changes.count == 0


def test_a_workload_that_requests_more_pods_is_noted() -> None:
    changes = Noted()
    table: WatchedTable[tuple[str, Workload], ScalableWorkload] = WatchedTable(
        ClusterTables().deployments, changes, requested_pods
    )
    table.apply(ADDED, deployment(2))
    table.apply(MODIFIED, deployment(2))
    assert changes.count == 1
    table.apply(MODIFIED, deployment(4))
    assert changes.count == 2


def test_a_node_that_is_new_usable_or_gone_is_noted_and_its_heartbeat_is_not() -> None:
    changes = Noted()
    table: WatchedTable[str, NodeInfo] = WatchedTable(
        ClusterTables().nodes, changes, usable_capacity
    )
    table.apply(ADDED, node("a", ready="False"))
    table.apply(MODIFIED, node("a", ready="False"))
    assert changes.count == 1
    table.apply(MODIFIED, node("a"))
    table.apply(MODIFIED, node("a"))
    assert changes.count == 2
    table.apply(DELETED, node("a"))
    assert changes.count == 3


def test_a_changed_target_of_the_cluster_autoscaler_is_noted() -> None:
    changes = Noted()
    table = WatchedTable(ClusterTables().status, changes, requested_nodes)
    status = autoscaler_status()
    table.apply(ADDED, status)
    table.apply(MODIFIED, replace(status, written=(status.written or 0) + 10))
    assert changes.count == 1
    more = tuple(replace(group, target=group.target + 1) for group in status.groups)
    table.apply(MODIFIED, replace(status, groups=more))
    assert changes.count == 2


async def test_without_a_change_the_next_round_starts_when_it_is_due() -> None:
    changes = ChangeSignal()
    due = asyncio.get_running_loop().time() + 0.05
    assert not await changes.until(due, took=0.0)


async def test_a_change_starts_the_next_round_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "APART", 0.0)
    changes = ChangeSignal()
    asyncio.get_running_loop().call_soon(changes.note)
    async with asyncio.timeout(30):
        assert await changes.until(asyncio.get_running_loop().time() + 3600, took=0.0)


async def test_slow_rounds_start_less_often() -> None:
    """Regardless of the number of changes, rounds use a small share of the time."""
    changes = ChangeSignal()
    changes.note()
    loop = asyncio.get_running_loop()
    assert not await changes.until(loop.time() + 0.5, took=1.0), "the full round comes first"
