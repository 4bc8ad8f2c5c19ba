"""The metric that an unknown name probably means; every tool suggests the same one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.trigger import compile_trigger
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.nearest import nearest_metric
from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.runner import run
from tests.adapter.clientapi import api_server, status_of
from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.clean import clean, hpa, metric
from tests.adapter.tools.explain.cluster import CUSTOM, NS, World, gpu_metric

SERVED = tuple(Catalog().metrics)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpu_utilisation", "gpu_utilization"),
        ("gpu-utilization", "gpu_utilization"),
        ("GPU_Utilization", "gpu_utilization"),
        ("gpu_util", "gpu_utilization"),
        ("gpu_mem_used_bytes", "gpu_memory_used_bytes"),
        ("dcgm_fi_dev_gpu_utl", "DCGM_FI_DEV_GPU_UTIL"),
        ("http_requests_per_second", ""),
        ("queue", ""),
        ("", ""),
        ("g" * 10_000, ""),
    ],
)
def test_the_nearest_metric(name: str, found: str) -> None:
    assert nearest_metric(name, SERVED) == found


def test_a_metric_of_the_user_is_suggested_too() -> None:
    assert nearest_metric("my_tokns", (*SERVED, "my_tokens")) == "my_tokens"


def test_a_metric_that_is_not_served_is_not_suggested() -> None:
    assert nearest_metric("gpu_utilisation", ["gpu_power_watts"]) == ""


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
