"""A pod whose device the kubelet reports unhealthy: served, or left out of the mean."""

from __future__ import annotations

from typing import Final

import pytest

from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.errors import MetricNotFound, Unavailable
from apiservice.labels.selector import parse as selector
from apiservice.provider import ExternalQuery, GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

NOW: Final = 1_700_000_000.0
BUSY: Final = {"a": 90, "b": 70, "sick": 0}


def world(*, unhealthy: bool) -> World:
    """Two pods that work, and one whose device has failed."""
    pods = [
        make_pod(
            name,
            node="n1",
            uid=name,
            labels={"app": "llm"},
            unhealthy=("GPU-2 of nvidia.com/gpu",) if name == "sick" else (),
        )
        for name in BUSY
    ]
    made = World(*pods, options=TelemetryOptions(unhealthy=unhealthy))
    page = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{number}",UUID="GPU-{number}",container="server",'
        f'namespace="ml",pod="{name}"}} {value}\n'
        for number, (name, value) in enumerate(BUSY.items())
    )
    made.scrape(page, NOW, origin="http://n1:9400/metrics", node="n1")
    return made


def pods(of: World, name: str | None = None) -> dict[str, int]:
    where = selector("" if name else "app=llm")
    query = ObjectQuery(
        GroupResource("pods", ""), "ml", name, "gpu_utilization", where, selector("")
    )
    items = at_once(of.custom.values(query, NOW)).items
    return {item.described.name: item.milli // 1000 for item in items}


def external(of: World, aggregate: str) -> int:
    where = selector(f"app=llm,aggregate={aggregate}")
    (series,) = at_once(
        of.external.values(ExternalQuery("ml", "gpu_utilization", where), NOW)
    ).items
    return series.milli // 1000


def test_a_pod_with_an_unhealthy_device_is_served_unless_the_setting_says_otherwise() -> None:
    assert pods(world(unhealthy=True)) == BUSY
    assert pods(world(unhealthy=False)) == {"a": 90, "b": 70}


def test_the_reason_names_the_device() -> None:
    of = world(unhealthy=False)
    with pytest.raises(MetricNotFound, match=r"GPU-2 of nvidia.com/gpu \(device_unhealthy\)"):
        pods(of, "sick")


def test_a_mean_is_that_of_the_others_and_a_sum_waits() -> None:
    of = world(unhealthy=False)
    assert external(of, "mean") == 80
    with pytest.raises(Unavailable, match=r"sick \(device_unhealthy\)"):
        external(of, "sum")
    assert external(world(unhealthy=True), "sum") == 160
