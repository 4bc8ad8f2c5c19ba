"""What the labels of nodes say, vendor by vendor and cloud by cloud."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.pipeline.cluster.nodelabels import facts

CASES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "no labels": ({}, {"vendor": "", "model": "", "shared": False, "memory": None}),
    "GPU feature discovery": (
        {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "40960",
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/mig.strategy": "none",
        },
        {
            "vendor": "nvidia",
            "model": "NVIDIA-A100-SXM4-40GB",
            "memory": 40960,
            "counts": {"nvidia.com/gpu": 8},
            "replicas": {},
            "shared": False,
            "mig_strategy": "",
        },
    ),
    "time-slicing": (
        {
            "nvidia.com/gpu.product": "Tesla-T4-SHARED",
            "nvidia.com/gpu.replicas": "4",
            "nvidia.com/gpu.sharing-strategy": "time-slicing",
        },
        {
            "model": "Tesla-T4",
            "suffix": True,
            "replicas": {"nvidia.com/gpu": 4},
            "strategy": "time-slicing",
            "shared": True,
        },
    ),
    "the single MIG strategy": (
        {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
            "nvidia.com/mig.strategy": "single",
        },
        {"model": "NVIDIA-A100-SXM4-40GB", "mig_strategy": "single", "suffix": True},
    ),
    "the mixed MIG strategy": (
        {"nvidia.com/mig-1g.5gb.count": "7", "nvidia.com/mig-1g.5gb.replicas": "2"},
        {
            "counts": {"nvidia.com/mig-1g.5gb": 7},
            "replicas": {"nvidia.com/mig-1g.5gb": 2},
            "shared": True,
        },
    ),
    "numbers that are none": (
        {"nvidia.com/gpu.replicas": "many", "nvidia.com/gpu.memory": ""},
        {"replicas": {}, "memory": None, "shared": False},
    ),
    "AMD's node labeller": (
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
        {"vendor": "amd", "model": "AMD_Instinct_MI300X"},
    ),
    "Intel's rules": (
        {"gpu.intel.com/product": "Max_1550"},
        {"vendor": "intel", "model": "Max_1550"},
    ),
    "GKE": (
        {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
        {"vendor": "nvidia", "model": "nvidia-tesla-t4"},
    ),
    "EKS": (
        {"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"},
        {"vendor": "nvidia", "model": "nvidia-tesla-v100"},
    ),
    "Karpenter": (
        {
            "karpenter.k8s.aws/instance-gpu-name": "a10g",
            "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
        },
        {"vendor": "nvidia", "model": "a10g"},
    ),
    "AKS": ({"kubernetes.azure.com/accelerator": "nvidia"}, {"vendor": "nvidia", "model": ""}),
    "AKS of old": ({"accelerator": "nvidia"}, {"vendor": "nvidia", "model": ""}),
}


@pytest.mark.parametrize(("labels", "says"), CASES.values(), ids=CASES)
def test_labels_of(labels: dict[str, str], says: dict[str, Any]) -> None:
    node_facts = facts(labels)
    assert {name: getattr(node_facts, name) for name in says} == says
