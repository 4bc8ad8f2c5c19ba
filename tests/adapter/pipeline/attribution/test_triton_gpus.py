"""GPU values that Triton reports about its own GPUs."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from apiservice.labels.selector import EVERYTHING
from tests.adapter.pipeline.attribution.serverscene import SCRAPES, T, serve, store
from tests.adapter.world import World, make_pod, reading, row

TRITON_GPUS = """\
nv_gpu_utilization{gpu_uuid="GPU-8"} 0.25
nv_gpu_utilization{gpu_uuid="GPU-9"} 0.75
nv_gpu_memory_used_bytes{gpu_uuid="GPU-8"} 6
nv_gpu_memory_used_bytes{gpu_uuid="GPU-9"} 2
nv_gpu_memory_total_bytes{gpu_uuid="GPU-8"} 16
nv_gpu_memory_total_bytes{gpu_uuid="GPU-9"} 16
"""
OF_ITS_GPUS = {
    "gpu_utilization": 50.0,
    "gpu_utilization_max": 75.0,
    "nv_gpu_utilization": 0.5,
    "gpu_memory_used_bytes": 8.0,
    "gpu_memory_headroom_bytes": 24.0,
    "gpu_memory_utilization": 25.0,
    "gpu_count": 2.0,
}


@pytest.mark.parametrize("metric", OF_ITS_GPUS)
@pytest.mark.parametrize("way", ["its page", "PodMonitor", "Google"])
def test_the_pod_that_serves_tritons_page_is_the_pod_of_its_gpus(way: str, metric: str) -> None:
    world = World(make_pod("llm", gpus={"nvidia.com/gpu": 2}))
    if way == "its page":
        serve(world, TRITON_GPUS)
    else:
        store(world, TRITON_GPUS, SCRAPES[way])
    assert world.value("llm", metric, T) == OF_ITS_GPUS[metric]


def test_gpu_values_of_triton_count_only_without_an_exporter() -> None:
    world = World(make_pod("llm"))
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    assert world.value("llm", "gpu_utilization", T) == 20.0
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "llm"), T)
    assert world.value("llm", "gpu_utilization", T) == 70.0
    assert world.value("llm", "gpu_count", T) == 1.0


def test_a_pod_without_a_gpu_has_no_gpu_values() -> None:
    world = World(make_pod("llm", gpus={}))
    serve(world, TRITON_GPUS)
    assert world.value("llm", "gpu_utilization", T) == "no_gpu_in_spec"


def test_a_server_that_names_another_pods_gpu_does_not_change_its_value() -> None:
    world = World(make_pod("victim", node="n1"), make_pod("llm", node="n1"))
    world.scrape(row("DCGM_FI_DEV_GPU_UTIL", 70, "victim"), T, node="n1")
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 1\n', T + 1)
    answer = reading(world.read("victim", "gpu_utilization", T + 1))
    assert (answer.value, answer.devices[0].labels["sharing"]) == (70.0, "exclusive")
    snapshot = world.store.snapshot
    (node,) = snapshot.nodes()
    assert reading(snapshot.node(node, "gpu_utilization", EVERYTHING, T + 1)).value == 70.0


def test_the_value_of_a_shared_gpu_from_triton_is_copied_to_all_pods() -> None:
    world = World(make_pod("llm", gpus={"nvidia.com/gpu.shared": 1}))
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    answer = reading(world.read("llm", "gpu_utilization", T))
    assert (answer.value, answer.devices[0].attribution.value) == (20.0, "copied")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (SharingPolicy.EQUAL, "pod_not_named"),
        (SharingPolicy.MEMORY, "pod_not_named"),
        (SharingPolicy.EXACT, "not_exact"),
    ],
)
def test_the_value_of_a_shared_gpu_from_triton_is_not_split_among_unknown_pods(
    policy: SharingPolicy, reason: str
) -> None:
    sharing = SharingOptions(policy=policy)
    world = World(make_pod("llm", gpus={"nvidia.com/gpu.shared": 1}), sharing=sharing)
    serve(world, 'nv_gpu_utilization{gpu_uuid="GPU-0"} 0.2\n')
    assert world.value("llm", "gpu_utilization", T) == reason
