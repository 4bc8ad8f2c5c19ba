"""Constructed pages: one trap each, in a cluster that would have it."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.cluster.pod import Pod
from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

MIB: Final = 1048576
EXPORTER: Final = "dcgm-exporter-dev-78z52"
NODE: Final = "gpu-node-1"
IDLE: Final = "cases/01_idle_three_spellings.prom"
EXPORTED: Final = "cases/02_exported_labels.prom"
MIXED: Final = "cases/06_mig_mixed.prom"
CORRUPT: Final = "cases/07_sentinels_and_corruption.prom"
LEGACY: Final = "cases/08_legacy_namespace.prom"
FLEET: Final = "cases/09_exporter_4_9_renames_mixed_fleet.prom"
SEVERAL: Final = "cases/10_multi_gpu_multi_container.prom"


def scraped(page: str, *pods: Pod, node: str | None = None) -> World:
    """The page of one exporter, read once."""
    world = World(*pods)
    world.scrape(captured_page(page), 100.0, node=node)
    return world


def _exporter() -> Pod:
    return make_pod(EXPORTER, namespace="monitoring", gpus={}, node=NODE)


def _one(series: str, value: float, why: str) -> tuple[Line, ...]:
    """Values of a pod with one whole device, whose page has only GPU_UTIL."""
    return (
        Line(series, value, why),
        Line("gpu_utilization", value, why),
        Line("gpu_utilization_max", value, "one device"),
        Line("gpu_utilization_imbalance", 0, "one device"),
        Line("gpu_count", 1, "one device"),
    )


def _whole(series: str, value: float, why: str) -> tuple[Line, ...]:
    """The same for a pod that requested the whole device."""
    asked = Line("gpu_utilization_of_request", value, "it asked for all of it")
    return (*_one(series, value, why), asked)


UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED: Final = "DCGM_FI_DEV_FB_USED"

SCENES: Final = {
    "case 01": Scene(
        pages=(IDLE,),
        build=lambda: scraped(IDLE, _exporter(), make_pod("llm-0", node=NODE), node=NODE),
        now=100.0,
        says={
            f"monitoring/{EXPORTER}": (
                Line(UTIL, "self_attribution", "honorLabels: the target's pod on an idle device"),
                Line("gpu_utilization", "self_attribution", "and holds no GPU by its spec"),
                Line("gpu_count", "self_attribution", "nor one device"),
            ),
            "ml/llm-0": (Line(UTIL, "exporter_names_no_pod", "no row names it"),),
            f"node:{NODE}": (
                *_one(UTIL, 0, "mean of three idle ones")[:-1],
                Line("gpu_count", 3, "in all three spellings of unassigned"),
            ),
        },
        rejects={"self_attribution": 1},
    ),
    "case 02": Scene(
        pages=(EXPORTED,),
        build=lambda: scraped(EXPORTED, _exporter(), make_pod("llm-0", node=NODE)),
        now=100.0,
        says={
            "ml/llm-0": (
                *_whole(UTIL, 87, "exported_pod is the workload"),
                Line(UTIL, 87, "exported_container", "container=server"),
                Line(UTIL, "not_selected", "container names the exporter", "container=exporter"),
            ),
            f"monitoring/{EXPORTER}": (
                Line(UTIL, "no_gpu_in_spec", "pod names the scrape target"),
            ),
        },
    ),
    "case 06": Scene(
        pages=(MIXED,),
        build=lambda: scraped(
            MIXED,
            make_pod("mig-a", node=NODE, gpus={"nvidia.com/mig-1g.5gb": 1}),
            make_pod("mig-b", node=NODE, gpus={"nvidia.com/mig-2g.10gb": 1}),
            make_pod("whole-0", node=NODE),
            node=NODE,
        ),
        now=100.0,
        says={
            "ml/mig-a": (
                Line(ENGINE, 0.408493, "per instance"),
                Line(USED, 4384, "per instance"),
                Line("gpu_utilization", 40.8493, "a MIG instance's is its engine's"),
                Line("gpu_utilization_max", 40.8493, "one instance"),
                Line("gpu_utilization_imbalance", 0, "one instance"),
                Line("gpu_utilization_of_request", 40.8493, "it asked for all of it"),
                Line("gpu_memory_used_bytes", 4384 * MIB, "per instance"),
                Line("gpu_count", 1, "one instance of a board of three"),
                Line(UTIL, "metric_of_whole_devices", "no DEV utilisation with MIG"),
                Line(
                    "gpu_memory_utilization",
                    "metric_not_exported",
                    "no total and no free on the page",
                ),
                Line("gpu_utilization", 40.8493, "its profile", "mig_profile=1g.5gb"),
                Line("gpu_utilization", "not_selected", "not its own", "mig_profile=2g.10gb"),
                Line("gpu_utilization", 40.8493, "its own", "sharing=exclusive,attribution=exact"),
            ),
            "ml/mig-b": (
                Line(ENGINE, 0.5, "per instance"),
                Line(USED, 9012, "per instance"),
                Line("gpu_utilization", 50, "not normalised by default (DCGM#138)"),
                Line("gpu_utilization_max", 50, "one instance"),
                Line("gpu_utilization_imbalance", 0, "one instance"),
                Line("gpu_utilization_of_request", 50, "it asked for all of it"),
                Line("gpu_memory_used_bytes", 9012 * MIB, "per instance"),
                Line("gpu_count", 1, "one instance"),
            ),
            "ml/whole-0": (
                Line(UTIL, 92, "the whole board beside the cut one"),
                Line(ENGINE, 0.93, "verbatim"),
                Line(USED, 39000, "verbatim"),
                Line("gpu_utilization", 92, "GPU_UTIL, not the engine's 93"),
                Line("gpu_utilization_max", 92, "one device"),
                Line("gpu_utilization_imbalance", 0, "one device"),
                Line("gpu_utilization_of_request", 92, "it asked for all of it"),
                Line("gpu_memory_used_bytes", 39000 * MIB, "MiB in bytes"),
                Line("gpu_count", 1, "one board"),
                Line("gpu_utilization", "not_selected", "a board has none", "mig_profile=1g.5gb"),
                Line("gpu_utilization", 92, "a board has none", "!mig_profile"),
            ),
            f"node:{NODE}": (
                Line(UTIL, "too_few_devices", "one of four devices has it"),
                Line(ENGINE, 0.45962325, "mean of three instances and a board"),
                Line(USED, 52402, "sum, the idle instance too"),
                Line("gpu_utilization", 45.712325, "mean of 40.8, 0, 50 and 92"),
                Line("gpu_utilization_max", 92, "the board"),
                Line("gpu_utilization_imbalance", 92, "the board without the idle instance"),
                Line("gpu_memory_used_bytes", 52402 * MIB, "sum"),
                Line("gpu_count", 4, "three instances and a board"),
                Line("gpu_count", 2, "by profile", "mig_profile=1g.5gb"),
            ),
        },
    ),
    "case 07": Scene(
        pages=(CORRUPT,),
        build=lambda: scraped(
            CORRUPT,
            *(make_pod(f"s-{i}", node=NODE) for i in range(7)),
            make_pod("mig-a", node=NODE, gpus={"nvidia.com/mig-1g.5gb": 1}),
            node=NODE,
        ),
        now=100.0,
        says={
            "ml/s-0": (Line("gpu_utilization", "no_value", "DCGM's blank of 64 bits"),),
            "ml/s-1": (Line("gpu_utilization", "no_value", "DCGM's blank of 32 bits"),),
            "ml/s-2": (Line("gpu_utilization", "no_value", "DCGM's blank of doubles"),),
            "ml/s-3": (Line("gpu_utilization", "no_value", "NaN, never 0"),),
            "ml/s-4": (Line("gpu_utilization", "no_value", "808334905 percent"),),
            "ml/s-5": (Line("gpu_utilization", "no_value", "4294967295 percent"),),
            "ml/s-6": _whole(UTIL, 100, "all of it is not too much"),
            "ml/mig-a": (
                Line("DCGM_FI_PROF_SM_ACTIVE", "no_value", "1.75 of 1 (DCGM#152): not clamped"),
                Line("gpu_sm_activity", "no_value", "nor is 175 percent"),
            ),
        },
        rejects={"sentinel": 3, "not_finite": 1, "out_of_range": 3},
    ),
    "case 08": Scene(
        pages=(LEGACY,),
        build=lambda: scraped(LEGACY, make_pod("llm-0", node="n"), node="n"),
        now=100.0,
        says={
            "ml/llm-0": (
                *_whole(UTIL, 55, "the old name feeds the new"),
                Line(ENGINE, 0.508246, "in lower case as well"),
                Line("dcgm_gpu_utilization", 55, "the old name is served too"),
                Line("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.55, "the newest name in its own unit"),
                Line("gpu_utilization", 55, "container_name", "container=server"),
            ),
        },
    ),
    "case 09": Scene(
        pages=(FLEET,),
        build=lambda: scraped(
            FLEET,
            make_pod("llm-0", node="gpu-node-9"),
            make_pod("llm-1", node=NODE),
            make_pod("llm-2", node="gpu-node-8"),
        ),
        now=100.0,
        says={
            "ml/llm-0": (
                *_whole(UTIL, 87, "0.87 of the 4.9.0 name"),
                Line(USED, 38000, "bytes as MiB"),
                Line("gpu_memory_used_bytes", 39845888000, "bytes as they are"),
                Line("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.87, "verbatim, a ratio"),
                Line("DCGM_FI_DEV_FB_USED_BYTES", 39845888000, "verbatim"),
            ),
            "ml/llm-1": (
                *_whole(UTIL, 64, "the 4.8 name beside it"),
                Line(USED, 38000, "verbatim"),
                Line("gpu_memory_used_bytes", 39845888000, "the same amount in the same unit"),
                Line("DCGM_FI_DEV_FB_USED_BYTES", 39845888000, "the new name for an old page"),
            ),
            "ml/llm-2": (
                *_whole(UTIL, 87, "DCGM 4.6: a _RATIO of 87 is a percent"),
                Line("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.87, "served as a ratio all the same"),
            ),
            "node:gpu-node-9": (
                *_one(UTIL, 87, "lower-case hostname"),
                Line(USED, 38000, "one device"),
                Line("gpu_memory_used_bytes", 39845888000, "one device"),
            ),
        },
    ),
    "case 10": Scene(
        pages=(SEVERAL,),
        build=lambda: scraped(
            SEVERAL,
            make_pod("train-0", node=NODE, gpus={"nvidia.com/gpu": 2}),
            make_pod("pair-0", node=NODE, gpus={"nvidia.com/gpu": 2}),
            node=NODE,
        ),
        now=100.0,
        says={
            "ml/train-0": (
                Line(UTIL, 50, "mean of two devices"),
                Line("gpu_utilization", 50, "mean of 95 and 5"),
                Line("gpu_utilization_max", 95, "the busier"),
                Line("gpu_utilization_imbalance", 90, "95 without 5"),
                Line("gpu_utilization_of_request", 50, "it asked for all of it"),
                Line("gpu_count", 2, "distinct devices"),
                Line("DCGM_FI_DEV_XID_ERRORS", 31, "half of the devices have a code: partial"),
            ),
            "ml/pair-0": (
                Line(UTIL, 50, "over the devices of both containers"),
                Line("gpu_utilization", 50, "mean of 80 and 20"),
                Line("gpu_utilization_max", 80, "the busier"),
                Line("gpu_utilization_imbalance", 60, "80 without 20"),
                Line("gpu_utilization_of_request", 50, "it asked for all of it"),
                Line("gpu_count", 2, "distinct devices"),
                Line("gpu_utilization", 80, "one container", "container=prefill"),
                Line("gpu_utilization", 20, "the other", "container=decode"),
                Line("DCGM_FI_DEV_XID_ERRORS", "no_value", "another pod's code"),
            ),
        },
    ),
}
