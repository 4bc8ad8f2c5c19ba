"""``gpupools``: what each pool does, the largest pod that fits, fragments and MIG layouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.answers.view.minutes import MinuteRecorder
from adapter.pipeline.cluster.nodes import Node, decode
from adapter.pipeline.cluster.nodestarts import StartNeeds
from apiservice.runtime.steps import at_once
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, make_pod, row

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
UTIL, ACTIVE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
AT = 30_000_000 * 60.0


def seen(name: str, units: int = 4, pool: str = "h100", resource: str = GPU, **spec: Any) -> Node:
    amounts = {resource: str(units), "pods": "30", "cpu": "32", "memory": "64Gi"}
    offers = spec.pop("offers", units)
    labels = {"agentpool": pool} if pool else {}
    manifest = {
        "metadata": {"name": name, "labels": labels | spec.pop("labels", {})},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts | {resource: str(offers)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return decode(json.dumps(manifest).encode())


def pod(name: str, node: str, units: int, resource: str = GPU, cpu: int = 0) -> Any:
    plain = make_pod(name, node=node, gpus={resource: units})
    return plain.replace(needs=StartNeeds((), cpu, 0)) if cpu else plain


def world(nodes: list[Node], *pods: Any) -> World:
    stage = World(*pods)
    stage.nodes.replace(nodes)
    return stage


def device(number: int, value: float, holder: str = "", node: str = "n1") -> str:
    line = row(UTIL, value, holder, uuid=f"GPU-{node}-{number}")
    return line.replace('gpu="0"', f'gpu="{number}"')


def test_the_classes_of_a_pool_add_up_and_a_silent_gpu_is_none_of_them() -> None:
    held = [pod("busy", "n1", 1), pod("idle", "n1", 1)]
    stage = world([seen("n1", labels={"nvidia.com/gpu.count": "4"})], *held)
    for seconds in range(0, 700, 20):
        page = device(0, 90, "busy") + device(1, 0, "idle") + device(2, 0)
        stage.scrape(page, AT + seconds, node="n1")
    viewer = Viewer(stage)
    shown = viewer.pools.row("h100", AT + 690)
    counts = {name: shown[name] for name in ("Busy", "Idle", "Free", "Blocked", "No-Pod")}
    assert counts == {"Busy": 1, "Idle": 1, "Free": 1, "Blocked": 0, "No-Pod": 0}
    assert shown["No-Value"] == 1  # no exporter reports the fourth
    assert shown["GPUs"] == 4


def test_the_largest_pod_is_that_of_one_node() -> None:
    taken = (pod("a", "n1", 3), pod("b", "n2", 2, cpu=20_000), pod("c", "n3", 4))
    viewer = Viewer(world([seen("n1"), seen("n2"), seen("n3")], *taken))
    assert viewer.pools.row("h100", AT)["Largest"] == f"2 {GPU}"
    (resource,) = viewer.pools.get("h100", AT)["resources"]
    assert resource == {
        "name": GPU,
        "allocatable": 12,
        "requested": 9,
        "left": 3,
        "fragmented": pytest.approx(33.333, abs=0.01),
        "largest": {"units": 2, "node": "n2", "cpu": 12.0, "memory": 64 << 30},
    }


@pytest.mark.parametrize(
    ("taken", "fragmented"),
    [((0, 4), "0%"), ((3, 3), "50%"), ((0, 0), "0%"), ((1, 1), "25%"), ((4, 4), None)],
)
def test_fragmentation_is_the_part_of_a_pod_that_does_not_fit(
    taken: tuple[int, int], fragmented: str | None
) -> None:
    pods = [pod(f"p{number}", f"n{number}", units) for number, units in enumerate(taken) if units]
    viewer = Viewer(world([seen("n0"), seen("n1")], *pods))
    assert viewer.pools.row("h100", AT).get("Fragmented") == fragmented


def test_nothing_fits_on_a_closed_node() -> None:
    viewer = Viewer(world([seen("n1", unschedulable=True), seen("n2", 2)]))
    pool = viewer.pools.get("h100", AT)
    assert (pool["nodes"], pool["closed"]) == (2, 1)
    (resource,) = pool["resources"]
    assert (resource["left"], resource["largest"]["node"]) == (2, "n2")


def test_a_placeholder_leaves_its_room_to_other_pods() -> None:
    holder = make_pod("hold", node="n1", gpus={GPU: 4}, placeholder=True)
    viewer = Viewer(world([seen("n1")], holder))
    assert viewer.pools.row("h100", AT)["Largest"] == f"4 {GPU}"


def test_each_pool_is_a_row_and_nodes_without_one_are_together() -> None:
    viewer = Viewer(world([seen("n1"), seen("n2", pool="l4"), seen("n3", pool="")]))
    assert viewer.pools.names() == ["h100", "l4", "no-pool"]
    assert viewer.pools.find("other", AT) is None


def mig(board: int, *profiles: str) -> str:
    lines = ""
    for number, profile in enumerate(profiles):
        line = row(
            ACTIVE, 0.5, uuid=f"GPU-b{board}", more=f'GPU_I_ID="{number}",GPU_I_PROFILE="{profile}"'
        )
        lines += line.replace('gpu="0"', f'gpu="{board}"')
    return lines


def test_mig_layouts_say_what_is_unused_and_what_can_be_placed() -> None:
    node = seen("n1", 9, resource=MIG)
    stage = world([node], pod("a", "n1", 4, MIG))
    page = mig(0, "1g.10gb", "1g.10gb") + mig(1, "1g.10gb", "1g.10gb") + mig(2, "3g.40gb")
    stage.scrape(page, AT, node="n1")
    viewer = Viewer(stage)
    assert viewer.pools.get("h100", AT)["layouts"] == [
        {"layout": "2x1g.10gb", "boards": 2, "unusedSlices": 5},
        {"layout": "1x3g.40gb", "boards": 1, "unusedSlices": 4},
    ]
    shown = viewer.pools.row("h100", AT)
    assert shown["Layouts"] == "2x1g.10gb (2), 1x3g.40gb (1)"
    assert shown["Left"] == f"5 {MIG}"


def test_an_a30_has_four_slices() -> None:
    stage = world([seen("n1", 2, resource=MIG)])
    page = mig(0, "1g.6gb", "2g.12gb").replace("NVIDIA H100", "NVIDIA A30")
    stage.scrape(page, AT, node="n1")
    (layout,) = Viewer(stage).pools.get("h100", AT)["layouts"]
    assert layout["unusedSlices"] == 1


class _Heard:
    last_error = ""
    rejected = 0

    def age(self, _: float) -> float:
        return 0.0


def test_a_pool_has_its_past() -> None:
    stage = world([seen("n1", 2)], pod("busy", "n1", 1))
    viewer = Viewer(stage)
    for fed in (stage.index, viewer.hpas):
        fed.fed_by(_Heard())
    recorder = MinuteRecorder(
        viewer.ring,
        stage.store,
        stage.index,
        viewer.hpas,
        viewer.of_workloads,
        viewer.of_pools,
        stale_after=60.0,
    )
    for minute in (0, 2):
        now = AT + 60 * minute
        stage.scrape(device(0, 90, "busy") + device(1, 0), now, node="n1")
        at_once(recorder.note(now))
    shown = viewer.pools.get("h100", AT + 130)
    assert shown["busy"] == [1, None, 1]
    assert shown["free"][0] == 1
    assert shown["intervalSeconds"] == 60
