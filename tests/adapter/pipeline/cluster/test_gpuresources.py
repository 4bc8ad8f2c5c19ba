"""Which resources stand for a GPU, and in which unit."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.gpuresources import (
    GpuResources,
    ResourceUnit,
    is_known_other,
    unit_of,
    vendor_of,
    whole_devices,
)

DEVICE, SHARE, PART = ResourceUnit
KNOWN: dict[str, tuple[str, ResourceUnit]] = {
    "nvidia.com/gpu": ("nvidia", DEVICE),
    "nvidia.com/gpu.shared": ("nvidia", SHARE),
    "nvidia.com/mig-1g.5gb": ("nvidia", DEVICE),
    "nvidia.com/mig-1g.10gb.me": ("nvidia", DEVICE),
    "nvidia.com/mig-1g.5gb.shared": ("nvidia", SHARE),
    "nvidia.com/a100": ("nvidia", SHARE),
    "nvidia.com/GA102GL_A10": ("nvidia", SHARE),
    "nvidia.com/NVIDIA_A10-12Q": ("nvidia", SHARE),
    "nvidia.com/pgpu": ("nvidia", SHARE),
    "nvidia.com/gpumem": ("nvidia", PART),
    "nvidia.com/gpumem-percentage": ("nvidia", PART),
    "nvidia.com/gpucores": ("nvidia", PART),
    "amd.com/gpu": ("amd", DEVICE),
    "amd.com/cpx_nps4": ("amd", DEVICE),
    "amd.com/spx_nps1": ("amd", DEVICE),
    "amd.com/dpx": ("amd", DEVICE),
    "amd.com/gpu_vf": ("amd", SHARE),
    "gpu.intel.com/i915": ("intel", SHARE),
    "gpu.intel.com/xe": ("intel", SHARE),
    "gpu.intel.com/millicores": ("intel", PART),
    "gpu.intel.com/memory.max": ("intel", PART),
    "gpu.intel.com/tiles": ("intel", PART),
    "habana.ai/gaudi": ("habana", DEVICE),
    "google.com/tpu": ("google", DEVICE),
    "huawei.com/Ascend910": ("huawei", DEVICE),
    "huawei.com/Ascend310P": ("huawei", DEVICE),
    "huawei.com/Ascend910A-memory": ("huawei", PART),
    "huawei.com/Ascend910B4-1": ("huawei", DEVICE),
    "huawei.com/Ascend310P-VPro": ("huawei", DEVICE),
    "huawei.com/Ascend310P-2c": ("huawei", SHARE),
    "huawei.com/Ascend310P-4c.3cpu.ndvpp": ("huawei", SHARE),
    "huawei.com/Ascend910-16c": ("huawei", SHARE),
    "huawei.com/Ascend910-vir05_1c_16g": ("huawei", SHARE),
    "huawei.com/npu": ("huawei", DEVICE),
    "huawei.com/npu-core": ("huawei", PART),
    "aws.amazon.com/neuron": ("aws", DEVICE),
    "aws.amazon.com/neurondevice": ("aws", DEVICE),
    "aws.amazon.com/neuroncore": ("aws", SHARE),
    "volcano.sh/vgpu-number": ("", SHARE),
    "volcano.sh/vgpu-memory": ("", PART),
    "volcano.sh/vgpu-cores": ("", PART),
    "microsoft.com/directx": ("", SHARE),
}
OTHERS = (
    "cpu",
    "memory",
    "hugepages-2Mi",
    "nvidia.com/hostdev",
    "nvidia.com/rdma_shared_gpu_nics",
    "nvidia.com/mlnxnics",
    "nvidia.com/bf3-p0-vfs",
    "nvidia.com/cx7",
    "amd.com/nic",
    "amd.com/vnic",
    "amd.com/xilinx_u250_gen3x16_xdma_shell-0",
    "gpu.intel.com/i915_monitoring",
    "google.com/rdma",
    "huawei.com/roce",
    "aws.amazon.com/efa",
    "rdma/hca",
    "xnvidia.com/gpu",
    "acme.com/gpu",
)


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_resource_has_a_vendor_and_a_unit(name: str) -> None:
    assert GpuResources().is_gpu(name)
    assert (vendor_of(name), unit_of(name)) == KNOWN[name]
    assert GpuResources().is_device(name) is (KNOWN[name][1] is not PART)


@pytest.mark.parametrize("name", OTHERS)
def test_a_network_card_and_what_is_unknown_stand_for_no_gpu(name: str) -> None:
    assert not GpuResources().is_gpu(name)
    assert GpuResources().devices({name: 2}) == {}


def test_what_is_known_to_be_another_kind_counts_if_it_is_listed_literally() -> None:
    assert GpuResources(("nvidia.com/hostdev",)).is_gpu("nvidia.com/hostdev")
    assert not GpuResources(("nvidia.com/*",)).is_gpu("nvidia.com/hostdev")


@pytest.mark.parametrize(
    ("requested", "devices"),
    [
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 8000}, 1),
        ({"gpu.intel.com/i915": 1, "gpu.intel.com/millicores": 500}, 1),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}, 1),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpucores": 30, "cpu": 8}, 2),
        ({"nvidia.com/gpumem": 8000}, 1),
        ({"nvidia.com/gpumem": 8000, "nvidia.com/gpucores": 30}, 1),
        ({"nvidia.com/gpu": 1, "amd.com/gpu": 2}, 3),
        ({"nvidia.com/gpu": 0}, 0),
        ({}, 0),
    ],
    ids=str,
)
def test_parts_of_a_device_do_not_count_as_devices(requested: dict[str, int], devices: int) -> None:
    resources = GpuResources()
    assert sum(resources.devices(requested).values()) == devices
    milli = {name: 1000 * count for name, count in requested.items()}
    assert sum(resources.devices(milli, 1000).values()) == devices


def test_units_of_shared_devices_do_not_count_as_devices_of_ones_own() -> None:
    assert whole_devices({"nvidia.com/mig-1g.5gb.shared": 2}) == 0
    assert whole_devices({"nvidia.com/gpu.shared": 2, "gpu.intel.com/i915": 2}) == 0
    assert whole_devices({"nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpucores": 30}) == 2


def test_a_device_class_of_a_network_card_is_known() -> None:
    assert is_known_other("mlx5-rdma")
    assert is_known_other("dranet")
    assert is_known_other("compute-domain-daemon.nvidia.com")
    assert not is_known_other("gpu.nvidia.com")
    assert not is_known_other("one-gpu")


def test_any_number_of_names_is_answered() -> None:
    resources = GpuResources()
    assert not any(resources.is_gpu(f"tenant.example/{number}") for number in range(5000))
    assert resources.is_gpu("nvidia.com/gpu")
