"""``gpunodes``: what nodes offer to pods, and why no pod can start there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.pipeline.cluster.nodes import Node, decode
from adapter.pipeline.cluster.nodestarts import StartNeeds
from adapter.pipeline.cluster.pod import Owner
from adapter.pipeline.cluster.taints import Toleration
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, make_pod, row

NODE = "n1"
GPU = "nvidia.com/gpu"
UTIL, XID = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_XID_ERRORS"
LABELS = {"agentpool": "h100", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.product": "H100"}


def seen(name: str = NODE, offers: str = "2", has: str = "2", **spec: Any) -> Node:
    conditions = spec.pop("conditions", {"Ready": "True"})
    manifest = {
        "metadata": {"name": name, "labels": spec.pop("labels", LABELS)},
        "spec": spec,
        "status": {
            "capacity": {GPU: has, "pods": "3"},
            "allocatable": {GPU: offers, "pods": "3", "cpu": "8", "memory": "64Gi"},
            "conditions": [{"type": kind, "status": text} for kind, text in conditions.items()],
        },
    }
    return decode(json.dumps(manifest).encode())


def world(*nodes: Node, pods: int = 1) -> World:
    stage = World(*(make_pod(f"llm-{i}", node=NODE) for i in range(pods)))
    stage.nodes.replace(list(nodes))
    page = "".join(
        row(UTIL, 80 if i < pods else 0, f"llm-{i}" if i < pods else "", uuid=f"GPU-{i}")
        for i in range(2)
    )
    stage.scrape(page.replace('gpu="0",UUID="GPU-1"', 'gpu="1",UUID="GPU-1"'), 100.0, node=NODE)
    return stage


def test_a_node_shows_what_it_offers_and_what_is_left() -> None:
    viewer = Viewer(world(seen()))
    assert viewer.nodes.row(NODE, 102.0) == {
        "Pool": "h100",
        "GPUs": 2,
        "Reported": 2,
        "Allocatable": 2,
        "Requested": 1,
        "Left": 1,
        "Silent": 0,
        "Model": "H100",
    }
    assert viewer.gpus.row("n1.gpu1", 102.0).get("Blocked") is None
    assert "blocked" not in viewer.nodes.get(NODE, 102.0)


CLOSED: dict[str, tuple[Node, str]] = {
    "a cordon": (seen(unschedulable=True), "cordoned"),
    "a full disk": (seen(conditions={"Ready": "True", "DiskPressure": "True"}), "DiskPressure"),
    "no heartbeat": (seen(conditions={"Ready": "Unknown"}), "NotReady"),
    "a taint": (
        seen(taints=[{"key": "dedicated", "value": "db", "effect": "NoExecute"}]),
        "no GPU pod tolerates the taint dedicated=db:NoExecute",
    ),
    "no plugin": (seen(offers="0"), f"offers 0 of 2 {GPU}"),
}


@pytest.mark.parametrize("why", CLOSED)
def test_no_gpu_of_a_closed_node_is_left_and_each_says_why(why: str) -> None:
    node, text = CLOSED[why]
    viewer = Viewer(world(node))
    cells = viewer.nodes.row(NODE, 102.0)
    assert (cells["Left"], cells["Blocked"]) == (0, text)
    assert viewer.nodes.get(NODE, 102.0)["blocked"][0]["text"] == text
    assert viewer.gpus.row("n1.gpu1", 102.0)["Blocked"] == text


def test_a_node_in_full_use_is_not_blocked_and_its_gpus_are() -> None:
    # The exporter names one of two pods: the other GPU seems free, and is requested.
    stage = world(seen())
    stage.put(make_pod("llm-1", node=NODE))
    viewer = Viewer(stage)
    assert "Blocked" not in viewer.nodes.row(NODE, 102.0)
    assert viewer.nodes.row(NODE, 102.0)["Left"] == 0
    assert viewer.gpus.row("n1.gpu1", 102.0)["Blocked"] == f"pods have requested all 2 {GPU}"


def test_pods_and_tolerations_count_as_of_now() -> None:
    stage = world(seen(taints=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]))
    viewer = Viewer(stage)
    assert "Blocked" in viewer.nodes.row(NODE, 102.0)
    ml = StartNeeds((Toleration("dedicated", "Exists", "", ""),))
    daemon = Owner("apps/v1", "DaemonSet", "agent")
    pod = make_pod("agent", node="n2", owner=daemon).replace(needs=ml)
    stage.put(pod)
    assert "Blocked" in viewer.nodes.row(NODE, 102.0), "a DaemonSet's pod is on each node"
    stage.put(pod.replace(owner=None))
    assert "Blocked" not in viewer.nodes.row(NODE, 102.0)
    stage.put(*(make_pod(f"log-{i}", node=NODE, gpus={}) for i in range(2)))
    text = "has 3 pods, and no more may run there"
    assert viewer.nodes.row(NODE, 102.0)["Blocked"] == text
    stage.put(*(make_pod(f"log-{i}", node=NODE, gpus={}, placeholder=True) for i in range(2)))
    assert "Blocked" not in viewer.nodes.row(NODE, 102.0), "placeholders give way"


def test_nodes_without_an_exporter_are_listed() -> None:
    plain = decode(b'{"metadata":{"name":"cpu"},"status":{"capacity":{"cpu":"8"}}}')
    viewer = Viewer(world(seen(), seen("n2"), plain))
    assert viewer.nodes.names() == ["n1", "n2"]
    assert viewer.nodes.row("n2", 102.0)["Silent"] == 2
    assert viewer.nodes.find("cpu", 102.0) is None


def test_a_gpu_that_an_exporter_has_lost_is_counted() -> None:
    viewer = Viewer(world(seen(labels=LABELS | {"nvidia.com/gpu.count": "8"})))
    assert viewer.nodes.row(NODE, 102.0)["Silent"] == 6
    shares = seen(has="20", offers="20", labels={})
    assert Viewer(world(shares)).nodes.row(NODE, 102.0)["Silent"] == 0, "20 may be shares of 2"


def test_labels_of_mig_count_boards_beside_their_instances() -> None:
    mig = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-1g.10gb.count": "2"}
    viewer = Viewer(world(seen(labels=LABELS | mig | {"nvidia.com/gpu.count": "1"})))
    cells = viewer.nodes.row(NODE, 102.0)
    assert (cells["GPUs"], cells["Silent"]) == (2, 0)


def test_a_label_promises_gpus_unless_pods_get_them_by_claims() -> None:
    bare = decode(json.dumps({"metadata": {"name": "n2", "labels": LABELS}}).encode())
    stage = world(seen(), bare)
    viewer = Viewer(stage)
    assert viewer.nodes.row("n2", 102.0)["Blocked"] == "offers no GPU"
    stage.put(make_pod("claims", gpus={}, claims=True, node="n2"))
    cells = viewer.nodes.row("n2", 102.0)
    assert "Blocked" not in cells
    assert "Left" not in cells


def test_a_faulty_gpu_that_the_plugin_withholds_is_not_free() -> None:
    stage = world(seen(offers="1", has="2"), pods=0)
    stage.scrape(
        row(UTIL, 0, uuid="GPU-0") + row(XID, 79, uuid="GPU-0") + row(UTIL, 0, uuid="GPU-1"),
        100.0,
        node=NODE,
    )
    viewer = Viewer(stage)
    text = f"the node does not offer 1 of 2 {GPU}, and this GPU is not healthy: XID error 79"
    blocked = {
        viewer.gpus.row(name, 102.0)["UUID"]: viewer.gpus.row(name, 102.0).get("Blocked")
        for name in viewer.gpus.names()
    }
    assert blocked == {"GPU-0": text, "GPU-1": None}
    assert viewer.nodes.row(NODE, 102.0)["Withheld"] == f"1 of 2 {GPU}"


def test_a_node_that_is_not_known_has_its_gpus_alone() -> None:
    viewer = Viewer(world())
    assert viewer.nodes.row(NODE, 102.0) == {"Reported": 2, "Silent": 0}
