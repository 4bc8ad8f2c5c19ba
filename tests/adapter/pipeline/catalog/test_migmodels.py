"""The MIG profiles of a GPU, by its model and its memory."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog.migmodels import mig_model
from adapter.pipeline.catalog.migprofile import gpu_part, profile_memory

MIB = 1 << 20


@pytest.mark.parametrize(
    ("model", "mebibytes", "smallest", "whole"),
    [
        ("NVIDIA A100-SXM4-40GB", 40_960, "1g.5gb", "7g.40gb"),
        ("NVIDIA A100-SXM4-80GB", 81_920, "1g.10gb", "7g.80gb"),
        ("NVIDIA-H100-80GB-HBM3", 81_559, "1g.10gb", "7g.80gb"),
        ("NVIDIA H100 NVL", 95_830, "1g.12gb", "7g.94gb"),
        ("NVIDIA GH200 480GB", 97_871, "1g.12gb", "7g.96gb"),
        ("NVIDIA H200", 143_771, "1g.18gb", "7g.141gb"),
        ("NVIDIA A30", 24_576, "1g.6gb", "4g.24gb"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97_887, "1g.24gb", "4g.96gb"),
    ],
)
def test_the_profiles_of_a_model(model: str, mebibytes: int, smallest: str, whole: str) -> None:
    known = mig_model(model, mebibytes * MIB)
    assert known is not None
    profiles = [*known.profiles]
    assert (profiles[0], profiles[-1]) == (smallest, whole)
    assert gpu_part(whole, model) == 1.0


@pytest.mark.parametrize(
    ("model", "mebibytes"),
    [("NVIDIA L4", 23_034), ("NVIDIA A100-10C", 10_240), ("", 81_559), ("AMD Instinct", 196_592)],
)
def test_a_gpu_whose_profiles_are_not_known(model: str, mebibytes: int) -> None:
    assert mig_model(model, mebibytes * MIB) is None


def test_instances_have_no_more_than_the_gpu() -> None:
    for model, gigabytes in (("A100", 40), ("H100", 94), ("A30", 24), ("RTX PRO 6000", 96)):
        known = mig_model(model, gigabytes * 1024 * MIB)
        assert known is not None
        for profile, instances in known.profiles.items():
            part, memory = gpu_part(profile, model), profile_memory(profile)
            assert part is not None
            assert memory is not None
            assert instances * part <= 1.0
            assert instances * memory <= 1.03 * known.gigabytes * 1e9


def test_a_name_without_memory() -> None:
    assert profile_memory("1g.10gb") == 10e9
    assert profile_memory("cpx") is None
