"""MIG instances of dcgm-exporter: samples with one UUID, identified by GPU_I_ID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

MIB: Final = 1048576
FOUR: Final = "02_dcgm_A100_MIG_4_instances_unattributed.prom"
THREE: Final = "04_dcgm_A100_MIG_2x1g5gb_2g10gb.prom"
DOCS: Final = "08_dcgm_docs_A100_gpu_plus_mig.prom"
DRA: Final = "43_dcgm_dra_mig_line.prom"
LICENCE: Final = "DCGM_FI_DEV_VGPU_LICENSE_STATUS"
INSTANCE: Final = "MIG-24c6a0e5-fe28-53ac-9537-c4e23104f30f"
CLAIMANT: Final = "pod-56dbf5cf44-xnfk5"
SMALL: Final[Mapping[str, int]] = {"nvidia.com/mig-1g.5gb": 1}


def _unattributed(page: str) -> World:
    world = World(make_pod("waits-for-rows", node="a100", gpus=SMALL))
    world.scrape(captured_page(page), 100.0, node="a100")
    return world


def _claimed(series: str = LICENCE) -> World:
    pod = make_pod(CLAIMANT, namespace="gpu-test4", node="gh200", gpus={}, claims=True)
    world = World(pod)
    page = captured_page(DRA)
    world.scrape(page.replace(LICENCE, series), 100.0, node="gh200")
    return world


def _at(instance: str) -> str:
    return f"device=GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd.{instance}"


SCENES: Final = {
    "02": Scene(
        pages=(FOUR,),
        build=lambda: _unattributed(FOUR),
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line(
                    "gpu_utilization",
                    "exporter_names_no_pod",
                    "which of three instances is not said",
                ),
                Line("gpu_count", "exporter_names_no_pod", "no row names it"),
            ),
            "node:a100": (
                Line("DCGM_FI_DEV_SM_CLOCK", 1410, "the board's, repeated"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 1215, "the board's, repeated"),
                Line("DCGM_FI_DEV_MEMORY_TEMP", 36, "the board's, repeated"),
                Line("DCGM_FI_DEV_GPU_TEMP", 35, "the board's, repeated"),
                Line("DCGM_FI_DEV_POWER_USAGE", 112.252, "one board: 437 is never the sum"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "the board's"),
                Line("DCGM_FI_DEV_FB_FREE", 20037, "sum over instances"),
                Line("DCGM_FI_DEV_FB_USED", 4409, "sum over instances"),
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.10212325, "mean of four"),
                Line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.000012, "mean of four"),
                Line(
                    "DCGM_FI_PROF_DRAM_ACTIVE", 0.0836053333, "mean of three: the last line is cut"
                ),
                Line("gpu_utilization", 10.212325, "mean of the four engines"),
                Line("gpu_utilization_max", 40.8493, "the busiest instance"),
                Line("gpu_utilization_imbalance", 40.8493, "the busiest without the idlest"),
                Line("gpu_memory_utilization", 22.62755996, "mean of the instances' shares"),
                Line("gpu_memory_used_bytes", 4409 * MIB, "sum over instances"),
                Line("gpu_memory_total_bytes", 24446 * MIB, "sum over instances"),
                Line("gpu_memory_headroom_bytes", 20037 * MIB, "sum over instances"),
                Line("gpu_memory_bandwidth_utilization", 8.36053333, "mean of three"),
                Line("gpu_tensor_activity", 0.0012, "mean of four"),
                Line("gpu_power_watts", 112.252, "one board"),
                Line("gpu_temperature_celsius", 35, "one board"),
                Line("gpu_count", 4, "instances are devices"),
                Line(
                    "DCGM_FI_DEV_GPU_UTIL",
                    "metric_of_whole_devices",
                    "MIG has none, and the page neither",
                ),
                Line("gpu_utilization", 40.8493, "instance 8's engine", _at("8")),
                Line("gpu_utilization", 0, "instance 5 idles", _at("5")),
                Line("gpu_memory_utilization", 90.1315789, "instance 8: 4384 of 4864", _at("8")),
                Line("gpu_power_watts", 106.463, "the board's, as its row has it", _at("8")),
                Line("gpu_count", 3, "by profile", "mig_profile=1g.5gb"),
                Line("gpu_memory_used_bytes", 13 * MIB, "by profile", "mig_profile=2g.10gb"),
                Line("gpu_utilization", "not_selected", "none such", "mig_profile=7g.40gb"),
            ),
        },
        rejects={"cut_line": 1},
    ),
    "04": Scene(
        pages=(THREE,),
        build=lambda: _unattributed(THREE),
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line(
                    "gpu_utilization", "exporter_names_no_pod", "which of two instances is not said"
                ),
            ),
            "node:a100": (
                Line("DCGM_FI_DEV_SM_CLOCK", 1410, "the board's, repeated"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 1215, "the board's, repeated"),
                Line("DCGM_FI_DEV_MEMORY_TEMP", 39, "the board's, repeated"),
                Line("DCGM_FI_DEV_GPU_TEMP", 37, "the board's, repeated"),
                Line("DCGM_FI_DEV_POWER_USAGE", 116.163, "one board: 348 is never the sum"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "the board's"),
                Line("DCGM_FI_DEV_FB_FREE", 14948, "sum"),
                Line("DCGM_FI_DEV_FB_USED", 4635, "sum"),
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.333338333, "mean of three"),
                Line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.0000393333, "mean of three"),
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.3240195, "mean of two: the last line is cut"),
                Line("gpu_utilization", 33.3338333, "mean of three engines"),
                Line("gpu_utilization_max", 99.9917, "instance 9"),
                Line("gpu_utilization_imbalance", 99.9881, "instance 9 without instance 5"),
                Line("gpu_memory_utilization", 31.23296426, "mean of the shares"),
                Line("gpu_memory_used_bytes", 4635 * MIB, "sum"),
                Line("gpu_memory_total_bytes", 19583 * MIB, "sum"),
                Line("gpu_memory_headroom_bytes", 14948 * MIB, "sum"),
                Line("gpu_memory_bandwidth_utilization", 32.40195, "mean of two"),
                Line("gpu_tensor_activity", 0.00393333, "mean"),
                Line("gpu_power_watts", 116.163, "one board"),
                Line("gpu_temperature_celsius", 37, "one board"),
                Line("gpu_count", 3, "instances"),
                Line("gpu_utilization", 0.0036, "by profile", "mig_profile=2g.10gb"),
                Line("gpu_utilization", 49.99895, "mean of two", "mig_profile=1g.5gb"),
            ),
        },
        rejects={"cut_line": 1},
    ),
    "08": Scene(
        pages=(DOCS,),
        build=lambda: _unattributed(DOCS),
        now=100.0,
        says={
            "ml/waits-for-rows": (
                Line("gpu_utilization", "exporter_names_no_pod", "the page names no pod"),
            ),
            "node:a100": (
                Line("gpu_utilization", 99.5687, "a cut board counts by its instances"),
                Line("gpu_utilization_max", 99.5687, "one instance"),
                Line("gpu_utilization_imbalance", 0, "one instance"),
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.995687, "the instance's"),
                Line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.930433, "the instance's"),
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.800339, "the instance's"),
                Line("gpu_tensor_activity", 93.0433, "the instance's"),
                Line("gpu_memory_bandwidth_utilization", 80.0339, "the instance's"),
                Line("DCGM_FI_DEV_SM_CLOCK", 1215, "what the board alone has"),
                Line("DCGM_FI_DEV_MEM_CLOCK", 1215, "what the board alone has"),
                Line("DCGM_FI_DEV_MEMORY_TEMP", 69, "what the board alone has"),
                Line("DCGM_FI_DEV_GPU_TEMP", 61, "what the board alone has"),
                Line("DCGM_FI_DEV_POWER_USAGE", 409.692, "what the board alone has"),
                Line("DCGM_FI_PROF_PCIE_TX_BYTES", 33011804, "what the board alone has"),
                Line("DCGM_FI_PROF_PCIE_RX_BYTES", 97863601, "what the board alone has"),
                Line("DCGM_FI_DEV_XID_ERRORS", 0, "the board's"),
                Line("gpu_power_watts", 409.692, "what the board alone has"),
                Line("gpu_temperature_celsius", 61, "what the board alone has"),
                Line("gpu_count", 1, "the board is its instance"),
                Line("gpu_memory_used_bytes", "no_value", "the instance has no such row"),
                Line(
                    "DCGM_FI_DEV_GPU_UTIL", "metric_of_whole_devices", "no DEV utilisation with MIG"
                ),
            ),
        },
    ),
    "43": Scene(
        pages=(DRA,),
        build=_claimed,
        now=100.0,
        says={
            f"gpu-test4/{CLAIMANT}": (
                Line("gpu_utilization", "claim_not_named", "a licence says nothing of use"),
                Line("gpu_count", "claim_not_named", "a series that is not read"),
            ),
        },
    ),
    "43 with an engine's row": Scene(
        pages=(DRA,),
        build=lambda: _claimed("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
        now=100.0,
        says={
            f"gpu-test4/{CLAIMANT}": (
                Line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0, "the pod has a claim, and no limit"),
                Line("gpu_utilization", 0, "an instance without GPU_I_ID"),
                Line("gpu_utilization_max", 0, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_utilization_of_request", 0, "it asked for all of it"),
                Line("gpu_count", 1, "identified by dra_mig_device_uuid"),
                Line("gpu_utilization", 0, "the claim's profile", "mig_profile=1g.12gb"),
                Line("gpu_utilization", 0, "the instance", f"device={INSTANCE}"),
            ),
        },
    ),
    "43 with GPU_UTIL": Scene(
        pages=(DRA,),
        build=lambda: _claimed("DCGM_FI_DEV_GPU_UTIL"),
        now=100.0,
        says={
            f"gpu-test4/{CLAIMANT}": (
                Line(
                    "DCGM_FI_DEV_GPU_UTIL",
                    "metric_of_whole_devices",
                    "garbage on a claimed instance as well",
                ),
                Line("gpu_utilization", "metric_not_exported", "the engine's field is missing"),
                Line("gpu_count", "metric_not_exported", "no field that an instance can have"),
            ),
        },
        rejects={"invalid_on_mig": 1},
    ),
}
