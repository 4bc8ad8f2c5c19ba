"""GPU resources: which extended resources stand for a GPU, of which vendor, and in which unit.

Every part of the program asks this module, so that one resource has one answer. The settings
(``cluster.gpu_resources``) say which names count. In the domain of a vendor of accelerators every
resource counts unless it is known to be something else, because device plugins name resources
after products (``nvidia.com/a100``, KubeVirt's ``nvidia.com/GA102GL_A10``) or partitions.

Sources of the names: NVIDIA/k8s-device-plugin (``api/config/v1/resources.go``: ``gpu``, ``mig-*``,
``.shared``), kubevirt/kubevirt-gpu-device-plugin, ROCm/k8s-device-plugin
(``resource_naming_strategy`` ``mixed``: ``amd.com/cpx_nps4``), Intel's device plugins (``i915``,
``xe``, and ``millicores``, ``memory.max``, ``tiles``, ``*_monitoring``), Project-HAMi/HAMi and
Volcano (``gpumem``, ``gpucores``, ``vgpu-number``, ``vgpu-memory``), the device plugins of Gaudi,
GKE, Ascend and Neuron. Ascend/mind-cluster: ``ascend-common/api/default_name.go`` (``npu`` is the
Ascend 950) and ``ascend-device-plugin/pkg/common/constants.go`` (virtual NPUs: ``Ascend310P-2c``,
``Ascend910-5c.1cpu.8g``, and ``npu-core`` for an amount of cores). Network cards of the same
domains: Mellanox/network-operator (``nvidia.com/hostdev``), ROCm/k8s-network-device-plugin
(``amd.com/nic``, ``amd.com/vnic``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import Final

from adapter.pipeline.cluster.nodelabels import AMD, INTEL, NVIDIA

NVIDIA_GPU: Final = "nvidia.com/gpu"
MIG_PREFIX: Final = "nvidia.com/mig-"
RENAMED_SUFFIX: Final = ".shared"
"""Suffix that NVIDIA's device plugin appends to the name of a shared resource
(``DefaultSharedResourceNameSuffix``).
"""
MEMORY_PARTS: Final = (
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "volcano.sh/vgpu-memory",
)
"""Resources by which pods request a part of a device's memory; each has its own unit."""
CORE_PARTS: Final[Mapping[str, str]] = {
    "nvidia.com/gpucores": NVIDIA_GPU,
    "volcano.sh/vgpu-cores": "volcano.sh/vgpu-number",
}
"""Resource for the percentage of each device's cores -> resource for devices; HAMi, Volcano."""

GPU_RESOURCES: Final[tuple[str, ...]] = (
    "nvidia.com/*",
    "amd.com/*",
    "gpu.intel.com/*",
    "habana.ai/*",
    "google.com/tpu",
    "huawei.com/Ascend*",
    "huawei.com/npu*",
    "aws.amazon.com/neuron*",
    "volcano.sh/vgpu-*",
    "microsoft.com/directx",
)
"""The default of ``cluster.gpu_resources``: shell patterns of extended resources."""
NAME_FORMS: Final = (
    NVIDIA_GPU,
    "nvidia.com/gpu.*",
    "nvidia.com/mig-*",
    "nvidia.com/gpumem*",
    "nvidia.com/gpucores",
    "amd.com/gpu*",
    "gpu.intel.com/*",
    "habana.ai/gaudi",
    "volcano.sh/vgpu-*",
)
"""Patterns of usual names, narrower than the default's: they show how a name is punctuated."""

_VENDORS: Final[Mapping[str, str]] = {
    "nvidia.com": NVIDIA,
    "amd.com": AMD,
    "gpu.intel.com": INTEL,
    "habana.ai": "habana",
    "google.com": "google",
    "huawei.com": "huawei",
    "aws.amazon.com": "aws",
}
"""Domain of resources -> vendor of their devices. The other domains are of programs that hand out
devices of several vendors."""

_WORD: Final = re.compile(r"[a-z0-9]+")
_OTHER: Final = re.compile(
    r".*(?:rdma|hostdev|sriov|mlnx|mellanox|roce|infiniband|nvswitch|imex|fpga|xilinx"
    r"|monitoring|compute-domain|dranet).*|[a-z]*nics?|vfs?|pfs?|ib|cx[0-9]+|bf[0-9]+|dpu"
)
"""Words of resources and device classes that are not GPUs, though the domain is a GPU vendor's:
network cards, fabrics, FPGAs, and Intel's access for monitoring, which holds no device."""
_PARTS: Final = frozenset(
    (
        *("mem", "memory", "gpumem", "core", "cores", "gpucores", "millicores", "milli"),
        *("percentage", "percent", "ratio", "tiles"),
    )
)
"""Words of resources that count parts of a device."""
_DEVICES: Final = re.compile(
    r"nvidia\.com/(?:gpu|mig-.+)|amd\.com/(?:gpu|(?:spx|dpx|tpx|qpx|cpx)(?:_nps[0-9]+)?)"
    r"|habana\.ai/gaudi[0-9]*|google\.com/tpu|huawei\.com/(?:npu|Ascend.+)"
    r"|aws\.amazon\.com/neuron(?:device)?"
)
"""Resources of which every unit is one device, MIG instance or partition of its own."""
_VIRTUAL_NPU: Final = re.compile(r"huawei\.com/[^-]+-(?:vir|[0-9]+c(?![a-z])|memory$|cores?$).*")
"""Resources by which pods request a part of an Ascend chip: by a template (``2c``,
``vir05_1c_16g``), by an amount of cores, or by memory, from which HAMi chooses the template."""


class ResourceUnit(StrEnum):
    """What one unit of a GPU resource is."""

    DEVICE = "device"
    """A device, MIG instance or partition. A pod never has two units of one."""
    SHARE = "share"
    """A device, or a share of one that other units may be of too (``.shared``, ``i915`` with
    ``sharedDevNum``, a name that is not known)."""
    PART = "part"
    """An amount of a device's memory or cores. It says nothing about the number of devices."""


@lru_cache(maxsize=1024)
def unit_of(resource: str) -> ResourceUnit:
    """Return what one unit of a GPU resource is."""
    name = resource.partition("/")[2]
    if not _PARTS.isdisjoint(_WORD.findall(name.lower())):
        return ResourceUnit.PART
    whole = _DEVICES.fullmatch(resource) and not is_hidden_partition(resource)
    whole = whole and not name.endswith(RENAMED_SUFFIX)
    return ResourceUnit.DEVICE if whole else ResourceUnit.SHARE


@lru_cache(maxsize=1024)
def is_hidden_partition(resource: str) -> bool:
    """Return whether a unit is a partition for which the exporter has the whole device's numbers.

    MIG instances and AMD's partitions have numbers of their own. Ascend's npu-exporter repeats
    those of the chip for the pod of each virtual NPU (``npu-exporter/collector/common``).
    """
    return _VIRTUAL_NPU.fullmatch(resource) is not None


def vendor_of(resource: str) -> str:
    """Return the vendor of a GPU resource's devices; empty if the name does not show it."""
    return _VENDORS.get(resource.partition("/")[0], "")


@lru_cache(maxsize=1024)
def is_known_other(name: str) -> bool:
    """Return whether a resource or device class is known to be no GPU, such as a network card."""
    lower = name.lower()
    last = lower.rpartition("/")[2]
    if "gpu" in last and "rdma" not in last:
        return False
    return any(map(_OTHER.fullmatch, (lower, *_WORD.findall(last))))


def whole_devices(requested: Mapping[str, int]) -> int:
    """Return the devices that a pod has of its own by these requests.

    Args:
        requested: GPU resource -> units. Units of shared resources are not counted: two of them
            may be of one device.
    """
    return sum(count for name, count in requested.items() if unit_of(name) is ResourceUnit.DEVICE)


def devices(requested: Mapping[str, int], per_unit: int = 1) -> dict[str, int]:
    """Return GPU resource -> devices that these requests mean, or that these amounts offer.

    A share counts as a device, so that limits are not exceeded. Parts count as one device of their
    domain if nothing of it counts devices: HAMi adds the device to such a request.

    Args:
        requested: GPU resource -> amount.
        per_unit: amount of one unit; 1000 if the amounts are thousandths.
    """
    counts: dict[str, int] = {}
    parts: dict[str, str] = {}
    for name, amount in requested.items():
        if amount <= 0:
            continue
        if unit_of(name) is ResourceUnit.PART:
            parts.setdefault(name.partition("/")[0], name)
        else:
            counts[name] = -(-amount // per_unit)
    domains = {name.partition("/")[0] for name in counts}
    return counts | {name: 1 for domain, name in parts.items() if domain not in domains}


def core_part(requested: Mapping[str, int], containers: int) -> float | None:
    """Return which part of each device's cores a pod requests (HAMi, Volcano).

    Args:
        requested: GPU resource -> units, summed over the containers.
        containers: of the pod.

    Returns:
        Above 0; None if it requests no part, or if the number is the sum of containers.
    """
    for cores, devices in CORE_PARTS.items():
        percent = requested.get(cores, 0)
        if percent and (containers == 1 or requested.get(devices) == 1):
            return percent / 100.0
    return None


class GpuResources:
    """The resources that stand for a GPU.

    Args:
        patterns: ``cluster.gpu_resources``: shell patterns. A name that is known to be something
            else counts only if it is listed literally.
    """

    def __init__(self, patterns: Iterable[str] = GPU_RESOURCES) -> None:
        self.patterns: Final = tuple(patterns)
        self._literal = frozenset(self.patterns)
        self._matches = re.compile("|".join(map(translate, self.patterns)) or r"(?!)").match
        self._known: dict[str, bool] = {}

    def is_gpu(self, resource: str) -> bool:
        """Return whether a resource stands for a GPU, or for a part of one."""
        is_gpu = self._known.get(resource)
        if is_gpu is None:
            other = resource not in self._literal and is_known_other(resource)
            is_gpu = not other and self._matches(resource) is not None
            if len(self._known) >= _REMEMBERED:
                self._known.clear()  # otherwise made-up names of one tenant would stay for ever
            self._known[resource] = is_gpu
        return is_gpu

    def is_device(self, resource: str) -> bool:
        """Return whether a unit of a resource is a device, an instance or a share of one."""
        return self.is_gpu(resource) and unit_of(resource) is not ResourceUnit.PART

    def devices(self, amounts: Mapping[str, int], per_unit: int = 1) -> dict[str, int]:
        """As :func:`devices`, of amounts of resources of any kind."""
        return devices({name: n for name, n in amounts.items() if self.is_gpu(name)}, per_unit)


_REMEMBERED: Final = 4096
"""Names whose answer is kept: pods of tenants may name any resource."""

STANDARD: Final = GpuResources()
"""The resources of the default settings, for programs that read none."""
