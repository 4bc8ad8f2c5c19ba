"""Devices of a ResourceClaimTemplate."""

from __future__ import annotations

import pytest
import yaml

from adapter.nodepool.seen.claimtemplates import devices

TEMPLATES: dict[str, tuple[str, int | None]] = {
    "one device by default": ("[{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]", 1),
    "a count": ("[{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}]", 4),
    "as v1beta1 writes it": ("[{name: gpu, deviceClassName: gpu.nvidia.com, count: 2}]", 2),
    "several requests": ("[{name: a, exactly: {count: 2}}, {name: b, exactly: {}}]", 3),
    "the most of a choice": ("[{name: a, firstAvailable: [{count: 1}, {count: 2}]}]", 2),
    "all that match": ("[{name: a, exactly: {allocationMode: All}}]", None),
    "all, as a second choice": (
        "[{name: a, firstAvailable: [{count: 1}, {allocationMode: All}]}]",
        None,
    ),
    "a look at devices of others": ("[{name: a, exactly: {adminAccess: true}}]", 0),
    "a network card": ("[{name: nic, exactly: {deviceClassName: rdma.example.com}}]", 0),
    "nothing": ("[]", 0),
}


@pytest.mark.parametrize(("requests", "count"), TEMPLATES.values(), ids=TEMPLATES)
def test_devices_of_a_claim(requests: str, count: int | None) -> None:
    template = {"spec": {"spec": {"devices": {"requests": yaml.safe_load(requests)}}}}
    assert devices(template) == count


def test_an_empty_template_requests_no_devices() -> None:
    assert devices({}) == 0
