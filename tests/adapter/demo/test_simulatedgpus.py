"""Devices that are not there keep their holders, and share a Deployment's work evenly."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.demo.simulatedgpus import Load, SimulatedGpus
from adapter.pipeline.cluster.pod import Pod, PodFields, PodRef
from adapter.pipeline.exposition.page import parse

SEVEN = [*((str(gpu), "a", 10) for gpu in range(7)), ("7", "b", 10)]
INFERENCE = Load("default", {"app": "inference"}, 140.0)


def pod(name: str, *, node: str = "worker", gpus: int = 1, **more: Any) -> Pod:
    fields: dict[str, Any] = {
        "ref": PodRef("default", name),
        "uid": name,
        "node": node,
        "ip": "10.0.0.1",
        "phase": "Running",
        "ready": True,
        "deleting": False,
        "labels": {"app": "inference"},
        "annotations": {},
        "owner": None,
        "containers": ("main",),
        "gpus": {"nvidia.com/gpu": gpus} if gpus else {},
        "claims": False,
        "ports": (),
    }
    return Pod.of(PodFields(**fields | more))


def busy(gpus: SimulatedGpus) -> list[tuple[str, str, float]]:
    """(GPU, pod, percent) of the GPUs that are assigned."""
    return [
        (row.labels["gpu"], row.labels["pod"], row.value)
        for row in parse(gpus.page(), time=1.0).samples
        if row.name == "DCGM_FI_DEV_GPU_UTIL" and "pod" in row.labels
    ]


@pytest.mark.parametrize(
    ("pods", "seen"),
    [
        ([], []),
        ([pod("a")], [("0", "a", 100)]),
        ([pod("a"), pod("b")], [("0", "a", 70), ("1", "b", 70)]),
        ([pod("a"), pod("b", node="other")], [("0", "a", 70)]),
        ([pod("a", gpus=2)], [("0", "a", 70), ("1", "a", 70)]),
        ([pod("a"), pod("b", ready=False)], [("0", "a", 100), ("1", "b", 0)]),
        ([pod("a"), pod("b", deleting=True)], [("0", "a", 100), ("1", "b", 0)]),
        ([pod("a"), pod("b", phase="Succeeded")], [("0", "a", 100)]),
        ([pod("a"), pod("b", gpus=0)], [("0", "a", 100)]),
        ([pod("a"), pod("b", labels={"app": "x"})], [("0", "a", 100), ("1", "b", 0)]),
        ([pod("a"), pod("b", ref=PodRef("x", "b"))], [("0", "a", 100), ("1", "b", 0)]),
        ([pod("a", gpus=7), pod("b", gpus=7)], SEVEN),
    ],
    ids=[
        "nobody",
        "one takes it all, and no more than all",
        "two share it",
        "a pod elsewhere has its share and no row here",
        "several GPUs of a pod",
        "a pod that is not ready works on nothing",
        "nor does one that goes",
        "a finished pod holds nothing",
        "a pod without GPU",
        "a pod of another workload",
        "a pod of another namespace",
        "more wanted than there are",
    ],
)  # fmt: skip
def test_ready_pods_share_the_work(pods: list[Pod], seen: list[tuple[str, str, float]]) -> None:
    gpus = SimulatedGpus("worker")
    gpus.update(pods, [INFERENCE])
    assert busy(gpus) == seen


def test_a_pod_keeps_its_gpu_while_others_come_and_go() -> None:
    gpus = SimulatedGpus("worker")
    gpus.update([pod("a"), pod("b")], [])
    gpus.update([pod("b"), pod("c"), pod("d")], [])
    assert [(gpu, name) for gpu, name, _ in busy(gpus)] == [("0", "c"), ("1", "b"), ("2", "d")]


def test_without_a_stated_load_a_gpu_is_idle() -> None:
    gpus = SimulatedGpus("worker")
    gpus.update([pod("a")], [])
    assert busy(gpus) == [("0", "a", 0)]


def test_the_page_is_one_of_dcgm_exporter() -> None:
    gpus = SimulatedGpus("worker")
    gpus.update([pod("a")], [INFERENCE])
    labels = (
        f'gpu="0",UUID="{_uuid(gpus)}",pci_bus_id="00000000:17:00.0",device="nvidia0",'
        'modelName="NVIDIA H100 80GB HBM3",Hostname="worker",DCGM_FI_DRIVER_VERSION="580.105.08",'
        'container="main",namespace="default",pod="a"'
    )
    assert f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 100\n" in gpus.page().decode()


def _uuid(gpus: SimulatedGpus) -> str:
    return parse(gpus.page(), time=1.0).samples[0].labels["UUID"]
