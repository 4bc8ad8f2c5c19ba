"""What a pod holds of whole GPUs, and how much of that it uses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter.pipeline.attribution.gpuuse import gpu_use, held_gpus
from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.catalog.migprofile import gpu_part
from adapter.pipeline.cluster.nodelabels import capacity_type, facts
from tests.adapter.world import World, make_pod, row

T0 = 1000.0
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
SLICED = {**A100, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
SINGLE = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    "nvidia.com/mig.strategy": "single",
}
MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}

HELD = [
    ({"nvidia.com/gpu": 2}, A100, 2.0),
    ({"amd.com/gpu": 1}, MI300X, 1.0),
    ({"nvidia.com/mig-1g.5gb": 2}, A100, 2 / 7),
    ({"nvidia.com/mig-3g.20gb": 1}, A100, 3 / 7),
    ({"nvidia.com/mig-2g.12gb": 1}, {"nvidia.com/gpu.product": "NVIDIA-A30"}, 2 / 4),
    ({"nvidia.com/gpu": 1}, SINGLE, 1 / 7),
    ({"nvidia.com/gpu": 1}, SLICED, 1 / 4),
    ({"nvidia.com/gpu.shared": 2}, SLICED, 2 / 4),
    ({"nvidia.com/mig-1g.5gb": 1}, {**A100, "nvidia.com/mig-1g.5gb.replicas": "2"}, 1 / 14),
    ({"nvidia.com/gpu": 1, "nvidia.com/gpucores": 25}, A100, 1 / 4),
    ({"nvidia.com/gpu": 2, "nvidia.com/gpucores": 50}, A100, 1.0),
    ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 10}, A100, 1 / 10),
    ({"amd.com/cpx_nps4": 1}, MI300X, 1 / 8),
    ({"amd.com/dpx_nps1": 1}, MI300X, 1 / 2),
]


@pytest.mark.parametrize(("gpus", "labels", "held"), HELD, ids=[str(one[:2]) for one in HELD])
def test_a_pod_holds_its_share_of_whole_gpus(
    gpus: dict[str, int], labels: Mapping[str, str], held: float
) -> None:
    share = held_gpus(make_pod("p", gpus=gpus), facts(labels))
    assert share is not None
    assert share.gpus == pytest.approx(held)


@pytest.mark.parametrize(
    ("gpus", "labels"),
    [
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}, A100),
        ({"nvidia.com/gpu.shared": 1}, A100),
        ({"nvidia.com/gpu": 1}, {**A100, "nvidia.com/gpu.sharing-strategy": "mps"}),
        ({"gpu.intel.com/i915": 1}, {}),
        ({"amd.com/cpx_nps4": 1}, {}),
        ({}, A100),
    ],
    ids=str,
)
def test_a_share_that_nothing_shows_is_not_guessed(
    gpus: dict[str, int], labels: Mapping[str, str]
) -> None:
    assert held_gpus(make_pod("p", gpus=gpus), facts(labels)) is None


def test_a_sum_over_containers_is_not_a_share() -> None:
    parts = {"nvidia.com/gpu": 2, "nvidia.com/gpucores": 50}
    assert held_gpus(make_pod("p", gpus=parts, containers=("a", "b")), facts(A100)) is None


def use(world: World, name: str, labels: Mapping[str, str]) -> tuple[float, ...] | None:
    pod = world.index.get("ml", name)
    assert pod is not None
    parts = gpu_use(pod, facts(labels), world.read(name, "gpu_utilization", T0))
    return None if parts is None else tuple(round(part, 6) for part in parts)


def test_a_gpu_is_used_as_far_as_it_is_busy() -> None:
    world = World(make_pod("p", node="n"), nodes={"n": A100})
    world.scrape(row(UTIL, 80, "p"), T0, node="n")
    assert use(world, "p", A100) == (0.8, 0.2, 0.0)


def test_without_a_value_all_is_unknown() -> None:
    world = World(make_pod("p", node="n", gpus={"nvidia.com/gpu": 4}), nodes={"n": A100})
    assert use(world, "p", A100) == (0.0, 0.0, 4.0)


def test_the_device_without_a_value_is_unknown_and_the_others_are_not() -> None:
    world = World(make_pod("p", node="n", gpus={"nvidia.com/gpu": 2}), nodes={"n": A100})
    world.scrape(row(UTIL, 50, "p", uuid="GPU-a"), T0, node="n")
    assert use(world, "p", A100) == (0.5, 0.5, 1.0)


def test_an_instance_counts_its_part_of_the_gpu() -> None:
    pod = make_pod("p", node="n", gpus={"nvidia.com/mig-1g.5gb": 1})
    world = World(pod, nodes={"n": A100})
    mig = 'GPU_I_PROFILE="1g.5gb",GPU_I_ID="3"'
    world.scrape(row(ENGINE, 0.5, "p", more=mig), T0, node="n")
    assert use(world, "p", A100) == (round(0.5 / 7, 6), round(0.5 / 7, 6), 0.0)


@pytest.mark.parametrize(
    ("policy", "used"), [(SharingPolicy.COPY, 0.2), (SharingPolicy.EQUAL, 0.2)], ids=str
)
def test_four_pods_of_one_gpu_use_together_what_it_is_busy(
    policy: SharingPolicy, used: float
) -> None:
    names = [f"p{n}" for n in range(4)]
    pods = [make_pod(name, node="n", uid=name) for name in names]
    world = World(*pods, nodes={"n": SLICED}, sharing=SharingOptions(policy=policy))
    for second, name in enumerate(names):  # the page names one of them at a time
        world.scrape(row(UTIL, 80, name), T0 - 3 + second, node="n")
    uses = [use(world, name, SLICED) for name in names]
    assert uses == [(used, 0.05, 0.0)] * 4


def test_use_beyond_the_part_that_a_pod_holds_is_not_counted() -> None:
    pod = make_pod("p", node="n", gpus={"nvidia.com/gpu": 1, "nvidia.com/gpucores": 25})
    world = World(pod, nodes={"n": A100})
    world.scrape(row(UTIL, 90, "p"), T0, node="n")
    assert use(world, "p", A100) == (0.25, 0.0, 0.0)


def test_a_claim_holds_what_its_reading_shows_and_nothing_without() -> None:
    pod = make_pod("p", node="n", gpus={}, claims=True)
    world = World(pod, nodes={"n": A100})
    assert use(world, "p", A100) is None
    world.scrape(row(UTIL, 30, "p", uuid="GPU-a") + row(UTIL, 50, "p", uuid="GPU-b"), T0, node="n")
    assert use(world, "p", A100) == (0.8, 1.2, 0.0)


@pytest.mark.parametrize(
    ("profile", "model", "part"),
    [
        ("", "", 1.0),
        ("7g.80gb", "NVIDIA H100", 1.0),
        ("1g.6gb", "NVIDIA A30", 0.25),
        ("1g.24gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 0.25),
        ("1g.24gb", "NVIDIA H100 NVL", 1 / 7),
        ("1g.10gb+me", "NVIDIA H100", 1 / 7),
        ("1c.3g.20gb", "NVIDIA A100", None),
        ("0g.5gb", "NVIDIA A100", None),
        ("cpx", "AMD Instinct MI300A", 1 / 6),
        ("cpx", "AMD Instinct MI400", None),
        ("spx", "", 1.0),
        ("odd", "NVIDIA A100", None),
    ],
)
def test_the_part_of_a_profile(profile: str, model: str, part: float | None) -> None:
    assert gpu_part(profile, model) == (None if part is None else pytest.approx(part))


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        ({"karpenter.sh/capacity-type": "spot"}, "spot"),
        ({"karpenter.sh/capacity-type": "reserved"}, "reserved"),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "capacity-block"),
        ({"cloud.google.com/gke-spot": "true"}, "spot"),
        ({"cloud.google.com/gke-preemptible": "true"}, "spot"),
        ({"cloud.google.com/gke-provisioning": "standard"}, "on-demand"),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, "spot"),
        ({}, ""),
    ],
    ids=str,
)
def test_how_a_node_is_paid_for(labels: Mapping[str, str], word: str) -> None:
    assert capacity_type(labels) == word
