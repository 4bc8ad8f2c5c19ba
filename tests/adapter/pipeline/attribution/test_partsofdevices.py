"""Values and reasons of pods with a part of a device: MIG instances, partitions, virtual NPUs."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from adapter.pipeline.attribution.reading import Absence, Attribution
from tests.adapter.world import World, make_pod, reading, row

T = 100.0
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
NOT_EXPORTED, NO_VALUE = "metric_not_exported", "no_value"
OF_WHOLES = "metric_of_whole_devices"


def mig(field: str, value: object) -> str:
    return row(field, value, "p", more='GPU_I_PROFILE="1g.10gb",GPU_I_ID="3"')


def partition(field: str, value: object, number: int = 1, pod: str = "p") -> str:
    labels = (
        f'gpu_uuid="{number}0ff",gpu_id="{number}",gpu_partition_id="{number}",'
        f'gpu_compute_partition_type="cpx",serial_number="6925",pod="{pod}",namespace="ml",'
        'container="c",card_series="MI300X"'
    )
    return f"{field}{{{labels}}} {value}\n"


class Case(NamedTuple):
    page: str
    metric: str
    reason: str


CPX = (
    partition("gpu_used_vram", 900)
    + partition("gpu_gfx_activity", 77, number=0, pod="")
    + partition("gpu_umc_activity", 21, number=0, pod="")
)
CASES = {
    "a field that is not on the page": Case(mig(ENGINE, 0.6), "gpu_tensor_activity", NOT_EXPORTED),
    "the board's power is not": Case(mig(ENGINE, 0.6), "gpu_power_watts", NOT_EXPORTED),
    "one of two fields is": Case(
        mig("DCGM_FI_DEV_FB_USED", 9), "gpu_memory_total_bytes", NOT_EXPORTED
    ),
    "its number was left out": Case(
        mig("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 7) + mig(ENGINE, 0.6),
        "gpu_tensor_activity",
        NO_VALUE,
    ),
    "the field is about boards": Case(
        mig(ENGINE, 0.6) + mig("DCGM_FI_DEV_GPU_UTIL", 9), "DCGM_FI_DEV_GPU_UTIL", OF_WHOLES
    ),
    "and nothing else is on the page": Case(
        mig("DCGM_FI_DEV_GPU_UTIL", 9), "DCGM_FI_DEV_GPU_UTIL", OF_WHOLES
    ),
    "no field that an instance can have": Case(
        mig("DCGM_FI_DEV_GPU_UTIL", 9), "gpu_count", NOT_EXPORTED
    ),
    "AMD's profiler is off": Case(CPX, "gpu_sm_activity", NOT_EXPORTED),
    "AMD's first partition alone has it": Case(CPX, "gpu_memory_bandwidth_utilization", OF_WHOLES),
    "a field of another vendor": Case(CPX, "DCGM_FI_DEV_GPU_UTIL", NOT_EXPORTED),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_reason_says_whether_the_page_has_the_field_of_an_instance(case: Case) -> None:
    world = World(make_pod("p"))
    world.scrape(case.page, T)
    assert world.value("p", case.metric, T) == case.reason


RADEON = ("AMD Radeon PRO W7900", "Navi 31 [Radeon RX 7900 XTX]")
INSTINCT = "AMD Instinct MI300X"
_UNSUPPORTED = "zero_of_unsupported_field"


@pytest.mark.parametrize("gfx", [0, 33, 96], ids=["idle", "busy", "saturated"])
@pytest.mark.parametrize("model", [*RADEON, INSTINCT])
def test_the_zeros_of_a_field_that_a_model_does_not_support_are_left_out(
    model: str, gfx: int
) -> None:
    """ROCm/device-metrics-exporter, ``docs/configuration/metricslist.md``."""
    world = World(make_pod("p", gpus={"amd.com/gpu": 1}))
    labels = f'gpu_uuid="30ff",gpu_id="0",card_series="{model}",pod="p",namespace="ml"'
    numbers = {"gpu_gfx_activity": gfx, "gpu_prof_sm_active": 0, "gpu_prof_occupancy_percent": 0}
    page = "".join(f"{name}{{{labels}}} {value}\n" for name, value in numbers.items())
    for time in range(100, 200, 5):
        world.scrape(page, float(time))
    values = [world.value("p", name, 195.0) for name in ("gpu_sm_activity", "gpu_sm_occupancy")]
    if model in RADEON:
        assert values == [_UNSUPPORTED, _UNSUPPORTED]
        assert not world.store.rejects.totals  # nothing is wrong with the exporter
    else:
        assert values == ([0.0, 0.0] if gfx < 50 else ["profiling_stuck_at_zero"] * 2)
    assert world.value("p", "gpu_utilization", 195.0) == gfx


REQUESTS = {
    "a chip": ({"huawei.com/Ascend910": 1}, 25.0),
    "an Ascend 950": ({"huawei.com/npu": 1}, 25.0),
    "a template of cores": ({"huawei.com/Ascend310P-2c": 1}, "requested_share_unknown"),
    "a template with memory": ({"huawei.com/Ascend910-5c.1cpu.8g": 1}, "requested_share_unknown"),
    "Volcano's template": ({"huawei.com/Ascend910-vir05_1c_16g": 1}, "requested_share_unknown"),
    "HAMi": (
        {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 16384},
        "requested_share_unknown",
    ),
    "an amount of cores": ({"huawei.com/npu-core": 4}, "requested_share_unknown"),
}


@pytest.mark.parametrize(("gpus", "of_request"), REQUESTS.values(), ids=REQUESTS)
def test_a_virtual_npu_is_a_part_of_the_chip_whose_numbers_the_page_has(
    gpus: dict[str, int], of_request: float | str
) -> None:
    world = World(make_pod("p", gpus=gpus))
    labels = 'id="0",model_name="910",vdie_id="6B04",pod_name="p",namespace="ml"'
    world.scrape(f"npu_chip_info_utilization{{{labels}}} 25\n", T)
    assert world.value("p", "gpu_utilization_of_request", T) == of_request
    (device,) = reading(world.read("p", "gpu_utilization", T)).devices
    exact = isinstance(of_request, float)
    assert device.attribution is (Attribution.EXACT if exact else Attribution.COPIED)
    assert device.value == 25.0


def test_the_name_that_stands_for_several_pods_does_not_name_one() -> None:
    """Ascend/mind-cluster, ``npu-exporter/collector/metrics/common_utils.go``."""
    npu = {"huawei.com/Ascend910": 1}
    world = World(*(make_pod(name, node="n1", gpus=npu) for name in ("p", "q", "alone")))
    hidden = "not_displayed_for_multi_pod"
    chips = {"6B04": (hidden, hidden), "6B05": ("ml", "alone")}
    page = "".join(
        f'npu_chip_info_utilization{{id="0",vdie_id="{chip}",namespace="{namespace}",'
        f'pod_name="{pod}",container_name="{pod}"}} 80\n'
        for chip, (namespace, pod) in chips.items()
    )
    world.scrape(page, T, node="n1")
    for pod in ("p", "q"):
        absence = world.read(pod, "gpu_utilization", T)
        assert isinstance(absence, Absence)
        assert (absence.reason, absence.detail) == ("pods_of_device_not_named", "6B04")
    assert world.value("alone", "gpu_utilization", T) == 80.0
    assert not world.store.rejects.totals
