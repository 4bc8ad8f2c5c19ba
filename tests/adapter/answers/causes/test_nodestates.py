"""What one node says: conditions, a cordon, taints, labels of operators, and lost devices."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.answers.causes import gpunodes, nodestates
from adapter.pipeline.cluster.gpuresources import STANDARD
from adapter.pipeline.cluster.objects import ResourceSlice, SeenNode, read

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
NOW = 1_790_000_000.0
READY = {"type": "Ready", "status": "True"}


def node(
    *conditions: Json,
    labels: Json | None = None,
    taints: tuple[str, ...] = (),
    gpus: str = "8",
    **spec: Any,
) -> SeenNode:
    return read(
        {
            "metadata": {"name": "n1", "labels": labels or {}},
            "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints], **spec},
            "status": {
                "capacity": {GPU: "8"},
                "allocatable": {GPU: gpus},
                "conditions": [READY, *conditions],
            },
        },
        SeenNode,
    )


def condition(kind: str, message: str = "kubelet has it") -> Json:
    return {"type": kind, "status": "True", "message": message}


UPGRADE, MIG = "nvidia.com/gpu-driver-upgrade-state", "nvidia.com/mig.config.state"
DEPLOY = "nvidia.com/gpu.deploy.device-plugin"
SAID: dict[str, tuple[SeenNode, str, str]] = {
    "a full disk": (
        node(condition("DiskPressure"), taints=("node.kubernetes.io/disk-pressure",)),
        "has DiskPressure: kubelet has it; the kubelet starts no pod",
        "free disk space",
    ),
    "memory": (
        node(condition("MemoryPressure"), taints=("node.kubernetes.io/memory-pressure",)),
        "has MemoryPressure: kubelet has it; its taint keeps pods away",
        "free memory",
    ),
    "process ids": (node(condition("PIDPressure")), "has PIDPressure", "limit of processes"),
    "a cordon": (
        node(unschedulable=True, taints=("node.kubernetes.io/unschedulable",)),
        "is cordoned",
        "maintenance",
    ),
    "a network plugin that has not started": (
        node(taints=("node.cilium.io/agent-not-ready",)),
        "has the taint node.cilium.io/agent-not-ready:NoSchedule",
        "network plugin",
    ),
    "a node that Karpenter removes": (
        node(taints=("karpenter.sh/disrupted",)),
        "has the taint karpenter.sh/disrupted:NoSchedule",
        "do-not-disrupt",
    ),
    "a failed upgrade of the driver": (
        node(labels={UPGRADE: "upgrade-failed"}),
        f"the driver upgrade has failed ({UPGRADE}=upgrade-failed)",
        "see the driver pod",
    ),
    "an upgrade of the driver": (
        node(labels={UPGRADE: "drain-required"}),
        f"says that the operator upgrades the driver of the node ({UPGRADE}=drain-required)",
        "wait",
    ),
    "a MIG layout that failed": (node(labels={MIG: "failed"}), "has failed", "nvidia-mig-manager"),
    "AMD's partitions": (
        node(labels={"dcm.amd.com/gpu-config-profile-state": "failure"}),
        "has failed",
        "device config manager",
    ),
    "a paused operand": (
        node(labels={DEPLOY: "paused-for-mig-change"}),
        f"{DEPLOY}=paused-for-mig-change",
        "wait",
    ),
    "a lost plugin": (node(gpus="0"), f"offers 0 of its 8 {GPU}", "device plugin"),
    "a lost device": (node(gpus="7"), f"offers 7 of its 8 {GPU}", "Xid"),
}


@pytest.mark.parametrize("what", SAID)
def test_a_node_says_what_is_wrong_once_and_what_to_do(what: str) -> None:
    seen_node, text, fix = SAID[what]
    (cause,) = nodestates.causes(seen_node, NOW, STANDARD)
    assert text in cause.text
    assert fix in cause.fix
    assert cause.subject == "node n1"


GOOD: dict[str, SeenNode] = {
    "in order": node(),
    "its own taint": node(taints=(GPU,)),
    "dedicated to a team": node(taints=("dedicated",)),
    "upgraded": node(labels={UPGRADE: "upgrade-done", MIG: "success"}),
    "waits for its turn": node(labels={UPGRADE: "upgrade-required"}),
    "a driver of the host": node(labels={"nvidia.com/gpu.deploy.driver": "pre-installed"}),
    "another device plugin": node(labels={DEPLOY: "false"}),
}


@pytest.mark.parametrize("what", GOOD)
def test_a_node_in_order_says_nothing(what: str) -> None:
    assert list(nodestates.causes(GOOD[what], NOW, STANDARD)) == []


def test_an_operand_that_a_label_keeps_away_is_named_where_no_gpu_is_offered() -> None:
    first, *_ = nodestates.causes(node(labels={DEPLOY: "false"}, gpus="0"), NOW, STANDARD)
    assert f"({DEPLOY}=false), and offers no GPU" in first.text
    assert first.command == f"kubectl label node n1 {DEPLOY}-"


def test_a_node_whose_devices_a_dra_driver_publishes_need_not_offer_a_resource() -> None:
    labels = {"nvidia.com/gpu.present": "true"}
    seen_node = read({"metadata": {"name": "n1", "labels": labels}}, SeenNode)
    (cause,) = gpunodes.causes([seen_node], STANDARD)
    assert "offers no GPU" in cause.text
    rows = [{"spec": {"nodeName": "n1", "driver": "gpu.nvidia.com", "devices": [{"name": "a"}]}}]
    claimed = gpunodes.dra_nodes(read(row, ResourceSlice) for row in rows)
    assert not list(gpunodes.causes([seen_node], STANDARD, claimed))
