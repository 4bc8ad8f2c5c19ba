"""The metric that an unknown name probably means; every tool suggests the same one."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.trigger import compile_trigger
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.runner import run
from tests.adapter.clientapi import api_server, status_of
from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.clean import clean, hpa, metric
from tests.adapter.tools.explain.cluster import CUSTOM, NS, World, gpu_metric

CATALOG = Catalog()
SERVED = tuple(CATALOG.metrics)


MEANT = """
gpu_utilisation                       70    gpu_utilization
gpu-utilization                       -     gpu_utilization
GPU_Utilization                       -     gpu_utilization
gpuUtilization                        70    gpu_utilization
gpu_util                              70    gpu_utilization
gpu_utilizaton                        0.7   gpu_utilization
gpu_utilization_average               70    gpu_utilization
gpu_utilization_percent               75    gpu_utilization
gpu_utilization_percentage            70    gpu_utilization
gpu_utilization_rate                  70    gpu_utilization
gpu_usage                             70    gpu_utilization
nvidia_gpu_utilization                80    gpu_utilization
nvidia_gpu_duty_cycle                 80    gpu_utilization
container_gpu_utilization             70    gpu_utilization
dcgm_fi_dev_gpu_utl                   70    DCGM_FI_DEV_GPU_UTIL
dcgm_gpu_utilization                  70    DCGM_FI_DEV_GPU_UTIL
DCGM_FI_DEV_GPU_UTILIZATION           70    DCGM_FI_DEV_GPU_UTIL
DCGM_FI_DEV_MEM_USED                  8000  DCGM_FI_DEV_FB_USED
gpu_mem_used_bytes                    -     gpu_memory_used_bytes
gpu_memory_usage_bytes                8e9   gpu_memory_used_bytes
nvidia_gpu_memory_used_bytes          8e9   gpu_memory_used_bytes
gpu_memory_usage                      8e9   gpu_memory_used_bytes
gpu_memory_usage                      80    gpu_memory_utilization
gpu_memory_used_percent               80    gpu_memory_utilization
gpu_power_draw                        250   gpu_power_watts
inference_queue_depth                 10    inference_requests_waiting
inference_queue_length                20    inference_requests_waiting
inference_queue_size                  5     inference_requests_waiting
inference_queue_pending_requests      5     inference_requests_waiting
inference_requests_queued             5     inference_requests_waiting
inference_requests_pending            5     inference_requests_waiting
vllm_queue_depth                      5     inference_requests_waiting
vllm_queue_backlog_per_replica        5     inference_requests_waiting
vllm_pending_requests                 50    inference_requests_waiting
vllm_waiting_requests                 3     inference_requests_waiting
vllm_request_queue_size               100   inference_requests_waiting
vllm:num_waiting_seqs                 3     inference_requests_waiting
sglang_num_queue_requests             5     inference_requests_waiting
vllm_num_requests_waiting             5     vllm:num_requests_waiting
inference_pool_queue_size             1     inference_gateway_requests_waiting
inference_requests_in_flight          5     inference_requests_running
inference_active_requests             5     inference_requests_running
inference_request_rate                10    inference_requests_per_second
inference_rps                         10    inference_requests_per_second
inference_latency_p95                 0.5   inference_request_seconds_p95
inference_ttft_p95                    0.5   inference_time_to_first_token_seconds_p95
vllm_gpu_cache_usage_perc             0.8   vllm:kv_cache_usage_perc
"""
"""Names of public HPAs and ScaledObjects, targets, and the metric of the same quantity."""


@pytest.mark.parametrize("row", MEANT.strip().splitlines())
def test_the_metric_that_is_meant_measures_the_same(row: str) -> None:
    name, target, meant = row.split()
    near = nearest_metrics(name, SERVED, None if target == "-" else Decimal(target))
    assert near == (meant, ())


@pytest.mark.parametrize(
    ("name", "target", "alike"),
    [
        ("gpu_utilization_ratio", "0.7", "gpu_utilization (percent)"),
        ("gpu_utilization_p95", "70", "gpu_utilization (percent)"),
        ("gpu_memory", "80", "gpu_memory_used_bytes (bytes)"),
        ("gpu_mem_used", "70", "gpu_memory_used_bytes (bytes)"),
        ("gpu_memory_used_mb", "8000", "gpu_memory_used_bytes (bytes)"),
        ("gpu_memory_used_percent", "0.8", "gpu_memory_utilization (percent)"),
        ("DCGM_FI_DEV_MEM_UTIL", "80", "DCGM_FI_DEV_FB_USED_PERCENT (ratio)"),
        ("inference_latency", "500", "inference_request_seconds_mean (s)"),
        ("inference_latency_milliseconds", "100", "inference_request_seconds_mean (s)"),
        ("inference_request_duration_seconds", "1", "inference_request_seconds_p50 (s)"),
        ("inference_requests_total", "50", "inference_requests_per_second (requests per second)"),
        ("inference_queue_seconds", "2", "inference_queue_seconds_p50 (s)"),
        ("triton_queue_time", "5", "inference_queue_seconds_mean (s)"),
    ],
)
def test_where_no_metric_is_meant_those_alike_are_listed_with_their_units(
    name: str, target: str, alike: str
) -> None:
    """Another quantity, another unit, a target that is none in the unit, or several statistics."""
    near = nearest_metrics(name, SERVED, Decimal(target))
    assert (near.meant, near.alike[0]) == ("", alike)
    assert alike in near.question


@pytest.mark.parametrize(
    "name",
    [
        *("http_requests_per_second", "http_requests", "cpu_utilization", "tpu_utilization"),
        *("queue", "queue_length", "", "g" * 10_000, "ab_" * 10_000),
    ],
)
def test_no_metric_is_near_a_name_of_other_programs(name: str) -> None:
    near = nearest_metrics(name, SERVED)
    assert not near.exist
    assert not near.question


def test_a_metric_of_the_user_is_suggested_too() -> None:
    assert nearest_metrics("my_tokns", (*SERVED, "my_tokens")).meant == "my_tokens"


def test_a_metric_that_is_not_served_is_not_suggested() -> None:
    assert not nearest_metrics("gpu_utilisation", ["gpu_power_watts"]).meant


TARGETS = {Unit.PERCENT: 70, Unit.RATIO: 0.7, Unit.BYTES: 8e9, Unit.MEBIBYTES: 8000}


def test_a_metric_that_is_meant_has_the_unit_scope_and_statistic_of_the_name() -> None:
    """The name is that of a served metric, with a word that says nothing."""
    wrong = []
    for name in CATALOG.principal:
        metric = CATALOG.metrics[name]
        near = nearest_metrics(f"{name}_value", SERVED, TARGETS.get(metric.unit))
        if near.meant:
            meant = CATALOG.metrics[near.meant]
            rows = (metric, meant)
            pairs = {(row.unit, row.scope, row.percentile, row.kind.name) for row in rows}
            if len(pairs) > 1:
                wrong.append(f"{name} -> {near.meant}")
    assert wrong == []


@pytest.mark.parametrize("name", ["gpu_utilisation", "gpu_util", "gpu_mem_used", "http_requests"])
def test_doctor_explain_and_the_scaler_suggest_the_same(name: str, tmp_path: Path) -> None:
    facts = clean()
    facts.hpas = Fact([hpa(metric(name))])
    (result,) = run(facts, ("GMA401",))
    (finding,) = result.findings
    suggested = re.findall(r"did you mean (\S+)\?", finding.message)

    world = World().hpa(gpu_metric(name=name)).pod("llm-7f9", "92")
    missing = status_of(404, f"the server could not find the metric {name} for pods", "NotFound")
    world.answer(f"{CUSTOM}/{name}", (404, missing))
    with api_server(tmp_path) as (server, kubeconfig):
        world.serve(server)
        server.answers["/apis/custom.metrics.k8s.io/v1beta2"] = {
            "resources": [{"name": f"pods/{metric_name}"} for metric_name in SERVED]
        }
        ended = invoke(
            "explain", "hpa", "llm", "-n", NS, "-o", "json", "--kubeconfig", str(kubeconfig)
        )
    fixes = " ".join(block["fix"] for block in json.loads(ended.output)["blocks"])
    assert re.findall(r'"value":"(\w+)"', fixes) == suggested

    with pytest.raises(BadTrigger) as error:
        compile_trigger({"metric": name, "target": "70"}, SERVED)
    assert re.findall(r"did you mean (\S+)\?", str(error.value)) == suggested
