"""From pages and pods to readings: one fact about GPU telemetry per case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.validity import RatioScale
from apiservice.labels.selector import EVERYTHING
from tests.adapter.world import World, make_pod, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
MIG = 'GPU_I_PROFILE="1g.5gb",GPU_I_ID="{}"'.format
MIB = 1048576


class Case(NamedTuple):
    page: str
    metric: str
    says: float | str
    where: str = ""
    gpus: Mapping[str, int] = {"nvidia.com/gpu": 1}


TWO = {"nvidia.com/gpu": 2}
CASES = {
    "a percent is served verbatim": Case(row(UTIL, 87, "p"), UTIL, 87.0),
    "in lower case as well": Case(row(UTIL, 87, "p"), UTIL.lower(), 87.0),
    "and under the neutral name": Case(row(UTIL, 87, "p"), "gpu_utilization", 87.0),
    "and under the new name, in its unit": Case(row(UTIL, 87, "p"), f"{UTIL}_RATIO", 0.87),
    "a new page feeds the old name": Case(row(f"{UTIL}_RATIO", 0.87, "p"), UTIL, 87.0),
    "a ratio above 1 is a percent": Case(row(f"{UTIL}_RATIO", 87, "p"), UTIL, 87.0),
    "a lone ratio of 1 may be one percent": Case(row(f"{UTIL}_RATIO", 1, "p"), UTIL, "no_value"),
    "a ratio of 1 beside a fraction is all": Case(
        row(f"{UTIL}_RATIO", 1, "p") + row(f"{UTIL}_RATIO", 0.5, "q", uuid="GPU-1"), UTIL, 100.0
    ),
    "a ratio of 1 beside a percent is one percent": Case(
        row(f"{UTIL}_RATIO", 1, "p") + row(f"{UTIL}_RATIO", 50, "q", uuid="GPU-1"), UTIL, 1.0
    ),
    "a ratio above 100 is nothing": Case(row(f"{UTIL}_RATIO", 101, "p"), UTIL, "no_value"),
    "an old spelling": Case(row("dcgm_gpu_utilization", 55, "p"), UTIL, 55.0),
    "an old lowercase profiling field": Case(
        row("dcgm_fi_prof_gr_engine_active", 0.508246, "p"), ENGINE, 0.508246
    ),
    "mebibytes verbatim": Case(row(USED, 38000, "p"), USED, 38000.0),
    "mebibytes as bytes": Case(row(USED, 38000, "p"), "gpu_memory_used_bytes", 38000.0 * MIB),
    "bytes as mebibytes": Case(row(f"{USED}_BYTES", 39845888000, "p"), USED, 38000.0),
    "used of used and free": Case(
        row(USED, 30, "p") + row(FREE, 60, "p"), "gpu_memory_utilization", 33.333333
    ),
    "used of used, free and reserved": Case(
        row(USED, 30, "p") + row(FREE, 60, "p") + row("DCGM_FI_DEV_FB_RESERVED", 10, "p"),
        "gpu_memory_utilization",
        30.0,
    ),
    "used of the total": Case(
        row(USED, 30, "p") + row("DCGM_FI_DEV_FB_TOTAL", 120, "p"), "gpu_memory_utilization", 25.0
    ),
    "more used than there is is nothing": Case(
        row(USED, 130, "p") + row("DCGM_FI_DEV_FB_TOTAL", 120, "p"),
        "gpu_memory_utilization",
        "no_value",
    ),
    "used without free gives no fraction": Case(
        row(USED, 30, "p"), "gpu_memory_utilization", "metric_not_exported"
    ),
    "FB_USED_PERCENT is a ratio": Case(
        row("DCGM_FI_DEV_FB_USED_PERCENT", 0.25, "p"), "gpu_memory_utilization", 25.0
    ),
    "a tensor ratio as percent": Case(
        row("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4, "p"), "gpu_tensor_activity", 40.0
    ),
    "SM_ACTIVE of 1.75 is nothing": Case(
        row("DCGM_FI_PROF_SM_ACTIVE", 1.75, "p"), "gpu_sm_activity", "no_value"
    ),
    "an engine is not the utilisation if GPU_UTIL exists": Case(
        row(UTIL, 91, "p") + row(ENGINE, 0.156, "p"), "gpu_utilization", 91.0
    ),
    "not even where GPU_UTIL is a blank": Case(
        row(UTIL, 2147483632, "p") + row(ENGINE, 0.156, "p"), "gpu_utilization", "no_value"
    ),
    "but where the exporter has no GPU_UTIL": Case(row(ENGINE, 0.5, "p"), "gpu_utilization", 50.0),
    "a MIG instance is as busy as its engine": Case(
        row(ENGINE, 0.408493, "p", more=MIG(7)) + row(UTIL, 12, "q", uuid="GPU-1"),
        "gpu_utilization",
        40.8493,
        gpus={"nvidia.com/mig-1g.5gb": 1},
    ),
    "GPU_UTIL on a MIG row is garbage": Case(
        row(UTIL, 33, "p", more=MIG(7)), UTIL, "metric_of_whole_devices"
    ),
    "instances of one board have one power": Case(
        row("DCGM_FI_DEV_POWER_USAGE", 112.5, "p", more=MIG(7))
        + row("DCGM_FI_DEV_POWER_USAGE", 112.5, "p", more=MIG(8)),
        "gpu_power_watts",
        112.5,
    ),
    "but are two devices": Case(
        row(ENGINE, 0.5, "p", more=MIG(7)) + row(ENGINE, 0.7, "p", more=MIG(8)),
        "gpu_count",
        2.0,
        gpus=TWO,
    ),
    "with the mean of their engines": Case(
        row(ENGINE, 0.5, "p", more=MIG(7)) + row(ENGINE, 0.7, "p", more=MIG(8)),
        "gpu_utilization",
        60.0,
        gpus=TWO,
    ),
    "several GPUs: the mean": Case(
        row(UTIL, 95, "p") + row(UTIL, 5, "p", uuid="GPU-1"), "gpu_utilization", 50.0, gpus=TWO
    ),
    "several GPUs: bytes are summed": Case(
        row(USED, 1, "p") + row(USED, 2, "p", uuid="GPU-1"),
        "gpu_memory_used_bytes",
        3.0 * MIB,
        gpus=TWO,
    ),
    "several containers on one GPU: one device": Case(
        row(USED, 5, "p", container="a") + row(USED, 5, "p", container="b"),
        "gpu_memory_used_bytes",
        5.0 * MIB,
    ),
    "several containers, a GPU each: both devices": Case(
        row(UTIL, 80, "p", container="a") + row(UTIL, 20, "p", uuid="GPU-1", container="b"),
        "gpu_utilization",
        50.0,
        gpus=TWO,
    ),
    "one container is selected": Case(
        row(UTIL, 80, "p", container="a") + row(UTIL, 20, "p", uuid="GPU-1", container="b"),
        "gpu_utilization",
        20.0,
        where="container=b",
        gpus=TWO,
    ),
    "by model": Case(row(UTIL, 80, "p"), UTIL, "not_selected", where="model=T4"),
    "by profile": Case(
        row(ENGINE, 0.5, "p", more=MIG(7)), "gpu_utilization", 50.0, where="mig_profile=1g.5gb"
    ),
    "a whole GPU is exclusive and exact": Case(
        row(UTIL, 80, "p"), UTIL, 80.0, where="sharing=exclusive,attribution=exact"
    ),
    "half of the devices are enough": Case(
        row(UTIL, 80, "p") + row(UTIL, 2147483632, "p", uuid="GPU-1"), UTIL, 80.0
    ),
    "less than half are not": Case(
        row(UTIL, 80, "p") + "".join(row(UTIL, "NaN", "p", uuid=f"GPU-{i}") for i in (1, 2)),
        UTIL,
        "too_few_devices",
    ),
    "a 0 needs every device": Case(
        row(UTIL, 0, "p") + row(UTIL, 101, "p", uuid="GPU-1"), UTIL, "too_few_devices", gpus=TWO
    ),
    "a 0 of all devices is a 0": Case(
        row(UTIL, 0, "p") + row(UTIL, 0, "p", uuid="GPU-1"), UTIL, 0.0, gpus=TWO
    ),
    "a 0 of a device that nobody reports is none": Case(
        row(UTIL, 0, "p"), UTIL, "too_few_devices", gpus=TWO
    ),
    "the spec says how many there should be": Case(
        row(UTIL, 80, "p"), UTIL, "too_few_devices", gpus={"nvidia.com/gpu": 4}
    ),
    "a replica is not counted by the spec": Case(
        row(UTIL, 80, "p", more='vgpu="1"'), UTIL, 80.0, gpus={"nvidia.com/gpu": 4}
    ),
    "the copy of a shared device says so": Case(
        row(UTIL, 71, "p", more='vgpu="0"') + row(UTIL, 71, "q", more='vgpu="1"'),
        UTIL,
        71.0,
        where="sharing=shared,attribution=copied",
    ),
    "two replicas in one pod: the larger, not the sum": Case(
        row(USED, 10, "p", more='vgpu="1"') + row(USED, 12, "p", more='vgpu="2"'), USED, 12.0
    ),
    "per process: the pod's own value, exact": Case(
        row(UTIL, 99) + row(UTIL, 62, "p", more='vgpu="0"') + row(UTIL, 31, "q", more='vgpu="1"'),
        UTIL,
        62.0,
        where="attribution=exact",
    ),
    "per process: zeros under a busy device are missing": Case(
        row(UTIL, 97) + row(UTIL, 0, "p", more='vgpu="0"') + row(UTIL, 0, "q", more='vgpu="1"'),
        UTIL,
        "zero_on_busy_device",
    ),
    "per process: zeros under an idle device are zeros": Case(
        row(UTIL, 0) + row(UTIL, 0, "p", more='vgpu="0"'), UTIL, 0.0
    ),
    "nobody's row": Case(row(UTIL, 50), UTIL, "pod_not_named"),
    "an unknown metric": Case(row(UTIL, 50, "p"), "nonsense", "unknown_metric"),
    "a field that the exporter lacks": Case(row(UTIL, 50, "p"), USED, "metric_not_exported"),
    "one field of two": Case(row(USED, 9, "p"), "gpu_memory_total_bytes", "metric_not_exported"),
    "one field of two, for a difference": Case(
        row(USED, 9, "p"), "gpu_memory_headroom_bytes", "metric_not_exported"
    ),
    "both fields, one without a valid value": Case(
        row(USED, 9, "p") + row("DCGM_FI_DEV_FB_FREE", "NaN", "p"),
        "gpu_memory_total_bytes",
        "no_value",
    ),
    "the last XID code": Case(
        row("DCGM_FI_DEV_XID_ERRORS", 31, "p", more='err_code="31"'), "DCGM_FI_DEV_XID_ERRORS", 31.0
    ),
    "a zero is a value": Case(row(UTIL, 0, "p"), UTIL, 0.0),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pod_gets_the_expected_values(case: Case) -> None:
    world = World(make_pod("p", gpus=case.gpus), make_pod("q"))
    world.scrape(case.page, 100.0)
    assert world.value("p", case.metric, 100.0, case.where) == case.says


NO_VALUE: dict[str, tuple[Pod, str]] = {
    "holds no GPU": (make_pod("p", gpus={}), "no_gpu_in_spec"),
    "is finished": (make_pod("p", phase="Succeeded"), "finished_pod"),
    "has failed": (make_pod("p", phase="Failed"), "finished_pod"),
    "does not run yet": (make_pod("p", phase="Pending"), "pod_not_running"),
    "is not ready": (make_pod("p", ready=False), "pod_not_ready"),
    "is elsewhere": (make_pod("p", node="other"), "wrong_node"),
    "has another uid": (make_pod("p", uid="new"), "pod_uid_mismatch"),
}


@pytest.mark.parametrize(("pod", "reason"), NO_VALUE.values(), ids=NO_VALUE)
def test_a_pod_has_no_value_that(pod: Pod, reason: str) -> None:
    world = World(pod)
    world.scrape(row(UTIL, 50, "p", more='pod_uid="uid"'), 100.0, node="n")
    assert world.value("p", UTIL, 100.0) == reason


def test_an_empty_uid_is_a_missing_uid() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p", more='pod_uid=""'), 100.0)
    assert world.value("p", UTIL, 100.0) == 50.0


def test_a_pod_with_a_resource_claim_holds_a_device_without_a_limit() -> None:
    world = World(make_pod("p", gpus={}, claims=True))
    world.scrape(row(ENGINE, 0.5, "p", more='dra_mig_device_uuid="MIG-1"'), 100.0)
    assert world.value("p", "gpu_utilization", 100.0) == 50.0


def test_utilisation_is_the_mean_over_the_window_and_memory_the_last_value() -> None:
    world = World(make_pod("p"))
    for i, value in enumerate((10, 20, 60)):
        world.scrape(row(UTIL, value, "p") + row(USED, value, "p"), 100.0 + 5 * i)
    util, used = (reading(world.read("p", metric, 110.0)) for metric in (UTIL, USED))
    assert (util.value, util.window, util.time) == (30.0, 30, 110.0)
    assert (used.value, used.window, used.time) == (60.0, None, 110.0)


def test_a_reading_is_as_old_as_its_oldest_device_and_ends_at_the_age_limit() -> None:
    world = World(make_pod("p", gpus={"nvidia.com/gpu": 2}))
    world.scrape(row(UTIL, 10, "p") + row(UTIL, 30, "p", uuid="GPU-1"), 100.0)
    world.scrape(row(UTIL, 10, "p") + row(UTIL, "NaN", "p", uuid="GPU-1"), 120.0)
    answer = reading(world.read("p", UTIL, 130.0))
    assert (answer.time, answer.expires, answer.partial) == (100.0, 165.0, False)
    answer = reading(world.read("p", UTIL, 165.0))
    assert (answer.value, answer.time, answer.partial) == (10.0, 120.0, True)
    assert world.value("p", UTIL, 185.0) == "stale"


def test_a_reading_names_its_formula_and_its_devices() -> None:
    world = World(make_pod("p"))
    world.scrape(row(ENGINE, 0.5, "p", more=MIG(7)), 100.0)
    (device,) = reading(world.read("p", "gpu_utilization", 100.0)).devices
    assert (device.device, device.formula) == ("GPU-0/7", ENGINE)
    assert device.labels == {
        "device": "GPU-0.7",
        "sharing": "exclusive",
        "attribution": "exact",
        "model": "NVIDIA-H100",
        "mig_profile": "1g.5gb",
        "container": "server",
    }


def test_a_reading_lists_what_was_left_out() -> None:
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 80, "p") + row(UTIL, 2147483632, "p", uuid="GPU-1"), 100.0)
    outcome = world.store.snapshot.pod(world.pods[next(iter(world.pods))], UTIL, EVERYTHING, 100.0)
    assert [(left.device, left.reason) for left in outcome.left_out] == [("GPU-1", "no_value")]


def test_a_configured_scale_decides_an_ambiguous_page() -> None:
    for scale, value in ((RatioScale.RATIO, 100.0), (RatioScale.PERCENT, 1.0)):
        world = World(make_pod("p"), options=TelemetryOptions(ratio_scale=scale))
        world.scrape(row(f"{UTIL}_RATIO", 1, "p"), 100.0)
        assert world.value("p", UTIL, 100.0) == value


def test_the_scale_of_an_exporter_is_remembered() -> None:
    world = World(make_pod("p"))
    world.scrape(row(f"{UTIL}_RATIO", 0.5, "p"), 100.0)
    world.scrape(row(f"{UTIL}_RATIO", 1, "p"), 140.0)
    assert world.value("p", UTIL, 140.0) == 100.0


class Node(NamedTuple):
    page: str
    metric: str
    says: float | str


NODES = {
    "all devices, assigned or not": Node(
        row(UTIL, 90, "p") + row(UTIL, 10, uuid="GPU-1"), "gpu_utilization", 50.0
    ),
    "bytes are summed": Node(row(USED, 1, "p") + row(USED, 2, uuid="GPU-1"), USED, 3.0),
    "a cut board counts by its instances": Node(
        row(USED, 10) + row(USED, 4, "p", more=MIG(7)) + row(USED, 5, more=MIG(8)), USED, 9.0
    ),
    "its power by the board": Node(
        row("DCGM_FI_DEV_POWER_USAGE", 300)
        + row("DCGM_FI_DEV_POWER_USAGE", 301, "p", more=MIG(7))
        + row("DCGM_FI_DEV_POWER_USAGE", 100, uuid="GPU-1"),
        "gpu_power_watts",
        200.0,
    ),
    "a device shared by pods counts once": Node(
        row(USED, 7, "p", more='vgpu="0"') + row(USED, 7, "q", more='vgpu="1"'), USED, 7.0
    ),
}


@pytest.mark.parametrize("case", NODES.values(), ids=NODES)
def test_a_node_gets_the_expected_values(case: Node) -> None:
    world = World(make_pod("p"), make_pod("q"))
    world.scrape(case.page, 100.0, node="n")
    answer = world.node("n", case.metric, 100.0)
    assert round(reading(answer).value, 6) == case.says
    assert world.store.snapshot.nodes() == ["n"]
