"""Derived metrics: maximum, imbalance, headroom, utilisation of the request."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.cluster.pod import Pod
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
HAMI = 'hami_container_device_utilization_ratio{namespace="ml",pod="p",device_uuid="GPU-0"} 15\n'


def two_devices() -> World:
    world = World(make_pod("p", gpus={"nvidia.com/gpu": 2}))
    page = row(UTIL, 30, "p", uuid="GPU-0") + row(UTIL, 90, "p", uuid="GPU-1")
    world.scrape(page, 100.0)
    return world


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("gpu_utilization", 60.0),
        ("gpu_utilization_max", 90.0),
        ("gpu_utilization_imbalance", 60.0),
        ("gpu_utilization_of_request", 60.0),
    ],
)
def test_of_two_devices(metric: str, expected: float) -> None:
    assert two_devices().value("p", metric, 101.0) == expected


def test_one_device_is_in_balance() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 30, "p"), 100.0)
    assert world.value("p", "gpu_utilization_imbalance", 101.0) == 0.0


MEMORY: dict[str, tuple[dict[str, float], float | str, float | str]] = {
    "total given": ({"USED": 10, "TOTAL": 100}, 90 * 1048576.0, 10.0),
    "total of its parts": ({"USED": 10, "FREE": 80, "RESERVED": 10}, 90 * 1048576.0, 10.0),
    "nothing reserved": ({"USED": 25, "FREE": 75}, 75 * 1048576.0, 25.0),
    "only a share": ({"USED_PERCENT": 0.25}, "metric_not_exported", 25.0),
    "used alone": ({"USED": 10}, "metric_not_exported", "metric_not_exported"),
    "more used than there is": ({"USED": 101, "TOTAL": 100}, "no_value", "no_value"),
}


@pytest.mark.parametrize("name", MEMORY)
def test_headroom_and_share_of_memory(name: str) -> None:
    rows, headroom, share = MEMORY[name]
    world = World(make_pod("p"))
    world.scrape("".join(row(f"DCGM_FI_DEV_FB_{f}", v, "p") for f, v in rows.items()), 100.0)
    assert world.value("p", "gpu_memory_headroom_bytes", 101.0) == headroom
    assert world.value("p", "gpu_memory_utilization", 101.0) == share


def requested(pod: Pod, page: str, labels: Mapping[str, str], policy: SharingPolicy) -> float | str:
    sharing = SharingOptions(policy=policy)
    other = make_pod("other", node="n", uid="o")
    world = World(pod, other, sharing=sharing, nodes={"n": labels})
    world.scrape(page, 100.0, node="n")
    return world.value("p", "gpu_utilization_of_request", 101.0)


SLICED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
CORES = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}
ONE = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("gpus", "page", "labels", "policy", "expected"),
    [
        (CORES, HAMI, {}, SharingPolicy.COPY, 50.0),
        (ONE, row(UTIL, 40, "p"), {}, SharingPolicy.COPY, 40.0),
        (ONE, row(UTIL, 40, "p"), SLICED, SharingPolicy.COPY, "requested_share_unknown"),
        (ONE, row(UTIL, 40, "p"), SLICED, SharingPolicy.EQUAL, 80.0),
        (
            {"nvidia.com/gpu": 2},
            row(UTIL, 40, "p"),
            SLICED,
            SharingPolicy.EQUAL,
            "requested_share_unknown",
        ),
    ],
    ids=["hami cores", "a whole device", "copied", "split by replicas", "two replicas asked"],
)
def test_utilisation_of_the_request_is_served_if_the_share_is_known(
    gpus: Mapping[str, int],
    page: str,
    labels: Mapping[str, str],
    policy: SharingPolicy,
    expected: float | str,
) -> None:
    pod = make_pod("p", node="n", gpus=gpus)
    assert requested(pod, page, labels, policy) == expected


def test_a_node_has_no_utilisation_of_the_request() -> None:
    world = World(make_pod("p", node="n"))
    world.scrape(row(UTIL, 40, "p"), 100.0, node="n")
    answer = world.node("n", "gpu_utilization_of_request", 101.0)
    assert getattr(answer, "reason", answer) == "nothing_requested"
