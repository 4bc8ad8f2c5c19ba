"""Whether a pod can start on a node, and if not why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import decode
from adapter.pipeline.cluster.nodestarts import NodeUse, StartNeeds, blocks
from adapter.pipeline.cluster.objects import SeenNode, read
from adapter.pipeline.cluster.taints import Toleration

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
TOLERATES_GPU = Toleration(GPU, "Exists", "", "NoSchedule")
POD = StartNeeds((TOLERATES_GPU,), 4000, 16 << 30)


def node(
    *,
    conditions: dict[str, str] | None = None,
    taints: tuple[str, ...] = (),
    allocatable: Json | None = None,
    capacity: Json | None = None,
    cordoned: bool = False,
) -> Json:
    amounts = {"cpu": "96", "memory": "1000Gi", "pods": "110", GPU: "8"}
    rows = {"Ready": "True", "DiskPressure": "False"} | (conditions or {})
    return {
        "metadata": {"name": "n1"},
        "spec": {
            "unschedulable": cordoned,
            "taints": [
                {"key": key, "value": value, "effect": effect}
                for key, value, effect in (taint.split("|") for taint in taints)
            ],
        },
        "status": {
            "capacity": amounts | (capacity or {}),
            "allocatable": amounts | (allocatable or {}),
            "conditions": [{"type": kind, "status": status} for kind, status in rows.items()],
        },
    }


UNUSED = NodeUse()


def said(found: Json, used: NodeUse = UNUSED, *needs: StartNeeds) -> list[str]:
    state = decode(json.dumps(found).encode()).state
    assert state == read(found, SeenNode).state(), "both readers of nodes see the same"
    return [block.text for block in blocks(state, used, needs or (POD,))]


def test_a_pod_can_start_on_a_node_in_order() -> None:
    assert said(node()) == []
    assert said(node(taints=(f"{GPU}|present|NoSchedule",))) == []
    assert said(node(taints=("dedicated|ml|PreferNoSchedule",))) == []
    assert said({"metadata": {"name": "n1"}}) == [], "nothing is known of it"


CLOSED: dict[str, tuple[Json, str]] = {
    "it is not Ready": (node(conditions={"Ready": "False"}), "NotReady"),
    "it does not answer": (
        node(
            conditions={"Ready": "Unknown"},
            taints=("node.kubernetes.io/unreachable||NoExecute",),
        ),
        "NotReady",
    ),
    "its disk runs full": (
        node(
            conditions={"DiskPressure": "True"},
            taints=("node.kubernetes.io/disk-pressure||NoSchedule",),
        ),
        "DiskPressure",
    ),
    "its process ids run out": (node(conditions={"PIDPressure": "True"}), "PIDPressure"),
    "memory pressure, and the pods do not tolerate it": (
        node(
            conditions={"MemoryPressure": "True"},
            taints=("node.kubernetes.io/memory-pressure||NoSchedule",),
        ),
        "MemoryPressure",
    ),
    "it has no network": (
        node(taints=("node.kubernetes.io/network-unavailable||NoSchedule",)),
        "NetworkUnavailable",
    ),
    "it is cordoned": (node(cordoned=True), "cordoned"),
    "it is cordoned, with the taint": (
        node(cordoned=True, taints=("node.kubernetes.io/unschedulable||NoSchedule",)),
        "cordoned",
    ),
    "the cluster autoscaler removes it": (
        node(taints=("ToBeDeletedByClusterAutoscaler|1700000000|NoSchedule",)),
        "the cluster autoscaler is removing it",
    ),
    "Karpenter removes it": (
        node(taints=("karpenter.sh/disrupted||NoSchedule",)),
        "Karpenter is removing it",
    ),
    "its machine is taken back": (
        node(taints=("aws-node-termination-handler/spot-itn|1|NoExecute",)),
        "its machine is being taken back",
    ),
    "its GPUs are partitioned": (
        node(taints=("amd-dcm|up|NoExecute",)),
        "its GPUs are being partitioned",
    ),
    "nobody tolerates its taint": (
        node(taints=("dedicated|ml|NoSchedule",)),
        "no GPU pod tolerates the taint dedicated=ml:NoSchedule",
    ),
    "the plugin is gone": (node(allocatable={GPU: "0"}), f"offers 0 of 8 {GPU}"),
    "the plugin has been gone for long": (
        node(allocatable={GPU: "0"}, capacity={GPU: "0"}),
        "offers no GPU",
    ),
}


@pytest.mark.parametrize("case", CLOSED)
def test_a_node_says_why_no_pod_can_start(case: str) -> None:
    manifest, text = CLOSED[case]
    assert said(manifest) == [text]


def test_a_pod_that_tolerates_a_taint_or_pressure_of_memory_starts() -> None:
    ml = StartNeeds((TOLERATES_GPU, Toleration("dedicated", "Equal", "ml", "")), 0, 0)
    assert said(node(taints=("dedicated|ml|NoSchedule",)), UNUSED, POD, ml) == []
    assert said(node(taints=("dedicated|db|NoSchedule",)), UNUSED, POD, ml) != []
    pressed = node(taints=("node.kubernetes.io/memory-pressure||NoSchedule",))
    key = "node.kubernetes.io/memory-pressure"
    assert said(pressed, UNUSED, StartNeeds((Toleration(key, "Exists", "", ""),))) == []


def test_tolerating_everything_does_not_pass_what_the_kubelet_refuses() -> None:
    everything = StartNeeds((Toleration("", "Exists", "", ""),))
    assert said(node(cordoned=True), UNUSED, everything) == []
    assert said(node(conditions={"DiskPressure": "True"}), UNUSED, everything) == ["DiskPressure"]
    assert said(node(conditions={"Ready": "Unknown"}), UNUSED, everything) == ["NotReady"]


FULL: dict[str, tuple[NodeUse, str]] = {
    "GPUs": (NodeUse({GPU: 8}), f"pods have requested all 8 {GPU}"),
    "pods": (NodeUse(pods=110), "has 110 pods, and no more may run there"),
    "CPU": (NodeUse(cpu=92_500), "3.5 CPU left, and GPU pods request 4"),
    "memory": (NodeUse(memory=990 << 30), "10Gi of memory left, and GPU pods request 16Gi"),
}


@pytest.mark.parametrize("what", FULL)
def test_a_full_node_says_what_is_full(what: str) -> None:
    used, text = FULL[what]
    assert said(node(), used) == [text]
    assert said(node(), used._replace(gpus={GPU: 7}, pods=0, cpu=0, memory=0)) == []


def test_the_pod_that_asks_for_least_decides() -> None:
    small = StartNeeds((TOLERATES_GPU,), 500, 1 << 30)
    assert said(node(), NodeUse(cpu=95_000), POD, small) == []
    # One pod would have the CPU, and the other tolerates the taint: none has both.
    tainted = node(taints=("dedicated|ml|NoSchedule",))
    ml = POD._replace(tolerations=(Toleration("dedicated", "Exists", "", ""),))
    assert said(tainted, NodeUse(cpu=95_000), small, ml) == ["1 CPU left, and GPU pods request 4"]


def test_without_any_gpu_pod_the_usual_tolerations_count() -> None:
    state = decode(json.dumps(node(taints=(f"{GPU}|present|NoSchedule",))).encode()).state
    assert blocks(state, UNUSED, ()) == []
    other = decode(json.dumps(node(taints=("dedicated|ml|NoSchedule",))).encode()).state
    assert [block.kind for block in blocks(other, UNUSED, ())] == ["taint"]


def test_a_label_promises_gpus_that_nobody_offers() -> None:
    state = decode(b'{"metadata":{"name":"n1"}}').state
    assert blocks(state, UNUSED, ()) == []
    assert [block.text for block in blocks(state, UNUSED, (), promised=True)] == ["offers no GPU"]


def test_a_pod_keeps_what_it_needs_as_the_scheduler_counts_it() -> None:
    def resources(cpu: str, memory: str) -> Json:
        return {"requests": {"cpu": cpu, "memory": memory}, "limits": {GPU: "1", "cpu": "64"}}

    manifest = {
        "metadata": {"name": "llm-0", "namespace": "ml"},
        "spec": {
            "containers": [{"name": "server", "resources": resources("2", "8Gi")}],
            "initContainers": [
                {"name": "load", "resources": {"limits": {"cpu": "3500m"}}},
                {"name": "mesh", "restartPolicy": "Always", "resources": resources("250m", "1Gi")},
            ],
            "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    pod = PodDecoder().decode(json.dumps(manifest).encode())
    assert pod.needs == StartNeeds((TOLERATES_GPU,), 3500, 9 << 30)
    assert pod.gpus == {GPU: 2}
    assert pod.extended == {}
