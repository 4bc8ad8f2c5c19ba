"""Grouping of nodes into pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.nodepool.learn.boots import BootTimes
from adapter.nodepool.model.capacity import Trap
from adapter.nodepool.plan.pools import pools, traps, with_pods
from adapter.nodepool.seen.nodes import UNLABELLED
from tests.adapter.nodepool.manifests import (
    GPU,
    SPEC,
    T0,
    autoscaler_status,
    node,
    nodepool,
    pod,
)

NOW = T0 + 60
LOW = SPEC | {"priorityClassName": "gpu-metrics-adapter-headroom"}


def test_a_pod_with_only_the_label_of_placeholders_takes_room() -> None:
    """The label would make the node look free, and reduce the headroom of other tenants."""
    labelled = pod("mine", on="a", labels={"gpu-metrics-adapter.io/headroom": "x"})
    (pool_node,) = with_pods([node("a")], [labelled], (), NOW)
    assert pool_node.used[GPU] == 1000


def test_requests_of_daemonsets_reduce_the_capacity_and_requests_of_pods_are_used() -> None:
    exporter = {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}
    rows = [
        pod("exporter", on="a", spec=exporter, owner=("DaemonSet", "exporter")),
        pod("one", on="a"),
        pod("two", on="a"),
        pod("waiting"),
        pod("headroom", on="a", labels={"gpu-metrics-adapter.io/headroom": "x"}, spec=LOW),
    ]
    (pool_node,) = with_pods([node("a")], rows, (), NOW)
    assert pool_node.allocatable["cpu"] == 7500
    assert pool_node.allocatable["pods"] == 109_000
    assert pool_node.used == {"cpu": 2000, GPU: 2000, "pods": 2000}
    assert (pool_node.pool, pool_node.ready) == ("gput4", True)


def test_nodes_without_gpus_are_not_capacity() -> None:
    plain = node("b", {"cpu": "8"}, labels={"agentpool": "system"})
    assert with_pods([plain], [], (), NOW) == ()


def test_a_node_of_a_gpu_pool_boots_until_it_has_devices() -> None:
    new = node("b", {"cpu": "8"}, created="2026-01-01T00:00:30Z")
    a, b = with_pods([node("a"), new], [], (), NOW)
    assert (a.ready, b.ready) == (True, False)


def test_a_node_that_never_got_devices_is_ignored() -> None:
    broken = node("b", {"cpu": "8"}, created="2025-12-31T00:00:00Z")
    assert [row.name for row in with_pods([node("a"), broken], [], (), NOW)] == ["a"]


def test_a_node_whose_pods_hold_claims_is_capacity_without_extended_resources() -> None:
    claims = {"containers": [], "resourceClaims": [{"resourceClaimTemplateName": "gpu"}]}
    (pool_node,) = with_pods([node("a", {"cpu": "8"})], [pod("x", on="a", spec=claims)], (), NOW)
    assert pool_node.name == "a"


def test_nodes_without_a_label_are_one_pool() -> None:
    (pool_node,) = with_pods([node("a", labels={})], [], (), NOW)
    assert pool_node.pool == UNLABELLED


@pytest.mark.parametrize(
    ("allocatable", "labels", "found"),
    [
        (
            {GPU: "0", "nvidia.com/mig-1g.5gb": "7"},
            {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"},
            {Trap.MIG_MIXED},
        ),
        ({"nvidia.com/mig-1g.5gb": "7"}, {}, set()),
        ({"nvidia.com/mig-1g.5gb": "0"}, {"accelerator": "nvidia"}, set()),
        ({"nvidia.com/gpu.shared": "8"}, {}, {Trap.RENAMED_SHARED}),
        ({"nvidia.com/gpu.shared": "8"}, {"nvidia.com/gpu.replicas": "8"}, {Trap.RENAMED_SHARED}),
        ({GPU: "8"}, {"nvidia.com/gpu.count": "2"}, {Trap.TIME_SLICED}),
        ({GPU: "2"}, {"nvidia.com/gpu.replicas": "2"}, {Trap.TIME_SLICED}),
        ({GPU: "2"}, {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "1"}, set()),
        # With strategy single, each instance counts as a whole GPU.
        ({GPU: "7"}, {"nvidia.com/gpu.count": "7"}, set()),
        ({GPU: "8"}, {"nvidia.com/gpu.count": "many"}, set()),
    ],
    ids=[
        "mig mixed, labelled",
        "mig mixed, not labelled",
        "mig mixed, none offered",
        "renamed",
        "renamed, with replicas",
        "more than devices",
        "by its replicas",
        "exclusive",
        "mig single",
        "a label that is not a number",
    ],
)
def test_traps_are_recognised(
    allocatable: dict[str, str], labels: dict[str, str], found: set[Trap]
) -> None:
    assert traps(node("a", allocatable, labels=labels)) == found


def test_a_pool_has_the_limits_and_the_back_off_of_its_groups() -> None:
    every = [node("aks-gput4-12345678-vmss000001"), node("b", created="2026-01-01T00:00:00Z")]
    nodes = with_pods(every, [pod("x", on="b")], (), NOW)
    by_name = pools(
        every, nodes, autoscaler_status().groups, [], BootTimes({"gput4": (90.0,)}), (), NOW
    )
    pool = by_name["gput4"]
    assert (pool.high, pool.boot_seconds) == (6, 90.0)
    assert pool.backoff_until == T0 + 300
    assert pool.example is not None
    assert (pool.example.name, pool.example.used) == ("b", {})


def test_nodes_that_the_autoscaler_has_requested_are_coming_until_they_exist() -> None:
    """A cloud takes minutes until a node exists, and the target says that it is ordered."""
    group = autoscaler_status().groups[0]
    every = [node("aks-gput4-12345678-vmss000001")]
    nodes = with_pods(every, [], (), NOW)
    for target, coming in ((3, 2), (1, 0), (0, 0)):
        groups = [replace(group, target=target)]
        assert pools(every, nodes, groups, [], BootTimes(), (), NOW)["gput4"].coming == coming


def test_a_karpenter_pool_has_limits_and_may_have_no_nodes_yet() -> None:
    by_name = pools([], [], (), [nodepool()], BootTimes(), (), NOW)
    assert by_name["gpu"].limits == {GPU: 64000}
    assert (by_name["gpu"].high, by_name["gpu"].example) == (None, None)


def test_a_nodepool_that_is_not_ready_counts_as_backed_off() -> None:
    row = {"type": "Ready", "status": "False", "reason": "NodeClassNotReady", "message": "m"}
    by_name = pools([], [], (), [nodepool(conditions=[row])], BootTimes(), (), NOW)
    assert by_name["gpu"].backoff_until == NOW + 60


def test_a_group_without_nodes_may_be_a_gpu_pool() -> None:
    plain = node("aks-system-12345678-vmss000001", {"cpu": "8"}, labels={"agentpool": "system"})
    by_name = pools([plain], [], autoscaler_status().groups, [], BootTimes(), (), NOW)
    assert list(by_name) == ["gput4"]


def test_a_pool_of_mig_mixed_nodes_is_found_without_allocatable_gpus() -> None:
    labels = {"agentpool": "mig", "kubernetes.azure.com/accelerator": "nvidia"}
    mixed = node("a", {"cpu": "8", "nvidia.com/mig-1g.5gb": "7"}, labels=labels)
    nodes = with_pods([mixed], [], (), NOW)
    assert pools([mixed], nodes, (), [], BootTimes(), (), NOW)["mig"].traps == {Trap.MIG_MIXED}
