"""A rejected sample of a pod's own part of a device is not replaced by the device's own value."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.unreadseries import NO_VALUE
from tests.adapter.world import World, make_pod, row, said

GIB = 1 << 30
PODS = ("a", "b")
COPIES = (SharingPolicy.COPY, SharingPolicy.EQUAL)


def sample(name: str, value: str, pod: str = "") -> str:
    own = f',namespace="ml",pod="{pod}",container="server",vdevice_index="0"' if pod else ""
    return f'{name}{{device_uuid="GPU-0"{own}}} {value}\n'


def monitor(util: str = "30", used: str = str(GIB)) -> str:
    """HAMi's page: the numbers are of pod ``a``; ``b`` is at 20 with 1 GiB."""
    return (
        sample("hami_host_gpu_utilization_ratio", "97")
        + sample("hami_host_gpu_memory_used_bytes", str(9 * GIB))
        + "".join(sample("hami_vgpu_memory_limit_bytes", str(8 * GIB), pod) for pod in PODS)
        + sample("hami_container_device_utilization_ratio", util, "a")
        + sample("hami_container_device_utilization_ratio", "20", "b")
        + sample("hami_vgpu_memory_used_bytes", used, "a")
        + sample("hami_vgpu_memory_used_bytes", str(GIB), "b")
    )


def cluster(policy: SharingPolicy, *pages: str) -> World:
    gpus = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}
    pods = [make_pod(pod, node="n", gpus=gpus) for pod in PODS]
    world = World(*pods, sharing=SharingOptions(policy))
    for number, page in enumerate(pages):
        world.scrape(page, 100.0 + 5 * number, node="n")
    return world


@pytest.mark.parametrize("policy", SharingPolicy)
@pytest.mark.parametrize(
    ("page", "metric", "reason"),
    [
        (monitor("103"), "gpu_utilization", "out_of_range"),
        (monitor("NaN"), "gpu_utilization", "not_finite"),
        (monitor("N/A"), "gpu_utilization", "bad_value"),
        (monitor(used="1.8446744073709552e+19"), "gpu_memory_used_bytes", "out_of_range"),
    ],
    ids=["above 100", "not a number", "no number", "used memory below 0"],
)
def test_a_rejected_sample_leaves_the_pod_without_a_value(
    policy: SharingPolicy, page: str, metric: str, reason: str
) -> None:
    world = cluster(policy, page, page)
    absence = world.read("a", metric, 106.0)
    assert isinstance(absence, Absence)
    assert absence.reason == NO_VALUE
    assert f"was left out as {reason}" in absence.detail
    assert isinstance(world.value("b", metric, 106.0), float)


@pytest.mark.parametrize("policy", COPIES)
def test_a_metric_of_the_devices_other_fields_is_the_devices(policy: SharingPolicy) -> None:
    world = cluster(policy, monitor("103"))
    parts = 1 if policy is SharingPolicy.COPY else len(PODS)
    assert world.value("a", "hami_host_gpu_utilization_ratio", 101.0) == 97 / parts


def test_a_value_from_before_in_the_window_stands() -> None:
    world = cluster(SharingPolicy.COPY, monitor("30"), monitor("103"))
    assert world.value("a", "gpu_utilization", 106.0) == 30.0


@pytest.mark.parametrize("pages", [1, 2, 4])
def test_a_valid_sample_after_it_counts(pages: int) -> None:
    world = cluster(SharingPolicy.COPY, *[monitor("103")] * pages, monitor("40"))
    assert world.value("a", "gpu_utilization", 100.0 + 5 * pages) == 40.0


def test_another_exporters_value_of_the_device_does_not_replace_it() -> None:
    world = cluster(SharingPolicy.COPY, monitor("103"))
    page = row("DCGM_FI_DEV_GPU_UTIL", 96, "a", uuid="GPU-0")
    world.scrape(page, 100.0, origin="http://dcgm", node="n")
    assert world.value("a", "gpu_utilization", 101.0) == NO_VALUE


def test_limits_of_containers_are_not_the_memory_of_a_node() -> None:
    world = cluster(SharingPolicy.COPY, monitor())
    metrics = ("total_bytes", "headroom_bytes", "utilization")
    reasons = {said(world.node("n", f"gpu_memory_{name}", 101.0)) for name in metrics}
    assert reasons == {"metric_not_exported"}
    assert said(world.node("n", "gpu_memory_used_bytes", 101.0)) == 9 * GIB


def test_a_node_has_the_memory_that_another_exporter_reports() -> None:
    world = cluster(SharingPolicy.COPY, monitor())
    page = row("DCGM_FI_DEV_FB_TOTAL", 81920, "a", uuid="GPU-0")
    page += row("DCGM_FI_DEV_FB_USED", 9216, "a", uuid="GPU-0")
    world.scrape(page, 100.0, origin="http://dcgm", node="n")
    free = (81920 - 9216) * 1024 * 1024
    assert said(world.node("n", "gpu_memory_headroom_bytes", 101.0)) == free
