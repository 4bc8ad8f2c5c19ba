"""The device that the labels of a sample name."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog import engines, triton
from adapter.pipeline.catalog.serverkind import ONE_MODEL
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.device import Device, device, host, part

CASES = {
    "whole": ({"UUID": "GPU-1", "gpu": "0"}, ("GPU-1", "GPU-1", False)),
    "legacy": ({"uuid": "GPU-1", "gpu": "0"}, ("GPU-1", "GPU-1", False)),
    "instance": (
        {"UUID": "GPU-1", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.5gb"},
        ("GPU-1/7", "GPU-1", True),
    ),
    "instance without a profile": (
        {"UUID": "GPU-1", "GPU_I_ID": "6", "GPU_I_PROFILE": "<<<NULL>>>"},
        ("GPU-1/6", "GPU-1", True),
    ),
    "instance under DRA": (
        {"UUID": "GPU-1", "dra_mig_device_uuid": "MIG-2", "dra_mig_profile": "1g.12gb"},
        ("GPU-1/MIG-2", "GPU-1", True),
    ),
    "compute instance": (
        {"UUID": "GPU-1", "GPU_I_ID": "7", "GPU_CI_ID": "1"},
        ("GPU-1/7/1", "GPU-1", True),
    ),
    "no uuid": ({"gpu": "3", "Hostname": "n1"}, ("n1/3", "n1/3", False)),
    "no uuid and no host": ({"gpu": "3"}, ("origin/3", "origin/3", False)),
    "zeros for a uuid": (
        {"gpu_uuid": "00000000-0000-0000-0000-000000000000", "gpu_id": "0", "hostname": "n1"},
        ("n1/0", "n1/0", False),
    ),
    "partition of an unknown mode": (
        {"gpu_id": "0", "gpu_partition_id": "2", "hostname": "n1"},
        ("n1/0.2", "n1/0.2", False),
    ),
    "AMD partition without a uuid": (
        {
            "gpu_id": "0",
            "gpu_partition_id": "2",
            "gpu_compute_partition_type": "cpx",
            "hostname": "n1",
        },
        ("n1/0/2", "n1/0", True),
    ),
    "AMD partition of a device with a uuid": (
        {"gpu_uuid": "a-b", "gpu_partition_id": "1", "gpu_compute_partition_type": "DPX"},
        ("a-b/1", "a-b", True),
    ),
    "AMD device that is not cut": (
        {
            "gpu_id": "2",
            "gpu_partition_id": "0",
            "gpu_compute_partition_type": "spx",
            "hostname": "n1",
        },
        ("n1/2", "n1/2", False),
    ),
    "AMD empty uuid": (
        {"gpu_uuid": "", "serial_number": "", "gpu_id": "1", "hostname": "n1"},
        ("n1/1", "n1/1", False),
    ),
    "Intel uuid": (
        {"uuid": "00000000-0000-0000-1ddb-7c1aed80a2fd", "pci_bdf": "0000:17:00.0"},
        ("00000000-0000-0000-1ddb-7c1aed80a2fd", "00000000-0000-0000-1ddb-7c1aed80a2fd", False),
    ),
    "Intel without a uuid": (
        {"pci_bdf": "0000:17:00.0", "node": "n2", "dev_file": "card1"},
        ("n2/0000:17:00.0", "n2/0000:17:00.0", False),
    ),
    "Intel, names of XPU Manager 2": (
        {"hw_id": "12-34", "pci_bdf": "b"},
        ("12-34", "12-34", False),
    ),
    "HAMi": ({"device_uuid": "GPU-7", "pod": "p"}, ("GPU-7", "GPU-7", False)),
    "HAMi, older names": ({"deviceuuid": "GPU-7", "vdeviceid": "0"}, ("GPU-7", "GPU-7", False)),
    "localhost is not a node": (
        {"gpu": "3", "Hostname": "localhost"},
        ("origin/3", "origin/3", False),
    ),
    "its domain neither": (
        {"gpu": "3", "Hostname": "localhost.localdomain"},
        ("origin/3", "origin/3", False),
    ),
    "nor is a pod's name": (
        {"gpu": "3", "hostname": "exporter-x", "pod": "exporter-x"},
        ("origin/3", "origin/3", False),
    ),
    "partition that is none": (
        {"gpu_id": "0", "gpu_partition_id": "NA", "hostname": "n1"},
        ("n1/0", "n1/0", False),
    ),
}


@pytest.mark.parametrize(("labels", "expected"), CASES.values(), ids=CASES)
def test_a_device_is_identified_by_the_labels_of_the_page(
    labels: dict[str, str], expected: tuple[str, str, bool]
) -> None:
    gpu = device(labels, "origin")
    assert gpu is not None
    assert (gpu.id, gpu.board, gpu.mig) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"gpu": "3", "Hostname": "localhost"}, "n1/3", id="localhost"),
        pytest.param({"gpu": "3", "Hostname": "dcgm-x"}, "n1/3", id="the exporter's pod"),
        pytest.param({"gpu_id": "0", "hostname": "cb76105c40d0"}, "n1/0", id="a container's"),
        pytest.param({"gpu": "3", "node": "n2"}, "n1/3", id="a pod label may be named node"),
        pytest.param({"gpu": "3"}, "n1/3", id="none"),
    ],
)
def test_an_index_identifies_a_device_on_the_exporters_node(
    labels: dict[str, str], expected: str
) -> None:
    gpu = device(labels, "origin", node="n1", exporter=PodRef("gpu", "dcgm-x"))
    assert gpu is not None
    assert gpu.id == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"Hostname": "n1"}, "n1"),
        ({"hostname": "n1"}, "n1"),
        ({"Hostname": "dcgm-x"}, ""),
        ({"Hostname": "localhost"}, ""),
        ({"node": "n2", "Hostname": "dcgm-x"}, "n2"),
        ({}, ""),
    ],
)
def test_the_host_of_a_sample_is_a_node_name_or_empty(
    labels: dict[str, str], expected: str
) -> None:
    assert host(labels, PodRef("gpu", "dcgm-x")) == expected


VLLM = {"engine": "0", "model_name": "Qwen/Qwen2.5"}
TARGET = {
    "pod": "vllm-0",
    "namespace": "ml",
    "container": "server",
    "instance": "10.0.0.5:8000",
    "job": "ml/vllm",
    "endpoint": "http",
}


@pytest.mark.parametrize(
    ("labels", "part_labels", "expected"),
    [
        pytest.param(
            VLLM, engines.VLLM_PARTS, "ml/vllm-0/engine=0,model_name=Qwen/Qwen2.5", id="vLLM"
        ),
        pytest.param(
            VLLM | TARGET,
            engines.VLLM_PARTS,
            "ml/vllm-0/engine=0,model_name=Qwen/Qwen2.5",
            id="scraped",
        ),
        pytest.param(
            VLLM | TARGET | {"team": "a", "version": "2", "model": "of the pod's label"},
            engines.VLLM_PARTS,
            "ml/vllm-0/engine=0,model_name=Qwen/Qwen2.5",
            id="scraped with a labelmap",
        ),
        pytest.param(
            {"exported_engine": "0", "engine": "of the pod's label", "model_name": "m"},
            engines.VLLM_PARTS,
            "ml/vllm-0/engine=0,model_name=m",
            id="scraped with a label of the same name",
        ),
        pytest.param(
            {"model": "m", "version": "1"},
            triton.PARTS,
            "ml/vllm-0/model=m,version=1",
            id="Triton",
        ),
        pytest.param({"version": "2"}, ONE_MODEL, "ml/vllm-0/", id="TGI"),
        pytest.param(
            {"dp_rank": "1", "tp_rank": "3", "pp_rank": "0", "model_name": "m"},
            engines.SGLANG_PARTS,
            "ml/vllm-0/dp_rank=1,model_name=m",
            id="SGLang",
        ),
        pytest.param(
            {"model": "m", "request_type": "waiting"},
            triton.PARTS,
            "ml/vllm-0/model=m",
            id="TRT-LLM",
        ),
        pytest.param(
            TARGET | {"queue": "a", "request_type": "waiting"},
            None,
            "ml/vllm-0/queue=a",
            id="a user's own row",
        ),
    ],
)
def test_a_server_part_is_identified_by_the_servers_own_labels(
    labels: dict[str, str], part_labels: frozenset[str] | None, expected: str
) -> None:
    server_part = part(labels, PodRef("ml", "vllm-0"), part_labels, {"request_type"})
    assert (server_part.id, server_part.mig) == (expected, False)


def test_the_model_of_a_part_can_be_selected() -> None:
    assert part(VLLM, PodRef("ml", "p")).model == "Qwen/Qwen2.5"


def test_a_partitions_mode_is_its_profile() -> None:
    labels = {"gpu_uuid": "a", "gpu_partition_id": "1", "gpu_compute_partition_type": "CPX"}
    assert device(labels, "") == Device("a/1", "a", "", "cpx")


def test_a_sample_without_an_identity_names_no_device() -> None:
    assert device({"pod": "p"}, "origin") is None


def test_profile_and_model_come_from_the_page() -> None:
    labels = {"UUID": "G", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.5gb", "modelName": "A100"}
    assert device(labels, "") == Device("G/7", "G", "A100", "1g.5gb")
