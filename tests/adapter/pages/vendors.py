"""Exporters of AMD, Intel and HAMi: real lines."""

from __future__ import annotations

from typing import Final

from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

AMD: Final = "12_amd_device_metrics_exporter_real_lines.prom"
BARE: Final = "42_amd_lines.prom"
HAMI: Final = "40_hami_vgpu_monitor.prom"
INTEL: Final = "41_intel_xpum_lines.prom"
VIRTUAL: Final = "mi325x8-110.atl1.do.cpe.ice.amd.com"
MI300X: Final = "tw038"
MIB: Final = 1048576


def _amd(**given: str) -> World:
    """Each line is another exporter's page, on the node that its ``hostname`` names."""
    names = ("waits-for-rows", "train-0")
    world = World(*(make_pod(name, node=VIRTUAL, gpus={"amd.com/gpu": 1}) for name in names))
    lines = [line for line in captured_page(AMD).splitlines() if not line.startswith("#")]
    for host, line in zip((VIRTUAL, MI300X), lines, strict=True):
        page = line + "\n"
        for label, value in given.items():
            page = page.replace(f'{label}=""', f'{label}="{value}"')
        world.scrape(page, 100.0, node=host, origin=f"http://{host}:5000/metrics")
    return world


def _amd_assigned() -> World:
    """The same lines, with the workload that the exporter names."""
    return _amd(pod="train-0", namespace="ml", container="main")


def _bare() -> World:
    """Two nodes whose exporters both name their first device 0, without a UUID."""
    world = World(make_pod("waits-for-rows", node="amd-1", gpus={"amd.com/gpu": 1}))
    page = captured_page(BARE)
    for node in ("amd-1", "amd-2"):
        world.scrape(page, 100.0, node=node, origin=f"http://{node}:5000/metrics")
    return world


def _hami() -> World:
    world = World(
        make_pod(
            "hami-device",
            namespace="default",
            node="n",
            gpus={"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 3000},
        ),
        make_pod("not-started", namespace="default", node="n", gpus={"volcano.sh/vgpu-number": 1}),
    )
    world.scrape(captured_page(HAMI), 100.0, node="n")
    return world


def _intel(series: str = "xpum_per_engine_ratio") -> World:
    world = World(make_pod("waits-for-rows", node="flex", gpus={"gpu.intel.com/i915": 1}))
    lines = captured_page(INTEL).replace("xpum_per_engine_ratio", series).splitlines()
    page = "".join(f"{line}\n" for line in lines if 'type="encoder"' not in line)
    world.scrape(page, 100.0, node="flex")
    return world


def _busy(series: str, value: float, why: str) -> tuple[Line, ...]:
    return (
        Line(series, value, why),
        Line("gpu_utilization", value, why),
        Line("gpu_utilization_max", value, "one device"),
        Line("gpu_utilization_imbalance", 0, "one device"),
        Line("gpu_count", 1, "one device"),
    )


def _held(series: str, value: float, why: str) -> tuple[Line, ...]:
    """The same for a pod that requested the whole device."""
    asked = Line("gpu_utilization_of_request", value, "it asked for all of it")
    return (*_busy(series, value, why), asked)


SCENES: Final = {
    "12": Scene(
        pages=(AMD,),
        build=_amd,
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line("gpu_utilization", "exporter_names_no_pod", "empty labels: nobody's"),
            ),
            f"node:{VIRTUAL}": (
                *_busy("gpu_gfx_activity", 83, "the prefix amd_ is the same field"),
                Line("gpu_utilization", 83, "its model", "model=Aqua-Vanjaram-Instinct-MI325X-VF"),
                Line("gpu_count", 1, "zeros are not a UUID: node and index", f"device={VIRTUAL}.0"),
            ),
            f"node:{MI300X}": (
                *_busy("gpu_gfx_activity", 0, "0-100, idle"),
                Line(
                    "gpu_count",
                    1,
                    "a UUID of its own",
                    "device=ccff74a1-0000-1000-80e0-c6d49f5b0d86",
                ),
            ),
        },
    ),
    "12, with a workload": Scene(
        pages=(AMD,),
        build=_amd_assigned,
        now=100.0,
        says={
            "ml/train-0": (
                *_held("gpu_gfx_activity", 83, "its own device's, not the other node's"),
                Line("gpu_utilization", 83, "one container", "container=main"),
                Line("gpu_utilization", 83, "whole", "sharing=exclusive,attribution=exact"),
            ),
        },
        rejects={"wrong_node": 1},
    ),
    "42": Scene(
        pages=(BARE,),
        build=_bare,
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line("gpu_count", "exporter_names_no_pod", "empty labels: nobody's"),
            ),
            "node:amd-1": (
                Line("gpu_used_vram", 26, "MB as the exporter has it"),
                Line("gpu_memory_used_bytes", 26 * MIB, "its MB are MiB"),
                Line("gpu_count", 1, "no UUID, no serial: node, index"),
                Line("gpu_memory_utilization", "metric_not_exported", "no total"),
                Line("gpu_utilization", "metric_not_exported", "no activity on the page"),
            ),
            "node:amd-2": (
                Line("gpu_used_vram", 26, "another node's device 0 is another device"),
                Line("gpu_memory_used_bytes", 26 * MIB, "its MB are MiB"),
                Line("gpu_count", 1, "another node's device 0 is another device"),
            ),
        },
    ),
    "40": Scene(
        pages=(HAMI,),
        build=_hami,
        now=100.0,
        says={
            "default/hami-device": (
                *_held("hami_container_device_utilization_ratio", 99, "0-100 despite its name"),
                Line("hami_vgpu_memory_used_bytes", 2109867008, "under its newest name"),
                Line("hami_vgpu_memory_limit_bytes", 3145728000, "under its newest name"),
                Line("vGPU_device_memory_limit_in_bytes", 3145728000, "verbatim"),
                Line("Device_utilization_desc_of_container", 99, "verbatim"),
                Line("gpu_memory_used_bytes", 2109867008, "the container's own"),
                Line("gpu_memory_total_bytes", 3145728000, "its limit, not the board's"),
                Line("gpu_memory_headroom_bytes", 1035860992, "limit without used"),
                Line("gpu_memory_utilization", 67.0708532, "used of the limit"),
                Line("gpu_utilization", 99, "ctrname", "container=cuda-container"),
                Line("gpu_utilization", 99, "accounted per container", "attribution=exact"),
            ),
            "default/not-started": (
                Line(
                    "gpu_utilization",
                    "device_named_for_other_pod",
                    "absent until the first touch, not 0",
                ),
            ),
        },
        # The author masked the UUIDs of two devices alike.
        rejects={"duplicate_series": 2},
    ),
    "41": Scene(
        pages=(INTEL,),
        build=_intel,
        now=100.0,
        says={
            "node:flex": (
                Line(
                    "gpu_utilization",
                    "no_exporter_on_node",
                    "a decoder's share is not the device's",
                ),
            ),
        },
    ),
    "41 with the device's ratio": Scene(
        pages=(INTEL,),
        build=lambda: _intel("xpum_engine_ratio"),
        now=100.0,
        says={
            "node:flex": (
                Line("xpum_engine_ratio", 0.0454, "the last of two, not their mean"),
                Line("gpu_utilization", 4.54, "0-1 in percent"),
                Line("gpu_utilization_max", 4.54, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_count", 1, "one device"),
                Line("gpu_utilization", 4.54, "dev_name", "model=IntelR-Data-Center-GPU-Flex-140"),
            ),
        },
        rejects={"duplicate_series": 1},
    ),
}
