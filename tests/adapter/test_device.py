"""Which device a row's labels name."""

from __future__ import annotations

import pytest

from adapter.device import Device, device

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
    "partition": (
        {"gpu_id": "0", "gpu_partition_id": "2", "hostname": "n1"},
        ("n1/0.2", "n1/0.2", False),
    ),
    "partition that is none": (
        {"gpu_id": "0", "gpu_partition_id": "NA", "hostname": "n1"},
        ("n1/0", "n1/0", False),
    ),
}


@pytest.mark.parametrize(("labels", "expected"), CASES.values(), ids=CASES)
def test_a_device_is_told_by_what_the_page_has(
    labels: dict[str, str], expected: tuple[str, str, bool]
) -> None:
    found = device(labels, "origin")
    assert found is not None
    assert (found.id, found.board, found.mig) == expected


def test_a_row_without_any_identity_names_no_device() -> None:
    assert device({"pod": "p"}, "origin") is None


def test_profile_and_model_are_what_the_page_says() -> None:
    labels = {"UUID": "G", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.5gb", "modelName": "A100"}
    assert device(labels, "") == Device("G/7", "G", "A100", "1g.5gb")
