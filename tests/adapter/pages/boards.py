"""Whole boards of dcgm-exporter: real pages."""

from __future__ import annotations

from typing import Final

from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

MIB: Final = 1048576
T4: Final = "01_dcgm_T4x2_one_assigned_empty_labels.prom"
GUEST: Final = "10_dcgm_vgpu_guest_GRID_A100-8C_full_default_scrape.prom"
H100: Final = "20_dcgm_H100x8_direct_page.prom"
RESERVED: Final = "runai-reservation-gpu-qa-mig-worker-gpu-1-kvltw"
WORKER: Final = "vllm-agg-0-vllmdecodeworker-5fljt"


def _t4() -> World:
    world = World(
        make_pod(RESERVED, namespace="runai-reservation", node="t4"),
        make_pod("waits-for-rows", node="t4"),
    )
    world.scrape(captured_page(T4), 100.0, node="t4")
    return world


def _guest() -> World:
    world = World(make_pod("waits-for-rows", node="guest"))
    world.scrape(captured_page(GUEST), 100.0, node="guest")
    return world


def _h100() -> World:
    world = World(make_pod(WORKER, namespace="dynamo-workload", node="ip-100-64-171-120"))
    world.scrape(captured_page(H100), 100.0, node="ip-100-64-171-120")
    return world


SCENES: Final = {
    "01": Scene(
        pages=(T4,),
        build=_t4,
        now=100.0,
        says={
            f"runai-reservation/{RESERVED}": (
                Line("DCGM_FI_DEV_SM_CLOCK", 585, "verbatim, of its own device only"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 5000, "verbatim"),
                Line("DCGM_FI_DEV_GPU_TEMP", 55, "verbatim"),
                Line("DCGM_FI_DEV_POWER_USAGE", 28.722, "verbatim, watts"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "a zero is a value"),
                Line("DCGM_FI_DEV_MEM_COPY_UTIL", 0, "controller time, not occupancy"),
                Line("DCGM_FI_DEV_ENC_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_DEC_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "the last code"),
                Line("DCGM_FI_DEV_FB_FREE", 14831, "MiB verbatim"),
                Line("DCGM_FI_DEV_FB_USED", 128, "MiB verbatim"),
                Line("DCGM_FI_DEV_FB_USED_BYTES", 128 * MIB, "the new name is in bytes"),
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.000039, "0-1 despite (in %)"),
                Line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0, "0-1"),
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.000002, "0-1"),
                Line("DCGM_FI_PROF_PCIE_TX_BYTES", 79221, "bytes per second"),
                Line("DCGM_FI_PROF_PCIE_RX_BYTES", 420785, "bytes per second"),
                Line("gpu_utilization", 0, "GPU_UTIL, never the engine of a whole GPU"),
                Line("gpu_utilization_max", 0, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device is as busy as itself"),
                Line("gpu_utilization_of_request", 0, "it asked for all of it"),
                Line("gpu_memory_utilization", 0.85567217, "used of used and free"),
                Line("gpu_memory_used_bytes", 128 * MIB, "MiB in bytes"),
                Line("gpu_memory_total_bytes", (128 + 14831) * MIB, "no FB_TOTAL: used and free"),
                Line("gpu_memory_headroom_bytes", 14831 * MIB, "total without used"),
                Line("gpu_memory_bandwidth_utilization", 0.0002, "DRAM_ACTIVE in percent"),
                Line("gpu_tensor_activity", 0, "percent"),
                Line("gpu_power_watts", 28.722, "the board's"),
                Line("gpu_temperature_celsius", 55, "the board's"),
                Line("gpu_count", 1, "the other device is unassigned"),
                Line("gpu_sm_activity", "metric_not_exported", "the page has no SM_ACTIVE"),
                Line("gpu_sm_occupancy", "metric_not_exported", "the page has no SM_OCCUPANCY"),
                Line(
                    "DCGM_FI_DEV_FB_TOTAL",
                    "metric_not_exported",
                    "not on the page, and not made up",
                ),
                Line("gpu_utilization", 0, "the model's words", "model=Tesla-T4"),
                Line("gpu_utilization", "not_selected", "another model", "model=NVIDIA-A100"),
                Line("gpu_utilization", 0, "a whole GPU", "sharing=exclusive,attribution=exact"),
            ),
            "ml/waits-for-rows": (
                Line(
                    "gpu_utilization", "pod_not_named", "empty labels are nobody's, not any pod's"
                ),
                Line("gpu_count", "pod_not_named", "no row names it"),
            ),
            "node:t4": (
                Line("DCGM_FI_DEV_SM_CLOCK", 442.5, "mean of both, assigned or not"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 2702.5, "mean"),
                Line("DCGM_FI_DEV_GPU_TEMP", 53.5, "mean"),
                Line("DCGM_FI_DEV_POWER_USAGE", 22.8785, "mean: per device"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "mean"),
                Line("DCGM_FI_DEV_MEM_COPY_UTIL", 0, "mean"),
                Line("DCGM_FI_DEV_ENC_UTIL", 0, "mean"),
                Line("DCGM_FI_DEV_DEC_UTIL", 0, "mean"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "the larger"),
                Line("DCGM_FI_DEV_FB_FREE", 29786, "sum"),
                Line("DCGM_FI_DEV_FB_USED", 133, "sum"),
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.0000195, "mean"),
                Line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0, "mean"),
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.0000015, "mean"),
                Line("DCGM_FI_PROF_PCIE_TX_BYTES", 45054.5, "mean"),
                Line("DCGM_FI_PROF_PCIE_RX_BYTES", 420785, "one of two: the last line is cut"),
                Line("gpu_utilization", 0, "mean"),
                Line("gpu_utilization_max", 0, "of both"),
                Line("gpu_utilization_imbalance", 0, "both idle"),
                Line("gpu_memory_utilization", 0.44454733, "mean of both shares"),
                Line("gpu_memory_used_bytes", 133 * MIB, "sum"),
                Line("gpu_memory_total_bytes", 29919 * MIB, "sum"),
                Line("gpu_memory_headroom_bytes", 29786 * MIB, "sum"),
                Line("gpu_memory_bandwidth_utilization", 0.00015, "mean"),
                Line("gpu_tensor_activity", 0, "mean"),
                Line("gpu_power_watts", 22.8785, "mean"),
                Line("gpu_temperature_celsius", 53.5, "mean"),
                Line("gpu_count", 2, "the node has both"),
            ),
        },
        rejects={"cut_line": 1},
    ),
    "10": Scene(
        pages=(GUEST,),
        build=_guest,
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line("gpu_utilization", "exporter_names_no_pod", "absent labels: nobody's"),
            ),
            "node:guest": (
                Line("DCGM_FI_DEV_SM_CLOCK", 1410, "verbatim"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 1215, "verbatim"),
                Line(
                    "DCGM_FI_DEV_MEMORY_TEMP",
                    "zero_of_unsupported_field",
                    "the guest's driver does not support it",
                ),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_MEM_COPY_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_ENC_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_DEC_UTIL", 0, "verbatim"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "its row has labels of its own"),
                Line("DCGM_FI_DEV_FB_FREE", 7531, "MiB"),
                Line("DCGM_FI_DEV_FB_USED", 0, "MiB"),
                Line("gpu_utilization", 0, "GPU_UTIL"),
                Line("gpu_utilization_max", 0, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_memory_utilization", 0, "nothing used"),
                Line("gpu_memory_used_bytes", 0, "nothing used"),
                Line("gpu_memory_total_bytes", 7531 * MIB, "used and free"),
                Line("gpu_memory_headroom_bytes", 7531 * MIB, "all of it"),
                Line("gpu_count", 1, "one vGPU"),
                Line("gpu_power_watts", "metric_not_exported", "a guest has no power reading"),
                Line(
                    "gpu_temperature_celsius", "metric_not_exported", "MEMORY_TEMP is another thing"
                ),
                Line("gpu_sm_activity", "metric_not_exported", "a guest has no profiling fields"),
                Line("gpu_count", 1, "by the model of the guest", "model=GRID-A100-8C"),
            ),
        },
    ),
    "20": Scene(
        pages=(H100,),
        build=_h100,
        now=100.0,
        says={
            f"dynamo-workload/{WORKER}": (
                Line("DCGM_FI_DEV_GPU_TEMP", 31, "the seventh device's"),
                Line("DCGM_FI_DEV_POWER_USAGE", 115.22, "the seventh device's"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "idle between requests"),
                Line("gpu_utilization", 0, "GPU_UTIL"),
                Line("gpu_utilization_max", 0, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_utilization_of_request", 0, "it asked for all of it"),
                Line("gpu_power_watts", 115.22, "the board's"),
                Line("gpu_temperature_celsius", 31, "the board's"),
                Line("gpu_count", 1, "one of eight"),
                Line("DCGM_FI_DEV_MEM_COPY_UTIL", "no_value", "the page is cut before its row"),
                Line("gpu_memory_used_bytes", "metric_not_exported", "the page is cut before it"),
                Line("gpu_memory_utilization", "metric_not_exported", "the page is cut before it"),
                Line("gpu_utilization", 0, "one container", "container=main"),
            ),
            "node:ip-100-64-171-120": (
                Line("DCGM_FI_DEV_GPU_TEMP", 27.5, "mean of eight"),
                Line("DCGM_FI_DEV_POWER_USAGE", 73.518625, "mean of eight"),
                Line("DCGM_FI_DEV_GPU_UTIL", 0, "mean of eight"),
                Line("DCGM_FI_DEV_MEM_COPY_UTIL", "too_few_devices", "a 0 needs all eight"),
                Line("gpu_utilization", 0, "mean of eight"),
                Line("gpu_utilization_max", 0, "of eight"),
                Line("gpu_utilization_imbalance", 0, "all idle"),
                Line("gpu_power_watts", 73.518625, "mean of eight"),
                Line("gpu_temperature_celsius", 27.5, "mean of eight"),
                Line("gpu_count", 8, "assigned or not"),
            ),
        },
    ),
}
