"""Samples of single containers (HAMi) are added up for their pod only."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from tests.adapter.world import World, make_pod, reading, row, said

UTIL = "hami_container_device_utilization_ratio"
USED = "hami_vgpu_memory_used_bytes"
LIMIT = "hami_vgpu_memory_limit_bytes"
BUSY = "gpu_utilization"
REPLICAS = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}


def own(series: str, value: float, pod: str, container: str, *, uuid: str = "GPU-0") -> str:
    labels = f'namespace="ml",pod="{pod}",container="{container}",device_uuid="{uuid}"'
    return f"{series}{{{labels}}} {value}\n"


def hami(pod: str, container: str, util: float, used: float, limit: float) -> str:
    return (
        own(UTIL, util, pod, container)
        + own(USED, used, pod, container)
        + own(LIMIT, limit, pod, container)
    )


def on_node(name: str) -> Pod:
    return make_pod(name, node="n", uid=f"uid-{name}")


def world(
    *names: str, labels: dict[str, str] | None = None, policy: SharingPolicy = SharingPolicy.COPY
) -> World:
    made = World(*(on_node(name) for name in names), sharing=SharingOptions(policy))
    if labels is not None:
        made.nodes.replace([Node("n", labels)])
    return made


PAGE = hami("p", "a", 30, 1000, 4000) + hami("p", "b", 40, 2000, 8000)


class Case(NamedTuple):
    page: str
    metric: str
    says: float | str
    where: str = ""


SUMS = {
    "utilisation": Case(PAGE, BUSY, 70),
    "utilisation within what a device has": Case(
        own(UTIL, 60, "p", "a") + own(UTIL, 55, "p", "b"), BUSY, 100
    ),
    "used memory": Case(PAGE, "gpu_memory_used_bytes", 3000),
    "used memory of both limits": Case(PAGE, "gpu_memory_utilization", 25),
    "headroom of both": Case(PAGE, "gpu_memory_headroom_bytes", 9000),
    "the exporter's own name": Case(PAGE, UTIL, 70),
    "one device all the same": Case(PAGE, "gpu_count", 1),
    "one container where it is selected": Case(PAGE, BUSY, 30, "container=a"),
    "two devices are a mean": Case(PAGE + own(UTIL, 10, "p", "a", uuid="GPU-1"), BUSY, 40),
    "a container that has not touched the device adds nothing": Case(
        own(UTIL, 30, "p", "a"), BUSY, 30
    ),
}


@pytest.mark.parametrize("labels", [None, REPLICAS], ids=["alone", "shared by the node's label"])
@pytest.mark.parametrize("case", SUMS.values(), ids=SUMS)
def test_containers_of_a_pod_on_one_device_are_added_up(
    case: Case, labels: dict[str, str] | None
) -> None:
    lab = world("p", labels=labels)
    lab.scrape(case.page, 100.0, node="n")
    where = f"attribution=exact,{case.where}".rstrip(",")
    assert lab.value("p", case.metric, 100.0, where) == case.says


def test_a_sum_is_as_old_as_its_oldest_part_and_names_no_single_container() -> None:
    lab = world("p")
    lab.scrape(own(UTIL, 30, "p", "a") + own(UTIL, 40, "p", "b"), 100.0, node="n")
    lab.scrape(own(UTIL, 50, "p", "b"), 105.0, node="n")
    answer = reading(lab.read("p", BUSY, 105.0))
    assert (answer.value, answer.time) == (75.0, 100.0)
    assert "container" not in answer.devices[0].labels
    assert lab.value("p", BUSY, 165.0) == 45.0


def test_an_unnamed_sharer_does_not_get_the_containers_of_another_pod() -> None:
    lab = world("p", "q", labels=REPLICAS)
    lab.scrape(PAGE, 100.0, node="n")
    assert lab.value("p", BUSY, 100.0) == 70.0
    assert isinstance(lab.value("q", BUSY, 100.0), str)


def test_a_container_sample_takes_precedence_over_the_device_sample() -> None:
    lab = world("p", "q", labels=REPLICAS)
    dcgm = row("DCGM_FI_DEV_GPU_UTIL", 90) + row("DCGM_FI_DEV_POWER_USAGE", 300)
    for time in (100.0, 105.0):
        lab.scrape(PAGE, time, node="n", origin="hami")
        lab.scrape(dcgm, time + 2, node="n", origin="dcgm")
        assert lab.value("p", BUSY, time + 2, "attribution=exact") == 70.0
    assert lab.value("p", "gpu_power_watts", 107.0, "attribution=copied") == 300.0
    assert lab.value("q", BUSY, 107.0, "attribution=copied") == 90.0


def test_a_node_has_the_sum_of_all_containers_without_a_device_sample() -> None:
    lab = world("p", "q")
    lab.scrape(PAGE + own(UTIL, 20, "q", "c"), 100.0, node="n")
    assert said(lab.node("n", BUSY, 100.0)) == 90.0
    lab.scrape(row("DCGM_FI_DEV_GPU_UTIL", 81), 99.0, node="n", origin="dcgm")
    assert said(lab.node("n", BUSY, 100.0)) == 81.0


def test_memory_weights_include_all_containers_of_a_pod() -> None:
    lab = world("p", "q", policy=SharingPolicy.MEMORY)
    lab.scrape(PAGE + hami("q", "c", 10, 1000, 4000), 100.0, node="n", origin="hami")
    lab.scrape(row("DCGM_FI_DEV_POWER_USAGE", 400), 100.0, node="n", origin="dcgm")
    assert lab.value("p", "gpu_power_watts", 100.0, "attribution=split") == 300.0
    assert lab.value("q", "gpu_power_watts", 100.0) == 100.0
