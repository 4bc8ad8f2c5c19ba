"""Captured and constructed pages, read where they lie: pods in, values or absences out."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from adapter.batch import Batch, Row
from adapter.exposition import parse
from tests.adapter.telemetryworld import CATALOG, World, make_pod, reading, said, shared_page

UTIL = "gpu_utilization"
VERBATIM = "DCGM_FI_DEV_GPU_UTIL"
MEMORY = "gpu_memory_used_bytes"
MIB = 1048576


class Says(NamedTuple):
    page: str
    pod: str
    metric: str
    value: float | str
    namespace: str = "ml"


TABLE = [
    Says("cases/02_exported_labels.prom", "llm-0", UTIL, 87.0),
    Says("cases/03_timeslice_flap.prom", "gpu-pod-c69f6664f-vkkcb", UTIL, 71.0, "default"),
    Says("cases/03_timeslice_flap.prom", "gpu-pod-c69f6664f-2v922", UTIL, "no_rows", "default"),
    Says("cases/04_vgpu_copies_4_0_3_to_4_8_1.prom", "llm-a", UTIL, 71.0),
    Says("cases/04_vgpu_copies_4_0_3_to_4_8_1.prom", "llm-b", UTIL, 71.0),
    Says("cases/05_vgpu_per_process_4_8_2.prom", "llm-a", UTIL, 62.0),
    Says("cases/05_vgpu_per_process_4_8_2.prom", "llm-b", UTIL, 31.0),
    Says("cases/05_vgpu_per_process_4_8_2.prom", "llm-c", UTIL, "no_value"),
    Says("cases/05_vgpu_per_process_4_8_2.prom", "llm-d", UTIL, "no_value"),
    Says("cases/06_mig_mixed.prom", "mig-a", UTIL, 40.8493),
    Says("cases/06_mig_mixed.prom", "mig-b", UTIL, 50.0),
    Says("cases/06_mig_mixed.prom", "whole-0", UTIL, 92.0),
    Says("cases/06_mig_mixed.prom", "mig-a", VERBATIM, "no_value"),
    Says("cases/06_mig_mixed.prom", "mig-a", MEMORY, 4384.0 * MIB),
    *(Says("cases/07_sentinels_and_corruption.prom", f"s-{i}", UTIL, "no_value") for i in range(6)),
    Says("cases/07_sentinels_and_corruption.prom", "s-6", UTIL, 100.0),
    Says("cases/07_sentinels_and_corruption.prom", "mig-a", "gpu_sm_activity", "no_value"),
    Says("cases/08_legacy_namespace.prom", "llm-0", UTIL, 55.0),
    Says("cases/08_legacy_namespace.prom", "llm-0", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.508246),
    Says("cases/09_exporter_4_9_renames_mixed_fleet.prom", "llm-0", UTIL, 87.0),
    Says("cases/09_exporter_4_9_renames_mixed_fleet.prom", "llm-1", UTIL, 64.0),
    Says("cases/09_exporter_4_9_renames_mixed_fleet.prom", "llm-2", UTIL, 87.0),
    Says("cases/09_exporter_4_9_renames_mixed_fleet.prom", "llm-0", MEMORY, 39845888000.0),
    Says("cases/09_exporter_4_9_renames_mixed_fleet.prom", "llm-1", MEMORY, 38000.0 * MIB),
    Says("cases/10_multi_gpu_multi_container.prom", "train-0", UTIL, 50.0),
    Says("cases/10_multi_gpu_multi_container.prom", "pair-0", UTIL, 50.0),
    Says("cases/10_multi_gpu_multi_container.prom", "pair-0", "gpu_count", 2.0),
    Says("cases/10_multi_gpu_multi_container.prom", "train-0", "DCGM_FI_DEV_XID_ERRORS", 31.0),
    Says(
        "01_dcgm_T4x2_one_assigned_empty_labels.prom",
        "runai-reservation-gpu-qa-mig-worker-gpu-1-kvltw",
        "gpu_memory_utilization",
        round(100 * 128 / (128 + 14831), 6),
        "runai-reservation",
    ),
    Says(
        "20_dcgm_H100x8_direct_page.prom",
        "vllm-agg-0-vllmdecodeworker-5fljt",
        "gpu_power_watts",
        115.22,
        "dynamo-workload",
    ),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda c: f"{c.page[:8]}-{c.pod}-{c.metric}")
def test_what_a_page_says_of_a_pod(case: Says) -> None:
    gpus = {"nvidia.com/gpu": 2} if case.pod in ("train-0", "pair-0") else {"nvidia.com/gpu": 1}
    world = World(make_pod(case.pod, namespace=case.namespace, gpus=gpus, uid=uid(case.pod)))
    world.scrape(shared_page(case.page), 100.0)
    assert said(world.read(case.pod, case.metric, 100.0, namespace=case.namespace)) == case.value


def uid(pod: str) -> str:
    """The uid that the page of per-process rows gives this pod."""
    return f"1843d150-0000-4000-8000-00000000000{pod[-1]}"


def test_an_unassigned_device_belongs_to_nobody_in_all_three_spellings() -> None:
    exporter = make_pod("dcgm-exporter-dev-78z52", namespace="monitoring", gpus={})
    world = World(exporter)
    world.scrape(shared_page("cases/01_idle_three_spellings.prom"), 100.0, node="gpu-node-1")
    answer = world.read(exporter.ref.name, UTIL, 100.0, namespace="monitoring")
    assert said(answer) == "self_attribution"
    assert world.count("self_attribution") == 1
    assert reading(world.node("gpu-node-1", "gpu_count", 100.0)).value == 3


def test_a_time_sliced_device_is_the_last_pods_until_it_is_another_pods() -> None:
    names = ("gpu-pod-c69f6664f-vkkcb", "gpu-pod-c69f6664f-2v922")
    world = World(*(make_pod(name, namespace="default") for name in names))
    for time, page in ((100.0, "03_timeslice_flap"), (105.0, "03b_timeslice_flap_next_scrape")):
        world.scrape(shared_page(f"cases/{page}.prom"), time)
    answers = [said(world.read(name, UTIL, 105.0, namespace="default")) for name in names]
    assert answers == ["no_rows", 71.0]


def test_four_unattributed_mig_instances_are_four_devices_of_their_node() -> None:
    world = World()
    world.scrape(shared_page("02_dcgm_A100_MIG_4_instances_unattributed.prom"), 100.0, node="n")
    found = reading(world.node("n", "gpu_count", 100.0))
    assert len({device.device for device in found.devices}) == found.value


def test_three_mig_instances_are_measured_apart() -> None:
    world = World()
    world.scrape(shared_page("04_dcgm_A100_MIG_2x1g5gb_2g10gb.prom"), 100.0, node="n")
    found = reading(world.node("n", UTIL, 100.0))
    assert [round(device.value, 4) for device in found.devices] == [0.0036, 0.0062, 99.9917]
    busy = reading(world.node("n", UTIL, 100.0, "mig_profile=2g.10gb"))
    assert busy.value == pytest.approx(0.0036)
    power = reading(world.node("n", "gpu_power_watts", 100.0))
    assert len(power.devices) == 1


@pytest.mark.parametrize(
    "name",
    [
        "10_dcgm_vgpu_guest_GRID_A100-8C_full_default_scrape.prom",
        "11_issue_excerpts_real_lines.prom",
        "12_amd_device_metrics_exporter_real_lines.prom",
        "30_vllm_v1_qwen_full_page.prom",
        "31_triton_trtllm.prom",
        "32_triton_8_models.prom",
        "33_tgi.prom",
        "40_hami_vgpu_monitor.prom",
        "41_intel_xpum_lines.prom",
        "42_amd_lines.prom",
        "43_dcgm_dra_mig_line.prom",
    ],
)
def test_a_real_page_is_read_without_a_bad_line(name: str) -> None:
    page = parse((shared_page(name) + "\n").encode(), time=100.0)
    assert page.rows
    assert page.rejects == {}


def test_a_claimed_mig_instance_has_an_identity_without_an_instance_id() -> None:
    world = World()
    text = shared_page("43_dcgm_dra_mig_line.prom").replace(
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    )
    world.scrape(text + "\n", 100.0, node="n")
    (device,) = reading(world.node("n", UTIL, 100.0)).devices
    assert device.device.endswith("/MIG-24c6a0e5-fe28-53ac-9537-c4e23104f30f")
    assert device.labels["mig_profile"] == "1g.12gb"


def test_prometheus_answers_of_eight_devices_belong_to_the_one_pod_that_holds_one() -> None:
    """``honorLabels: false``: the workload in ``exported_*``, ``pod`` is the exporter's."""
    exporter = make_pod("nvidia-dcgm-exporter-hblfm", namespace="gpu-operator", gpus={})
    worker = make_pod("vllm-agg-0-vllmdecodeworker-5fljt", namespace="dynamo-workload")
    world = World(exporter, worker)
    for name in ("FB_USED", "GPU_UTIL", "POWER_USAGE"):
        answer = json.loads(shared_page(f"20_promapi_honorlabels_false_{name}.json"))
        rows = []
        for result in answer["data"]["result"]:
            labels = dict(result["metric"])
            time, value = result["value"]
            rows.append(Row(labels.pop("__name__"), labels, float(value), time))
        world.store.ingest(Batch("100.65.85.64:9400", None, rows, 1771529466.0))
    now = 1771529466.0
    found = {
        metric: said(world.read(worker.ref.name, metric, now, namespace="dynamo-workload"))
        for metric in (UTIL, MEMORY, "gpu_power_watts", "gpu_count")
    }
    assert found == {UTIL: 0.0, MEMORY: 74198.0 * MIB, "gpu_power_watts": 115.215, "gpu_count": 1.0}
    assert world.count("self_attribution") == 21
    assert set(CATALOG.series) > {f"DCGM_FI_DEV_{n}" for n in ("FB_USED", "GPU_UTIL")}
