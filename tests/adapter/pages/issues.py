"""Lines quoted in issues: each block is one reporter's exporter, so each is its own page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from adapter.pipeline.cluster.pod import Pod
from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

EXCERPTS: Final = "11_issue_excerpts_real_lines.prom"


def _block(issue: str) -> str:
    """The lines below the comment that names the issue."""
    match = re.search(
        rf"^# NVIDIA/{re.escape(issue)}[ :].*\n((?:[^#].*\n)+)",
        captured_page(EXCERPTS),
        re.MULTILINE,
    )
    assert match is not None, issue
    return match[1]


def _excerpt(
    issue: str, *pods: Pod, node: str | None = None, labels: Mapping[str, str] | None = None
) -> Callable[[], World]:
    def build() -> World:
        world = World(*pods, nodes={node: labels or {}} if node else None)
        world.scrape(_block(issue), 100.0, node=node)
        return world

    return build


def _scene(
    build: Callable[[], World],
    says: Mapping[str, tuple[Line, ...]],
    rejects: Mapping[str, int] | None = None,
) -> Scene:
    return Scene((EXCERPTS,), build, 100.0, says, rejects or {})


def _busy(series: str, verbatim: float, percent: float, why: str) -> tuple[Line, ...]:
    return (
        Line(series, verbatim, why),
        Line("gpu_utilization", percent, why),
        Line("gpu_utilization_max", percent, "one device"),
        Line("gpu_utilization_imbalance", 0, "one device"),
        Line("gpu_count", 1, "one device"),
    )


def _held(series: str, verbatim: float, percent: float, why: str) -> tuple[Line, ...]:
    """The same for a pod that requested the whole device."""
    asked = Line("gpu_utilization_of_request", percent, "it asked for all of it")
    return (*_busy(series, verbatim, percent, why), asked)


UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
MPS: Final = {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.sharing-strategy": "mps"}

SCENES: Final = {
    "11 gpu-monitoring-tools#138": _scene(
        _excerpt(
            "gpu-monitoring-tools#138",
            make_pod("dcgmproftester", namespace="default", node="n"),
            node="n",
        ),
        {
            "default/dcgmproftester": (
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.000001, "before modelName and Hostname"),
                Line("gpu_memory_bandwidth_utilization", 0.0001, "percent"),
                Line("gpu_count", 1, "the other device is nobody's"),
                Line("gpu_utilization", "no_value", "the 44 is of the device with empty labels"),
                Line("gpu_count", "not_selected", "no model on the page", "model"),
            ),
            "node:n": (
                *_busy(UTIL, 44, 44, "the device that has a row")[:-2],
                Line("gpu_utilization_imbalance", "too_few_devices", "a 0 needs both devices"),
                Line("DCGM_FI_PROF_DRAM_ACTIVE", 0.000001, "the device that has a row"),
                Line("gpu_memory_bandwidth_utilization", 0.0001, "the device that has a row"),
                Line("gpu_count", 2, "two UUIDs"),
            ),
        },
    ),
    "11 gpu-monitoring-tools#193": _scene(
        _excerpt("gpu-monitoring-tools#193"),
        {
            "node:a0321111701": (
                Line("DCGM_FI_DEV_SM_CLOCK", "zero_of_unsupported_field", "a clock never rests"),
                Line("gpu_count", 1, "an instance"),
                Line("gpu_count", 1, "<<<NULL>>> is not a profile", "!mig_profile"),
            ),
        },
    ),
    "11 dcgm-exporter#188": _scene(
        _excerpt("dcgm-exporter#188", node="n"),
        {
            "node:n": (
                *_busy(UTIL, 0, 0, "the old name"),
                Line("DCGM_FI_DEV_POWER_USAGE", 30.982, "the old name"),
                Line("gpu_power_watts", 30.982, "the old name"),
                Line("dcgm_power_usage", 30.982, "verbatim"),
            ),
        },
    ),
    "11 dcgm-exporter#272": _scene(
        _excerpt(
            "dcgm-exporter#272",
            make_pod("d85np-t6mdg", namespace="ai-1", node="n"),
            make_pod("waits-for-rows", node="n", gpus={"nvidia.com/mig-3g.40gb": 1}),
            node="n",
        ),
        {
            "ai-1/d85np-t6mdg": (
                *_held(ENGINE, 0.008246, 0.8246, "no GPU_UTIL at all: the engine stands in"),
            ),
            "ml/waits-for-rows": (Line("gpu_utilization", "pod_not_named", "pod_name is empty"),),
        },
    ),
    "11 dcgm-exporter#68": _scene(
        _excerpt(
            "dcgm-exporter#68",
            make_pod(
                "testest-9sxmd",
                namespace="gi-user1-giops-ai",
                node="n",
                gpus={"nvidia.com/mig-2g.12gb": 1},
            ),
            node="n",
        ),
        {
            "gi-user1-giops-ai/testest-9sxmd": (
                *_held(ENGINE, 0.959228, 95.9228, "a MIG instance's engine"),
                Line("gpu_utilization", 95.9228, "its profile", "mig_profile=2g.12gb"),
            ),
        },
    ),
    "11 dcgm-exporter#340": _scene(
        _excerpt(
            "dcgm-exporter#340",
            make_pod("pod1", namespace="default", node="worker1"),
            make_pod("dcgm-exporter-dev-78z52", namespace="monitoring", node="worker1", gpus={}),
        ),
        {
            "default/pod1": (
                Line("DCGM_FI_DEV_GPU_TEMP", 40, "exported_pod, regardless of pod"),
                Line("gpu_temperature_celsius", 40, "exported_pod, regardless of pod"),
                Line("gpu_count", 1, "one device"),
            ),
            "monitoring/dcgm-exporter-dev-78z52": (
                Line(
                    "gpu_temperature_celsius", "no_gpu_in_spec", "the exporter is not the workload"
                ),
            ),
        },
    ),
    "11 gpu-operator#472": _scene(
        _excerpt("gpu-operator#472"),
        {
            "node:aks-gpunp-66230965-vmss000000": _busy(
                UTIL, 0, 0, "the scrape's node label, not Hostname, which is a pod's name"
            ),
        },
    ),
    "11 dcgm-exporter#568": _scene(
        _excerpt(
            "dcgm-exporter#568",
            make_pod("xxxxx", namespace="xxxx", node="n"),
            make_pod("beside-0", namespace="xxxx", node="n"),
            node="n",
            labels=MPS,
        ),
        {
            "xxxx/xxxxx": (
                *_busy(UTIL, 38, 38, "MPS: the device's value"),
                Line("gpu_utilization_of_request", "requested_share_unknown", "replicas unknown"),
                Line("gpu_utilization", 38, "and says so", "sharing=shared,attribution=copied"),
            ),
            "xxxx/beside-0": _busy(UTIL, 38, 38, "MPS: the other client has it as well"),
        },
    ),
    "11 dcgm-exporter#532": _scene(
        _excerpt(
            "dcgm-exporter#532",
            make_pod("pod-56dbf5cf44-xnfk5", namespace="gpu-test4", gpus={}, claims=True),
        ),
        {
            "gpu-test4/pod-56dbf5cf44-xnfk5": (
                Line("gpu_count", "claim_not_named", "a licence is not read"),
            ),
        },
    ),
    "11 dcgm-exporter#725": _scene(
        _excerpt("dcgm-exporter#725", node="n"),
        {
            "node:n": (
                Line("DCGM_FI_DEV_FB_USED", 10056, "two replicas, one device: never the sum"),
                Line("gpu_memory_used_bytes", 10056 * 1048576, "never the sum"),
                Line("gpu_count", 1, "one UUID"),
            ),
        },
    ),
    "11 dcgm-exporter#664": _scene(
        _excerpt(
            "dcgm-exporter#664",
            make_pod("pod-c98945f5d-dnjs6", namespace="gpu-test4", gpus={}, claims=True),
        ),
        {
            "gpu-test4/pod-c98945f5d-dnjs6": (
                Line("DCGM_FI_DEV_SM_CLOCK", 1440, "the claim's instance"),
                Line("gpu_count", 1, "one instance"),
                Line("gpu_count", 1, "its profile", "mig_profile=1g.6gb"),
            ),
            "node:nim-operator-72q5r53": (
                Line("DCGM_FI_DEV_SM_CLOCK", 825, "mean of the boards: lower-case hostname"),
                Line("gpu_count", 2, "a whole board and an instance"),
            ),
        },
    ),
}
