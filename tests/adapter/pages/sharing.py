"""Boards shared by several pods, in every form that exporters write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.cluster.pod import Pod
from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

NODE: Final = "gpu-node-1"
UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
FIRST: Final = "cases/03_timeslice_flap.prom"
SECOND: Final = "cases/03b_timeslice_flap_next_scrape.prom"
COPIES: Final = "cases/04_vgpu_copies_4_0_3_to_4_8_1.prom"
PROCESSES: Final = "cases/05_vgpu_per_process_4_8_2.prom"
LISTED: Final = "gpu-pod-c69f6664f-vkkcb"
OTHER: Final = "gpu-pod-c69f6664f-2v922"
SLICED: Final[Mapping[str, str]] = {
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED",
}
WHOLE: Final[Mapping[str, str]] = {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"}
COPIED: Final = "sharing=shared,attribution=copied"
SPLIT: Final = "sharing=shared,attribution=split"
EXACT: Final = "sharing=shared,attribution=exact"


def _by(policy: str) -> SharingOptions:
    return SharingOptions(SharingPolicy(policy))


def _slices(*pages: str, labels: Mapping[str, str], policy: str = "copy", asks: str) -> World:
    world = World(
        *(
            make_pod(name, namespace="default", node=NODE, gpus={asks: 1})
            for name in (LISTED, OTHER)
        ),
        nodes={NODE: labels},
        sharing=_by(policy),
    )
    for i, page in enumerate(pages):
        world.scrape(captured_page(page), 100.0 + 5 * i, node=NODE)
    return world


def _sharer(name: str, replicas: int, node: str) -> Pod:
    uid = f"1843d150-0000-4000-8000-00000000000{name[-1]}"
    return make_pod(name, node=node, uid=uid, gpus={"nvidia.com/gpu.shared": replicas})


def _replicas(policy: str = "copy") -> World:
    pods = (_sharer("llm-a", 1, NODE), _sharer("llm-b", 2, NODE))
    world = World(*pods, nodes={NODE: SLICED}, sharing=_by(policy))
    world.scrape(captured_page(COPIES), 100.0, node=NODE)
    return world


def _processes(policy: str = "copy") -> World:
    pods = [_sharer(f"llm-{x}", 1, NODE) for x in "ab"]
    pods += [_sharer(f"llm-{x}", 1, "gpu-node-2") for x in "cd"]
    world = World(*pods, nodes={NODE: SLICED, "gpu-node-2": SLICED}, sharing=_by(policy))
    world.scrape(captured_page(PROCESSES), 100.0)
    return world


def _of(value: float) -> Line:
    return Line("gpu_utilization_of_request", value, "one of four replicas is a quarter")


def _has(value: float, why: str, where: str) -> tuple[Line, ...]:
    return (
        Line(UTIL, value, why),
        Line("gpu_utilization", value, why),
        Line("gpu_utilization_max", value, "one device"),
        Line("gpu_utilization_imbalance", 0, "one device"),
        Line("gpu_count", 1, "one device, however many hold it"),
        Line("gpu_utilization", value, why, where),
    )


def _both(value: float, why: str, where: str, *more: Line) -> dict[str, tuple[Line, ...]]:
    return {
        f"default/{LISTED}": (*_has(value, why, where), *more),
        f"default/{OTHER}": (*_has(value, why, where), *more),
        f"node:{NODE}": (
            *_has(71, "the device's own value, with any sharers", "sharing=shared")[:-1],
        ),
    }


def _alone(value: float, where: str) -> tuple[Line, ...]:
    whole = Line("gpu_utilization_of_request", value, "it asked for all of it")
    return (*_has(value, "one row names it", where), whole)


SCENES: Final = {
    "case 03, as the specs say": Scene(
        pages=(FIRST,),
        build=lambda: _slices(FIRST, labels=WHOLE, asks="nvidia.com/gpu.shared"),
        now=100.0,
        says=_both(71, "nvidia.com/gpu.shared: every pod of the only device has it", COPIED),
    ),
    "case 03, as the node says": Scene(
        pages=(FIRST,),
        build=lambda: _slices(FIRST, labels=SLICED, asks="nvidia.com/gpu"),
        now=100.0,
        says=_both(71, "replicas and strategy on the node: not the last one listed alone", COPIED),
    ),
    "case 03, under MPS": Scene(
        pages=(FIRST,),
        build=lambda: _slices(
            FIRST,
            labels={**SLICED, "nvidia.com/gpu.sharing-strategy": "mps"},
            asks="nvidia.com/gpu",
        ),
        now=100.0,
        says=_both(71, "MPS is a way to share as well", COPIED),
    ),
    "case 03, divided equally": Scene(
        pages=(FIRST,),
        build=lambda: _slices(FIRST, labels=SLICED, policy="equal", asks="nvidia.com/gpu"),
        now=100.0,
        says=_both(35.5, "half of 71 each", SPLIT, _of(142)),
    ),
    "case 03, nothing but what is exact": Scene(
        pages=(FIRST,),
        build=lambda: _slices(FIRST, labels=SLICED, policy="exact", asks="nvidia.com/gpu"),
        now=100.0,
        says={
            f"default/{LISTED}": (
                Line("gpu_utilization", "not_exact", "the device's value is not the pod's"),
                Line("gpu_count", "not_exact", "nor is a device of which it holds a part"),
            ),
        },
    ),
    "case 03, where nothing indicates sharing": Scene(
        pages=(FIRST,),
        build=lambda: _slices(FIRST, labels={}, asks="nvidia.com/gpu"),
        now=100.0,
        says={
            f"default/{LISTED}": _alone(71, "sharing=exclusive,attribution=exact"),
            f"default/{OTHER}": (
                Line(UTIL, "device_named_for_other_pod", "one page names one pod"),
            ),
        },
    ),
    "case 03 and 03b": Scene(
        pages=(FIRST, SECOND),
        build=lambda: _slices(FIRST, SECOND, labels={}, asks="nvidia.com/gpu"),
        now=105.0,
        says=_both(71, "the row flaps between pods that both live: they share", COPIED),
    ),
    "case 03 and 03b, divided equally": Scene(
        pages=(FIRST, SECOND),
        build=lambda: _slices(FIRST, SECOND, labels={}, policy="equal", asks="nvidia.com/gpu"),
        now=105.0,
        says=_both(35.5, "half of 71 each", SPLIT),
    ),
    "case 04": Scene(
        pages=(COPIES,),
        build=_replicas,
        now=100.0,
        says={
            "ml/llm-a": _has(71, "the device's value, copied per replica", COPIED),
            "ml/llm-b": _has(71, "two replicas are one device", COPIED),
            f"node:{NODE}": (*_has(71, "one device, not three rows", "sharing=shared")[:-1],),
        },
    ),
    "case 04, divided equally": Scene(
        pages=(COPIES,),
        build=lambda: _replicas("equal"),
        now=100.0,
        says={
            "ml/llm-a": (*_has(35.5, "by live pods, not by replicas", SPLIT), _of(142)),
            "ml/llm-b": _has(35.5, "by live pods, not by replicas", SPLIT),
        },
    ),
    "case 05": Scene(
        pages=(PROCESSES,),
        build=_processes,
        now=100.0,
        says={
            "ml/llm-a": (
                *_has(62, "accounted per process", EXACT),
                _of(248),
                Line(ENGINE, 0.714, "other fields are copied"),
                Line(ENGINE, 0.714, "and say so", COPIED),
                Line(ENGINE, "not_selected", "and are not exact", EXACT),
            ),
            "ml/llm-b": (
                *_has(31, "accounted per process", EXACT),
                _of(124),
                Line(ENGINE, 0.714, "other fields are copied"),
            ),
            "ml/llm-c": (
                Line(
                    UTIL,
                    "zero_on_busy_device",
                    "all pods at 0 beside a device at 97: missing, not 0",
                ),
                Line("gpu_utilization", "zero_on_busy_device", "nor any other basis"),
                Line("gpu_count", 1, "the device is there"),
            ),
            "ml/llm-d": (
                Line(
                    "gpu_utilization", "zero_on_busy_device", "an empty pod_uid is not a mismatch"
                ),
                Line("gpu_count", 1, "the device is there"),
            ),
            f"node:{NODE}": (
                *_has(99, "the device's own row", "sharing=shared")[:-1],
                Line(ENGINE, 0.714, "the device's, copied"),
            ),
            "node:gpu-node-2": _has(97, "the device's own row", "sharing=exclusive")[:-1],
        },
        rejects={"zero_on_busy_device": 1},
    ),
    "case 05, divided equally": Scene(
        pages=(PROCESSES,),
        build=lambda: _processes("equal"),
        now=100.0,
        says={
            "ml/llm-a": (
                *_has(62, "what is exact is not divided", EXACT),
                _of(248),
                Line(ENGINE, 0.357, "what is copied is divided"),
            ),
            "ml/llm-c": (
                Line("gpu_utilization", "zero_on_busy_device", "97 / 2 is not what it did"),
                Line("gpu_count", 1, "the device is there"),
            ),
        },
        rejects={"zero_on_busy_device": 1},
    ),
    "case 05, nothing but what is exact": Scene(
        pages=(PROCESSES,),
        build=lambda: _processes("exact"),
        now=100.0,
        says={
            "ml/llm-b": (
                *_has(31, "accounted per process", EXACT),
                _of(124),
                Line(ENGINE, "not_exact", "copied"),
            ),
        },
        rejects={"zero_on_busy_device": 1},
    ),
}
