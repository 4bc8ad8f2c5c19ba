"""Samples that cannot all be right about a pod."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.reading import Absence
from apiservice.runtime.steps import at_once
from tests.adapter.prometheusscrape import TARGET, Prometheus
from tests.adapter.world import World, make_pod, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
TWO = row(UTIL, 97, "p") + row(UTIL, 11, "p", uuid="GPU-1")
MIG = 'GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"'


@pytest.mark.parametrize("where", ["", "device=GPU-1"])
def test_a_pod_that_requests_one_device_and_is_assigned_two_has_no_value(where: str) -> None:
    world = World(make_pod("p", node="n"))
    world.scrape(TWO, 100.0, node="n")
    assert world.value("p", UTIL, 100.0, where) == "more_devices_than_asked"


def test_two_replicas_of_a_shared_instance_are_not_two_devices() -> None:
    """Both may be of one instance. DCGM does not always know its profile
    (gpu-monitoring-tools#193), so the samples do not show that it is shared."""
    page = row(ENGINE, 0.6, "p", more='GPU_I_PROFILE="<<<NULL>>>",GPU_I_ID="7"')
    for resource, partial in (("mig-1g.5gb", True), ("mig-1g.5gb.shared", False)):
        world = World(make_pod("p", node="n", gpus={f"nvidia.com/{resource}": 2}))
        world.scrape(page, 100.0, node="n")
        answer = reading(world.read("p", "gpu_utilization", 100.0))
        assert (answer.value, answer.partial) == (60.0, partial)


def test_a_pod_that_requests_two_devices_has_the_mean_of_two() -> None:
    world = World(make_pod("p", node="n", gpus={"nvidia.com/gpu": 2}))
    world.scrape(TWO, 100.0, node="n")
    assert world.value("p", UTIL, 100.0) == 54.0


def test_the_device_whose_sample_has_the_pods_uid_is_accepted() -> None:
    world = World(make_pod("p", node="n"))
    page = row(UTIL, 97, "p") + row(UTIL, 11, "p", uuid="GPU-1", more='pod_uid="uid"')
    world.scrape(page, 100.0, node="n")
    assert world.value("p", UTIL, 100.0) == 11.0


def test_a_device_of_the_pods_predecessor_is_rejected_beside_a_newer_one() -> None:
    world = World(make_pod("p", node="n", uid="old"))
    world.scrape(row(UTIL, 97, "p"), 100.0, node="n")
    world.put(make_pod("p", node="n", uid="new", born=101.0))
    world.scrape(TWO, 105.0, node="n")
    assert world.value("p", UTIL, 105.0) == 11.0


def test_a_device_that_is_unassigned_on_the_newest_page_is_rejected() -> None:
    world = World(make_pod("p", node="n"))
    world.scrape(row(UTIL, 97, "p"), 100.0, node="n")
    world.scrape(row(UTIL, 97) + row(UTIL, 11, "p", uuid="GPU-1"), 115.0, node="n")
    assert world.value("p", UTIL, 115.0) == 11.0


def test_the_newest_pages_of_two_exporters_are_both_rejected() -> None:
    world = World(make_pod("p", node="n"))
    world.scrape(row(UTIL, 97, "p"), 100.0, node="n", origin="a")
    world.scrape(row(UTIL, 11, "p", uuid="GPU-1"), 115.0, node="n", origin="b")
    assert world.value("p", UTIL, 115.0) == "more_devices_than_asked"


def test_a_pod_that_takes_over_a_device_gets_its_value() -> None:
    world = World(make_pod("p", node="n", uid="old"))
    world.scrape(row(UTIL, 97, "p"), 100.0, node="n")
    world.put(make_pod("p", node="n", uid="new", born=101.0))
    world.scrape(row(UTIL, 50, "p"), 105.0, node="n")
    assert world.value("p", UTIL, 105.0) == 50.0


def test_a_resource_claim_does_not_limit_the_devices() -> None:
    world = World(make_pod("p", node="n", claims=True))
    world.scrape(TWO, 100.0, node="n")
    assert world.value("p", UTIL, 100.0) == 54.0


def test_two_exporters_may_use_different_names_for_one_device() -> None:
    world = World(make_pod("p", node="n"))
    world.scrape(row(UTIL, 60, "p"), 100.0, node="n", origin="a")
    other = 'containerGpuDutyCycle{gpuId="x",hostname="n",namespace="ml",pod="p",gpu="0"} 60\n'
    world.scrape(other, 100.0, node="n", origin="b")
    assert world.value("p", "gpu_utilization", 100.0) == 60.0


@pytest.mark.parametrize("label", ["cluster", "cluster_name", "k8s_cluster_name"])
@pytest.mark.parametrize("honor", [False, True])
def test_a_pod_named_by_samples_of_two_clusters_has_no_value(label: str, honor: bool) -> None:
    """Both exporters have the same address, as nodes of two clusters may."""
    exporter = make_pod(TARGET["pod"], namespace=TARGET["namespace"], gpus={})
    world = World(make_pod("p"), exporter)
    engine = Prometheus(world.catalog, honor=honor)
    engine.scrape(row(UTIL, 11, "p"), 100.0, {**TARGET, label: "east"})
    engine.answer(world, 100.0)
    assert world.value("p", UTIL, 100.0) == 11.0
    engine.scrape(row(UTIL, 11, "p"), 115.0, {**TARGET, label: "east"})
    engine.scrape(row(UTIL, 97, "p", uuid="GPU-1"), 115.0, {**TARGET, label: "west"})
    engine.answer(world, 115.0)
    detail = "east, west: select one with source.prometheus.matchers"
    assert world.read("p", UTIL, 115.0) == Absence("several_clusters", detail)


def test_a_server_described_by_samples_of_two_clusters_has_no_value() -> None:
    world = World(make_pod("llm", gpus={}))
    engine = Prometheus(world.catalog, honor=False)
    for cluster in ("east", "west"):
        target = {"instance": "10.0.0.7:8000", "pod": "llm", "namespace": "ml", "cluster": cluster}
        engine.scrape('vllm:num_requests_waiting{engine="0",model_name="m"} 3\n', 100.0, target)
    engine.answer(world, 100.0)
    assert world.value("llm", "inference_requests_waiting", 100.0) == "several_clusters"


def test_samples_without_a_cluster_belong_to_the_cluster_of_the_others() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p", more='cluster="east"'), 100.0, origin="a")
    world.scrape(row(UTIL, 50, "p"), 100.0, origin="b")
    assert world.value("p", UTIL, 100.0) == 50.0


def test_a_sample_of_a_board_with_instances_belongs_to_no_pod() -> None:
    world = World(make_pod("p", node="n", gpus={"nvidia.com/mig-1g.5gb": 1}))
    page = row(ENGINE, 0.9, "p") + row(ENGINE, 0.2, "p", more=MIG)
    page += row(POWER, 300, "p") + row(POWER, 300, "p", more=MIG)
    world.scrape(page, 100.0, node="n")
    assert world.value("p", "gpu_utilization", 100.0) == 20.0
    assert world.value("p", "gpu_count", 100.0) == 1.0
    assert world.value("p", "gpu_power_watts", 100.0) == 300.0


def test_a_pod_named_only_by_the_sample_of_a_board_has_no_value() -> None:
    world = World(make_pod("p", node="n"), make_pod("q", node="n"))
    world.scrape(row(ENGINE, 0.9, "p") + row(ENGINE, 0.2, "q", more=MIG), 100.0, node="n")
    assert world.value("p", "gpu_utilization", 100.0) == "board_of_mig_instances"
    assert world.value("q", "gpu_utilization", 100.0) == 20.0
    assert at_once(world.store.attributions())["exact"] == 1
