"""Which pods hold a GPU though no sample, or no resource of a known name, says so directly."""

from __future__ import annotations

import pytest

from adapter.answers.api.expectedpods import expected_pods
from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Owner
from apiservice.runtime.steps import at_once
from tests.adapter.world import CATALOG, ONE_GPU, World, make_pod, reading, row, said

UTIL = "DCGM_FI_DEV_GPU_UTIL"
BUSY = "gpu_utilization"
GROUP = {"runai-gpu-group": "7c1f"}
LABELS = {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"}


def cpx(partition: int, pod: str, value: float) -> str:
    labels = (
        f'gpu_id="0",gpu_uuid="u-1",gpu_partition_id="{partition}",'
        f'gpu_compute_partition_type="cpx",hostname="n",pod="{pod}",namespace="ml",'
        'container="server",xcc_index="0"'
    )
    return f"gpu_gfx_busy_instantaneous{{{labels}}} {value}\n"


def test_a_partition_of_the_mixed_strategy_has_its_own_value() -> None:
    gpus = {"amd.com/cpx_nps4": 1}
    world = World(*(make_pod(name, gpus=gpus, node="n") for name in ("a", "b")))
    world.scrape(cpx(0, "a", 80) + cpx(1, "b", 20), 100.0, node="n")
    assert (world.value("a", BUSY, 101.0), world.value("b", BUSY, 101.0)) == (80.0, 20.0)


@pytest.mark.parametrize(
    ("extended", "claims", "expected"),
    [
        ({"acme.com/accelerator": 1}, False, 44.0),
        ({}, True, 44.0),
        ({"rdma/hca": 1}, False, "no_gpu_in_spec"),
        ({}, False, "no_gpu_in_spec"),
    ],
    ids=str,
)
def test_a_resource_whose_pods_an_exporter_names_stands_for_a_gpu(
    extended: dict[str, int], expected: float | str, *, claims: bool
) -> None:
    world = World(make_pod("p", gpus={}, extended=extended, claims=claims, node="n"))
    world.scrape(row(UTIL, 44, "p"), 100.0, node="n")
    assert world.value("p", BUSY, 101.0) == expected
    (pod,) = world.pods.values()
    assert world.store.snapshot.holds(pod) is isinstance(expected, float)


def test_a_claim_that_no_sample_names_has_a_reason_of_its_own() -> None:
    world = World(make_pod("a", node="n"), make_pod("nic", gpus={}, claims=True, node="n"))
    world.scrape(row(UTIL, 44, "a") + row(UTIL, 3, uuid="GPU-1"), 100.0, node="n")
    assert world.value("nic", BUSY, 101.0) == "claim_not_named"
    nic = next(pod for pod in world.pods.values() if pod.claims)
    assert not world.store.snapshot.holds(nic)
    assert nic.ref not in at_once(world.store.snapshot.on_pages())


def test_a_sum_lacks_no_pod_of_a_workload_whose_claims_are_of_gpus() -> None:
    above = Owner("apps/v1", "StatefulSet", "llm")
    a, b = (make_pod(name, gpus={}, claims=True, owner=above, node="n") for name in "ab")
    nic = make_pod("nic", gpus={}, claims=True, node="n")
    world = World(a, b, nic)
    metric, pods = CATALOG.metrics[BUSY], (a, b, nic)
    assert at_once(expected_pods(pods, metric, world.store.snapshot)) == []
    world.scrape(row(UTIL, 44, "a"), 100.0, node="n")
    assert at_once(expected_pods(pods, metric, world.store.snapshot)) == [a, b]


def fractions(**more: object) -> World:
    return World(
        make_pod("a", gpus={}, labels=GROUP, node="n"),
        make_pod("b", gpus={}, labels=GROUP, node="n"),
        make_pod("other", gpus={}, labels={"runai-gpu-group": "9"}, node="n"),
        make_pod("elsewhere", gpus={}, labels=GROUP, node="m"),
        make_pod("reserved", labels=GROUP, node="n"),
        **more,  # type: ignore[arg-type]  # keyword arguments of World
    )


def test_pods_of_a_gpu_group_share_the_device_of_its_reservation_pod() -> None:
    world = fractions()
    world.scrape(row(UTIL, 70, "reserved"), 100.0, node="n")
    for name in ("a", "b"):
        (part,) = reading(world.read(name, BUSY, 101.0)).devices
        shown = (part.value, part.attribution, part.evidence, part.sharers)
        assert shown == (70.0, "copied", "reservation_pod", 2)
    assert world.value("other", BUSY, 101.0) == "reservation_pod_not_named"
    assert world.value("elsewhere", BUSY, 101.0) == "no_exporter_on_node"
    assert world.store.sharing_nodes["reservation_pod"] == 1


def test_the_device_of_a_gpu_group_is_divided_among_its_pods_only() -> None:
    world = fractions(sharing=SharingOptions(SharingPolicy.EQUAL))
    world.scrape(row(UTIL, 70, "reserved"), 100.0, node="n")
    assert (world.value("a", BUSY, 101.0), world.value("b", BUSY, 101.0)) == (35.0, 35.0)


def test_a_group_without_a_named_reservation_pod_has_no_value() -> None:
    world = fractions()
    world.scrape(row(UTIL, 70) + row(UTIL, 5, "x", uuid="GPU-1"), 100.0, node="n")
    assert world.value("a", BUSY, 101.0) == "reservation_pod_not_named"


@pytest.mark.parametrize("key", ["runai-gpu-group", "runai-gpu-group/1"])
def test_a_pod_that_labels_itself_into_a_group_does_not_lend_its_device_to_it(key: str) -> None:
    world = fractions()
    forged = {key: GROUP["runai-gpu-group"]}
    world.put(make_pod("forger", namespace="forger", labels=forged, node="n"))
    own = row(UTIL, 0, "forger", uuid="GPU-1").replace('"ml"', '"forger"')
    world.scrape(row(UTIL, 70, "reserved") + own, 100.0, node="n")
    assert world.value("a", BUSY, 101.0) == "reservation_pod_not_named"
    assert said(world.read("forger", BUSY, 101.0, namespace="forger")) == 0.0


def test_the_only_pod_of_a_node_with_one_gpu_has_its_value() -> None:
    world = World(make_pod("p", node="n"), nodes={"n": LABELS})
    world.scrape(row(UTIL, 83), 100.0, node="n")
    (part,) = reading(world.read("p", BUSY, 101.0)).devices
    assert (part.value, part.attribution, part.labels["attribution"]) == (
        83.0,
        "derived",
        "derived",
    )
    assert at_once(world.store.attributions())["derived"] == 1
    world.scrape(row(UTIL, 40), 130.0, node="n")
    assert world.value("p", BUSY, 131.0) != 83.0


def test_a_nodes_capacity_states_its_devices_too() -> None:
    world = World(make_pod("p", node="n"))
    world.nodes.replace([Node("n", {}, {"nvidia.com/gpu": 1})])
    world.scrape(row(UTIL, 83), 100.0, node="n")
    assert world.value("p", BUSY, 101.0) == 83.0
    world.nodes.replace([Node("n", {}, {"nvidia.com/gpu": 2})])
    assert world.value("p", BUSY, 102.0) == "exporter_names_no_pod"


UNSURE = {
    "the node does not say how many it has": World(make_pod("p", node="n"), nodes={"n": {}}),
    "the node has two": World(make_pod("p", node="n"), nodes={"n": {"nvidia.com/gpu.count": "2"}}),
    "another pod holds one": World(
        make_pod("p", node="n"), make_pod("q", node="n"), nodes={"n": LABELS}
    ),
    "another pod that has not started holds one": World(
        make_pod("p", node="n"), make_pod("q", node="n", phase="Pending"), nodes={"n": LABELS}
    ),
    "another pod that ends may still hold it": World(
        make_pod("p", node="n"), make_pod("q", node="n", deleting=True), nodes={"n": LABELS}
    ),
    "another pod has a claim": World(
        make_pod("p", node="n"), make_pod("q", node="n", gpus={}, claims=True), nodes={"n": LABELS}
    ),
    "the pod requests two": World(
        make_pod("p", node="n", gpus={"nvidia.com/gpu": 2}), nodes={"n": LABELS}
    ),
}


@pytest.mark.parametrize("name", UNSURE)
def test_nothing_is_derived_in_doubt(name: str) -> None:
    world = UNSURE[name]
    world.scrape(row(UTIL, 83), 100.0, node="n")
    assert isinstance(world.value("p", BUSY, 101.0), str)


@pytest.mark.parametrize(
    ("gpus", "labels"),
    [({"nvidia.com/gpu.shared": 1}, {}), (ONE_GPU, {"nvidia.com/gpu.replicas": "4"})],
    ids=str,
)
def test_a_device_that_others_may_get_is_shared(
    gpus: dict[str, int], labels: dict[str, str]
) -> None:
    world = World(make_pod("p", node="n", gpus=gpus), nodes={"n": LABELS | labels})
    world.scrape(row(UTIL, 83), 100.0, node="n")
    (part,) = reading(world.read("p", BUSY, 101.0)).devices
    assert part.attribution == "copied"


def test_two_devices_on_the_page_are_two() -> None:
    world = World(make_pod("p", node="n"), nodes={"n": LABELS})
    world.scrape(row(UTIL, 83) + row(UTIL, 5, uuid="GPU-1"), 100.0, node="n")
    assert world.value("p", BUSY, 101.0) == "exporter_names_no_pod"


def test_a_value_is_derived_no_more_once_a_second_pod_comes() -> None:
    world = World(make_pod("p", node="n"), nodes={"n": LABELS})
    world.scrape(row(UTIL, 83), 100.0, node="n")
    assert world.value("p", BUSY, 101.0) == 83.0
    world.put(make_pod("q", node="n"))
    assert world.value("p", BUSY, 102.0) == "exporter_names_no_pod"


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {"kubevirt.io": "virt-launcher"}},
        {"owner": Owner("kubevirt.io/v1", "VirtualMachineInstance", "vm")},
        {"containers": ("compute",)},
    ],
    ids=str,
)
def test_nobody_sees_the_gpu_of_a_virtual_machine(more: dict[str, object]) -> None:
    gpus = {"nvidia.com/GA102GL_A10": 1}
    pod = make_pod("virt-launcher-vm-x", gpus=gpus, node="n", **more)  # type: ignore[arg-type]  # keyword arguments
    world = World(pod)
    world.scrape(row(UTIL, 3, uuid="GPU-1"), 100.0, node="n")
    assert world.value("virt-launcher-vm-x", BUSY, 101.0) == "passed_to_virtual_machine"


def test_the_exporter_of_neuron_names_no_pod() -> None:
    world = World(make_pod("p", gpus={"aws.amazon.com/neuron": 1}, node="n"), make_pod("q"))
    assert world.value("p", BUSY, 101.0) == "vendor_names_no_pod"
    mixed = {"aws.amazon.com/neuron": 1, **ONE_GPU}
    world.put(make_pod("p", gpus=mixed, node="n"))
    assert world.value("p", BUSY, 101.0) == "no_exporter_on_node"
