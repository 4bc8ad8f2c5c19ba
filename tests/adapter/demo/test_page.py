"""The simulated exporters' text is dcgm-exporter's, and readers of it agree."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.demo import story
from adapter.demo.hardware import DemoNode
from adapter.demo.page import render
from adapter.demo.world import World
from adapter.pipeline.exposition.page import parse


def page_of(world: World, name: str) -> bytes:
    node = node_of(world, name)
    return render(node, world.fleet.pods, world.workloads, story.NAMESPACE)


def node_of(world: World, name: str) -> DemoNode:
    return next(node for node in world.fleet.nodes if node.name == name)


def test_a_devices_row_reads_as_dcgm_exporter_writes_it(world: World) -> None:
    node = node_of(world, "h100-1")
    node.devices[0].recent[:] = [0.5, 1.0]
    pod = world.fleet.of("chat")[0]
    lines = page_of(world, "h100-1").decode().splitlines()
    start = lines.index("# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).")
    assert lines[start + 1] == "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"
    assert lines[start + 2] == (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{node.devices[0].uuid}",'
        'pci_bus_id="00000000:17:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",'
        'Hostname="h100-1",DCGM_FI_DRIVER_VERSION="580.105.08",'
        f'container="server",namespace="inference",pod="{pod.name}"}} 75'
    )
    assert lines[start + 5].endswith('Hostname="h100-1",DCGM_FI_DRIVER_VERSION="580.105.08"} 0'), (
        "a device without a pod has no pod labels"
    )


def test_mig_instances_share_a_uuid_have_ids_and_no_gpu_util(world: World) -> None:
    rows = parse(page_of(world, "mig-1"), time=1.0).samples
    assert "DCGM_FI_DEV_GPU_UTIL" not in {row.name for row in rows}
    engine = [row for row in rows if row.name == "DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
    assert [row.labels["GPU_I_ID"] for row in engine] == ["7", "8", "9", "10", "11", "12", "13"]
    assert {row.labels["GPU_I_PROFILE"] for row in engine} == {"1g.10gb"}
    assert len({row.labels["UUID"] for row in engine}) == 1
    power = {row.value for row in rows if row.name == "DCGM_FI_DEV_POWER_USAGE"}
    assert len(power) == 1, "the board's figure is repeated for each instance"


@pytest.mark.parametrize("node", ["h100-1", "mig-1"])
def test_both_parsers_read_every_line(world: World, node: str) -> None:
    text = page_of(world, node)
    page = parse(text, time=1.0)
    families = text_string_to_metric_families(text.decode())
    theirs = [
        (sample.name.removesuffix("_total"), sample.value)
        for family in families
        for sample in family.samples
    ]
    assert page.rejects == {}
    assert sorted((row.name, row.value) for row in page.samples) == sorted(theirs)


def test_memory_is_used_once_the_model_is_loaded(world: World) -> None:
    world.scale("chat", 3)
    world.advance(world.now + 2)
    loading = world.fleet.of("chat")[2].name

    def used() -> float:
        rows = parse(page_of(world, "h100-1"), time=1.0).samples
        mine = [row for row in rows if row.labels.get("pod") == loading]
        return next(row.value for row in mine if row.name == "DCGM_FI_DEV_FB_USED")

    assert used() == 0
    world.advance(world.now + 40)
    assert used() > 60_000
