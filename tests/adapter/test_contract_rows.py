"""Rows of the telemetry contract in its order: possible samples and their results. The pages of
each kind of sharing are in :mod:`tests.adapter.pages`.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from adapter.pipeline.cluster.pod import Pod
from tests.adapter.world import World, make_pod, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED = "DCGM_FI_DEV_FB_USED"
POWER = "DCGM_FI_DEV_POWER_USAGE"
MIG = 'GPU_I_PROFILE="1g.5gb",GPU_I_ID="{}"'.format
AMD = 'gpu_uuid="",hostname="n",namespace="ml",pod="p",container="server"'
SERVER = 'engine="{}",model_name="{}"'.format


class Case(NamedTuple):
    """A page, and the result for the pod ``p``."""

    page: str
    metric: str
    says: float | str
    pod: Pod = make_pod("p")
    where: str = ""
    serves: bool = False


def _mine(*, ask: str, number: int = 1) -> Pod:
    return make_pod("p", gpus={ask: number})


SECTION_1 = {
    "uuid in lower case": Case(
        'dcgm_gpu_utilization{gpu="0",uuid="GPU-0",container_name="c",pod_name="p",'
        'pod_namespace="ml"} 7\n',
        UTIL,
        7,
    ),
    "two compute instances of one GPU instance are distinguished": Case(
        row(ENGINE, 0.2, "p", more=MIG(7) + ',GPU_CI_ID="0"')
        + row(ENGINE, 0.6, "p", more=MIG(7) + ',GPU_CI_ID="1"'),
        "gpu_count",
        2,
        make_pod("p", gpus={"nvidia.com/mig-1c.2g.10gb": 2}),
    ),
    "a field of type label does not belong to the identity": Case(
        row(UTIL, 50, "p", more='DCGM_FI_DRIVER_VERSION="1"')
        + row(USED, 5, "p", more='DCGM_FI_SYSTEM_DRIVER_VERSION="1",DCGM_FI_DEV_SERIAL="9"'),
        "gpu_count",
        1,
    ),
    "a row per HPC job is one device": Case(
        row(USED, 5, "p", more='hpc_job="1"') + row(USED, 5, "p", more='hpc_job="2"'), USED, 5
    ),
    "an XID row's own labels make no device": Case(
        row("DCGM_FI_DEV_XID_ERRORS", 31, "p", more='err_code="31",err_msg="fault"')
        + row(UTIL, 50, "p"),
        "gpu_count",
        1,
    ),
    "a pod label named gpu costs nothing: the device's comes first": Case(
        row(UTIL, 50, "p", more='gpu="tenant"'), UTIL, 50
    ),
    "a broken line costs itself": Case(
        f'{UTIL}{{gpu="0",UUID="GPU-0 40\n' + row(UTIL, 50, "p"), UTIL, 50
    ),
}
SECTION_2 = {
    "gpu_utilization is GPU_UTIL": Case(row(UTIL, 50, "p"), "gpu_utilization", 50),
    "the controller's time is not an occupancy": Case(
        row("DCGM_FI_DEV_MEM_COPY_UTIL", 50, "p"), "gpu_memory_utilization", "metric_not_exported"
    ),
    "FB_TOTAL where there is one": Case(
        row(USED, 30, "p") + row("DCGM_FI_DEV_FB_TOTAL", 40, "p"), "gpu_memory_utilization", 75
    ),
    "its new name is in bytes": Case(
        row(f"{USED}_BYTES", 30, "p") + row("DCGM_FI_DEV_FB_CAPACITY_BYTES", 40, "p"),
        "gpu_memory_utilization",
        75,
    ),
    "used, free and reserved where there is none": Case(
        row(USED, 30, "p")
        + row("DCGM_FI_DEV_FB_FREE", 10, "p")
        + row("DCGM_FI_DEV_FB_RESERVED", 20, "p"),
        "gpu_memory_utilization",
        50,
    ),
    "a board's power is not summed over its instances": Case(
        "".join(row(POWER, 300, "p", more=MIG(i)) for i in (7, 8, 9)), "gpu_power_watts", 300
    ),
    "but is the mean over boards": Case(
        row(POWER, 300, "p") + row(POWER, 100, "p", uuid="GPU-1"),
        "gpu_power_watts",
        200,
        make_pod("p", gpus={"nvidia.com/gpu": 2}),
    ),
    "no number where DCGM had a string": Case(row(UTIL, "<<<NULL>>>", "p"), UTIL, "no_value"),
}
SECTION_3 = {
    "MIG single asks for nvidia.com/gpu": Case(
        row(ENGINE, 0.4, "p", more=MIG(7)),
        "gpu_utilization",
        40,
        _mine(ask="nvidia.com/gpu"),
        "mig_profile=1g.5gb,sharing=exclusive",
    ),
    "MIG mixed asks for the profile": Case(
        row(ENGINE, 0.4, "p", more=MIG(7)),
        "gpu_utilization",
        40,
        _mine(ask="nvidia.com/mig-1g.5gb"),
    ),
    "an instance's memory is used of used and free": Case(
        row(USED, 1, "p", more=MIG(7)) + row("DCGM_FI_DEV_FB_FREE", 3, "p", more=MIG(7)),
        "gpu_memory_utilization",
        25,
    ),
    "two pods of one resource claim share its device": Case(
        row(UTIL, 70, "p", more='dra_claim_name="c"')
        + row(UTIL, 70, "q", more='dra_claim_name="c"'),
        UTIL,
        70,
        make_pod("p", gpus={}, claims=True),
        "sharing=shared,attribution=copied",
    ),
    "two containers of one claim do not": Case(
        row(UTIL, 70, "p", container="a", more='dra_claim_name="c"')
        + row(UTIL, 70, "p", container="b", more='dra_claim_name="c"'),
        UTIL,
        70,
        make_pod("p", gpus={}, claims=True),
        "sharing=exclusive,attribution=exact",
    ),
    "the larger of two replicas' rows, never the sum": Case(
        row(UTIL, 99) + row(UTIL, 30, "p", more='vgpu="1"') + row(UTIL, 31, "p", more='vgpu="2"'),
        UTIL,
        31,
    ),
    "zeros beside a device at 5 are zeros": Case(
        row(UTIL, 5) + row(UTIL, 0, "p", more='vgpu="0"'), UTIL, 0
    ),
    "zeros beside a device above 5 are missing": Case(
        row(UTIL, 6) + row(UTIL, 0, "p", more='vgpu="0"'), UTIL, "zero_on_busy_device"
    ),
}
SECTION_4 = {
    "a pod without a GPU in its spec": Case(
        row(UTIL, 50, "p"), UTIL, "no_gpu_in_spec", make_pod("p", gpus={})
    ),
    "a finished pod keeps its rows": Case(
        row(UTIL, 50, "p"), UTIL, "finished_pod", make_pod("p", phase="Succeeded")
    ),
    "a model that still loads": Case(
        row(UTIL, 0, "p"), UTIL, "pod_not_ready", make_pod("p", ready=False)
    ),
    "808334905 percent": Case(row(UTIL, 808334905, "p"), UTIL, "no_value"),
    "4294967295 percent": Case(row(UTIL, 4294967295, "p"), UTIL, "no_value"),
    "218322032 percent": Case(row(UTIL, 218322032, "p"), UTIL, "no_value"),
    "a name in lower case for HPAs on GKE": Case(row(UTIL, 50, "p"), UTIL.lower(), 50),
}
SECTION_5 = {
    "AMD: with a prefix": Case(
        f'amd_gpu_gfx_activity{{gpu_id="0",{AMD}}} 60\n',
        "gpu_utilization",
        60,
        _mine(ask="amd.com/gpu"),
    ),
    "AMD: memory of its total": Case(
        f'gpu_used_vram{{gpu_id="0",{AMD}}} 1024\ngpu_total_vram{{gpu_id="0",{AMD}}} 4096\n',
        "gpu_memory_utilization",
        25,
        _mine(ask="amd.com/gpu"),
    ),
    "AMD: a partition's own activity": Case(
        f'gpu_gfx_busy_instantaneous{{gpu_id="0",gpu_partition_id="1",gpu_compute_partition_type='
        f'"cpx",{AMD}}} 40\n',
        "gpu_utilization",
        40,
        _mine(ask="amd.com/gpu"),
    ),
    "Intel XPUM 1: a ratio in percent": Case(
        'xpum_engine_ratio{uuid="u",node="n",kube_pod="p",kube_namespace="ml",kube_container="c"}'
        " 0.3\n",
        "gpu_utilization",
        30,
        _mine(ask="gpu.intel.com/i915"),
    ),
    "Intel XPUM 1: its container": Case(
        'xpum_memory_used_bytes{uuid="u",kube_pod="p",kube_namespace="ml",kube_container="c"} 9\n',
        "gpu_memory_used_bytes",
        9,
        _mine(ask="gpu.intel.com/i915"),
        "container=c",
    ),
    "HAMi: 0-100 despite its name": Case(
        'hami_container_device_utilization_ratio{namespace="ml",pod="p",container="c",'
        'device_uuid="GPU-0"} 42\n',
        "gpu_utilization",
        42,
        _mine(ask="nvidia.com/gpumem"),
        "attribution=exact",
    ),
    "HAMi: the older names": Case(
        'Device_utilization_desc_of_container{podname="p",podnamespace="ml",ctrname="c",'
        'deviceuuid="GPU-0"} 42\n',
        "gpu_utilization",
        42,
        _mine(ask="nvidia.com/gpu"),
    ),
    "vLLM: the older cache name": Case(
        f"vllm:gpu_cache_usage_perc{{{SERVER(0, 'm')}}} 0.25\n",
        "inference_kv_cache_utilization",
        25,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "Triton: pending requests": Case(
        'nv_inference_pending_request_count{model="a",version="1"} 3\n',
        "inference_requests_waiting",
        3,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "TGI: the queue": Case(
        "tgi_queue_size 4\n",
        "inference_requests_waiting",
        4,
        make_pod("p", gpus={}),
        serves=True,
    ),
}
SECTION_6 = {
    "FB_USED_PERCENT is a ratio": Case(
        row("DCGM_FI_DEV_FB_USED_PERCENT", 0.5, "p"), "gpu_memory_utilization", 50
    ),
    "MIG under DRA has no GPU_I_ID": Case(
        row(ENGINE, 0.1, "p", more='dra_mig_device_uuid="MIG-a",dra_mig_profile="1g.6gb"')
        + row(ENGINE, 0.3, "p", more='dra_mig_device_uuid="MIG-b",dra_mig_profile="1g.6gb"'),
        "gpu_count",
        2,
        make_pod("p", gpus={}, claims=True),
    ),
    "AMD without UUID: node, index and partition": Case(
        f'gpu_gfx_activity{{gpu_id="0",{AMD}}} 20\ngpu_gfx_activity{{gpu_id="1",{AMD}}} 60\n',
        "gpu_utilization",
        40,
        _mine(ask="amd.com/gpu", number=2),
    ),
    "an empty uid is not a mismatch": Case(row(UTIL, 50, "p", more='pod_uid=""'), UTIL, 50),
    "another uid is another pod": Case(
        row(UTIL, 50, "p", more='pod_uid="other"'), UTIL, "pod_uid_mismatch"
    ),
    "a T4 at 91 with an engine of 0.156": Case(
        row(UTIL, 91, "p") + row(ENGINE, 0.156, "p"), "gpu_utilization", 91
    ),
    "an exporter without GPU_UTIL": Case(row(ENGINE, 0.5, "p"), "gpu_utilization", 50),
    "CRLF": Case(row(UTIL, 50, "p").replace("\n", "\r\n"), UTIL, 50),
    "a created row, an exemplar and a timestamp break nothing": Case(
        'x_created{a="b"} 1.7e+09\n'
        'x_bucket{le="1"} 3 # {trace="t"} 0.5 1.0\n' + row(UTIL, "50 100000", "p"),
        UTIL,
        50,
    ),
    "GPU_UTIL above 100": Case(row(UTIL, 101, "p"), UTIL, "no_value"),
    "a ratio above 1 is a percent": Case(row(f"{UTIL}_RATIO", 64, "p"), UTIL, 64),
    "a ratio above 100 is nothing": Case(row(f"{UTIL}_RATIO", 101, "p"), UTIL, "no_value"),
    "half of the devices are enough": Case(
        row(UTIL, 50, "p") + row(UTIL, "NaN", "p", uuid="GPU-1"),
        UTIL,
        50,
        _mine(ask="nvidia.com/gpu", number=2),
    ),
    "less than half are not": Case(
        row(UTIL, 50, "p"), UTIL, "too_few_devices", _mine(ask="nvidia.com/gpu", number=3)
    ),
    "vLLM: exact names only": Case(
        f"vllm:num_requests_waiting{{{SERVER(0, 'm')}}} 3\n"
        f'vllm:num_requests_waiting_by_reason{{{SERVER(0, "m")},reason="capacity"}} 3\n',
        "inference_requests_waiting",
        3,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "vLLM: engines and models are summed": Case(
        "".join(
            f"vllm:num_requests_running{{{SERVER(engine, model)}}} 2\n"
            for engine in (0, 1)
            for model in ("a", "b")
        ),
        "inference_requests_running",
        8,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "vLLM: caches are meaned": Case(
        f"vllm:kv_cache_usage_perc{{{SERVER(0, 'm')}}} 0.2\n"
        f"vllm:kv_cache_usage_perc{{{SERVER(1, 'm')}}} 0.4\n",
        "inference_kv_cache_utilization",
        30,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "vLLM behind Ray": Case(
        f"ray_vllm_num_requests_waiting{{{SERVER(0, 'm')}}} 5\n",
        "inference_requests_waiting",
        5,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "Triton: a row per model and version": Case(
        'nv_inference_pending_request_count{model="a",version="1"} 1\n'
        'nv_inference_pending_request_count{model="a",version="2"} 2\n'
        'nv_inference_pending_request_count{model="b",version="1"} 4\n',
        "inference_requests_waiting",
        7,
        make_pod("p", gpus={}),
        serves=True,
    ),
    "HAMi above 100": Case(
        'hami_container_device_utilization_ratio{namespace="ml",pod="p",container="c",'
        'device_uuid="GPU-0"} 101\n',
        "gpu_utilization",
        "no_value",
    ),
    "Intel: the last of two rows of one series": Case(
        "".join(
            f'xpum_engine_ratio{{uuid="u",kube_pod="p",kube_namespace="ml"}} {value}\n'
            for value in (0.9, 0.3)
        ),
        "gpu_utilization",
        30,
        _mine(ask="gpu.intel.com/i915"),
    ),
    "Intel XPUM 2: all engines, not one": Case(
        "".join(
            f'hw_gpu_utilization_ratio{{hw_gpu_task="{task}",uuid="u",kube_pod="p",'
            f'kube_namespace="ml"}} {value}\n'
            for task, value in (("all", 0.5), ("copy", 0.9))
        ),
        "gpu_utilization",
        50,
        _mine(ask="gpu.intel.com/i915"),
    ),
}
ROWS = {
    f"{number}: {name}": case
    for number, section in enumerate(
        (SECTION_1, SECTION_2, SECTION_3, SECTION_4, SECTION_5, SECTION_6), start=1
    )
    for name, case in section.items()
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS)
def test_a_sample_of_the_contract_gives_the_expected_value(case: Case) -> None:
    world = World(case.pod, make_pod("q", claims=case.pod.claims))
    served = ("ml", "p") if case.serves else None
    world.scrape(case.page, 100.0, pod=served, serves=case.serves)
    assert world.value("p", case.metric, 100.0, case.where) == case.says


BOUNDS = {
    UTIL: (100, 100.5),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (100, 101),
    "DCGM_FI_DEV_FB_FREE": (196608, 2147483632),
    USED: (196608, 2147483633),
    "DCGM_FI_DEV_FB_RESERVED": (600, 2147483634),
    "DCGM_FI_DEV_FB_TOTAL": (196608, 2147483635),
    ENGINE: (1, 1.01),
    "DCGM_FI_PROF_SM_ACTIVE": (1, 1.75),
    "DCGM_FI_PROF_SM_OCCUPANCY": (1, 1.2),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (1, 2),
    "DCGM_FI_PROF_DRAM_ACTIVE": (1, 1.1),
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": (1, 1.1),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": (1, 1.1),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": (1, 1.1),
    POWER: (1400, 140737488355328.0),
    "DCGM_FI_DEV_XID_ERRORS": (145, -1),
}


@pytest.mark.parametrize(("series", "bounds"), BOUNDS.items(), ids=BOUNDS)
def test_values_outside_the_range_of_a_field_are_not_clamped(
    series: str, bounds: tuple[float, float]
) -> None:
    world = World(make_pod("p"))
    good, bad = bounds
    world.scrape(row(series, bad, "p"), 100.0)
    assert world.value("p", series, 100.0) == "no_value"
    world.scrape(row(series, good, "p"), 105.0)
    assert world.value("p", series, 105.0) == good


BLANKS = (
    *range(2147483632, 2147483636),
    *range(9223372036854775792, 9223372036854775796),
    "9.223372036854776e+18",
    *(140737488355328.0 + i for i in range(4)),
    "NaN",
    "+Inf",
    "-Inf",
)


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("series", [UTIL, USED, POWER, "DCGM_FI_PROF_PCIE_TX_BYTES"])
def test_a_blank_value_is_missing_in_every_field(series: str, blank: object) -> None:
    world = World(make_pod("p"))
    world.scrape(row(series, blank, "p"), 100.0)
    assert world.value("p", series, 100.0) == "no_value"
    assert sum(world.store.rejects.totals.values()) == 1


def test_an_xid_is_the_last_code_and_not_a_count() -> None:
    world = World(make_pod("p"))
    for i, code in enumerate((31, 31, 43)):
        world.scrape(row("DCGM_FI_DEV_XID_ERRORS", code, "p"), 100.0 + 5 * i)
    assert world.value("p", "DCGM_FI_DEV_XID_ERRORS", 110.0) == 43


def test_an_upgrade_of_the_exporter_changes_names_and_labels_and_no_value() -> None:
    """4.8 to 4.9: another series name, unit, driver label and case of the host's label."""
    world = World(make_pod("p"))
    old = 'Hostname="n",DCGM_FI_DRIVER_VERSION="580"'
    new = 'hostname="n",DCGM_FI_SYSTEM_DRIVER_VERSION="580"'
    world.scrape(row(UTIL, 60, "p", more=old), 100.0)
    world.scrape(row(f"{UTIL}_RATIO", 0.8, "p", more=new), 105.0)
    answer = reading(world.read("p", "gpu_utilization", 105.0))
    assert (round(answer.value, 6), len(answer.devices)) == (80.0, 1)


def test_two_exporters_on_a_node_give_one_device_with_the_newest_value() -> None:
    world = World(make_pod("p"))
    world.scrape(row(USED, 5, "p"), 100.0, origin="http://one", node="n")
    world.scrape(row(USED, 7, "p"), 102.0, origin="http://two", node="n")
    assert world.value("p", USED, 102.0) == 7
    assert world.value("p", "gpu_count", 102.0) == 1
    assert reading(world.node("n", USED, 102.0)).value == 7
    assert world.count("conflict") == 1


def test_a_briefly_empty_exporter_page_removes_no_value() -> None:
    """It answers 200 with an empty body while it reloads."""
    world = World(make_pod("p"))
    world.scrape(row(UTIL, 50, "p"), 100.0)
    world.scrape("", 105.0)
    assert world.value("p", UTIL, 105.0) == 50
    assert world.value("p", UTIL, 165.0) == "stale"


def test_changing_labels_beside_the_identity_do_not_create_a_device() -> None:
    """HAMi's ``context`` and ``data``."""
    world = World(make_pod("p", gpus={"nvidia.com/gpumem": 100}))
    labels = 'podname="p",podnamespace="ml",ctrname="c",deviceuuid="GPU-0"'
    for i in range(3):
        line = f'vGPU_device_memory_usage_in_bytes{{{labels},context="{i}",data="{i * 7}"}} {i}\n'
        world.scrape(line, 100.0 + 5 * i)
    assert world.value("p", "gpu_memory_used_bytes", 110.0) == 2
    assert world.value("p", "gpu_count", 110.0) == 1


def test_time_waited_becomes_requests_waiting() -> None:
    """Triton without a pending count: 2 s of waiting per second are two requests."""
    world = World(make_pod("p", gpus={}))
    for i in range(3):
        line = f'nv_inference_queue_duration_us{{model="m",version="1"}} {i * 10_000_000}\n'
        world.scrape(line, 100.0 + 5 * i, pod=("ml", "p"), serves=True)
    assert world.value("p", "inference_requests_waiting", 110.0) == 2
