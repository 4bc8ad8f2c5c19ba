"""docs/inference.md names what is read of which server, and its pod is one that is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from adapter.catalog import FIELDS as BUILT_IN
from adapter.catalog import Catalog
from adapter.catalog.serverkinds import KINDS
from adapter.cluster.gpuresources import GpuResources
from adapter.cluster.manifest import PodDecoder, PodManifest
from adapter.cluster.optin import PREFIX
from adapter.hpa import Observation, PodState, from_manifest
from adapter.settings.cluster import ClusterSettings
from adapter.sources.scrape.serverpages import ServerPages
from adapter.sources.scrape.target import ScrapeTarget
from tests.proposals import propose

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "inference.md").read_text(encoding="utf-8")
CHART = "charts/gpu-metrics-adapter"
METRICS = (
    "inference_requests_waiting",
    "inference_requests_running",
    "inference_kv_cache_utilization",
)
SERVERS = {
    "vLLM, also behind Ray": "vllm:",
    "SGLang": "sglang:",
    "TGI": "tgi_",
    "Triton": "nv_inference_",
    "Triton with TensorRT-LLM": "nv_",
    "TensorRT-LLM (`trtllm-serve`)": "trtllm_",
    "NVIDIA NIM": "vllm:",
    "text-embeddings-inference": "te_",
    "llama.cpp": "llamacpp:",
}
"""First cell of the page's table -> how the server's series begin."""
FIELDS = {field.name: field for field in BUILT_IN}


def manifests(kind: str) -> list[dict[str, Any]]:
    """The page's manifests of a kind."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [found for found in map(yaml.safe_load, blocks) if found.get("kind") == kind]


def is_read(metric: str, prefix: str) -> bool:
    """Some way to the metric begins with a series of the server."""
    fields = [name for formula in Catalog().metrics[metric].formulas for name in formula.fields]
    series = {FIELDS[name].series or name for name in fields}
    return any(name.startswith(prefix) for name in series)


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_read_of_a_server_is_what_the_table_says(server: str) -> None:
    line = re.findall(rf"^\| {re.escape(server)} \|(.*)\|$", PAGE, re.MULTILINE)[0]
    shown = [cell.strip() in ("yes", "older builds") for cell in line.split("|")]
    assert shown == [is_read(metric, SERVERS[server]) for metric in METRICS]


def test_the_ports_and_paths_are_those_that_doctor_assumes() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|", PAGE, re.MULTILINE))
    titles = {
        "Dynamo's workers": "dynamo",
        "Dynamo's frontend": "dynamo-frontend",
        "endpoint picker": "endpoint-picker",
    }
    named = {kind.title: name for name, kind in KINDS.items()}
    shown = {titles.get(row) or named[row]: int(port) for row, port in rows.items()}
    assert shown == {name: kind.port for name, kind in KINDS.items()}
    for kind in KINDS.values():
        assert kind.path == "/metrics" or f"path `{kind.path}`" in PAGE


def test_the_charts_network_policy_lets_the_adapter_reach_the_pages() -> None:
    values = yaml.safe_load((PAGES.parent / CHART / "values.yaml").read_text(encoding="utf-8"))
    ports = values["networkPolicy"]["inferencePorts"]
    assert {kind.port for kind in KINDS.values()} <= set(ports)


def test_the_pod_of_the_deployment_is_scraped_at_its_port() -> None:
    (deployment,) = manifests("Deployment")
    template = deployment["spec"]["template"]
    running = {"phase": "Running", "podIP": "192.0.2.7"} | {
        "conditions": [{"type": "Ready", "status": "True"}]
    }
    meta = template["metadata"] | {"name": "llm-0", "namespace": "default", "uid": "u"}
    pod = template | {"metadata": meta, "status": running}
    decoder = PodDecoder(GpuResources(ClusterSettings().gpu_resources))
    target = ServerPages().of(decoder.reduce(msgspec.convert(pod, PodManifest)))
    assert isinstance(target, ScrapeTarget)
    assert target.url == "http://192.0.2.7:8000/metrics"


def test_every_annotation_named_is_one() -> None:
    named = set(re.findall(rf"{re.escape(PREFIX)}(\w+)", PAGE))
    assert named == {"scrape", "port", "path", "scheme"}


def test_hpas_and_triggers_ask_for_what_there_is() -> None:
    (hpa,) = manifests("HorizontalPodAutoscaler")
    asked = [metric["pods"]["metric"]["name"] for metric in hpa["spec"]["metrics"]]
    (scaled,) = manifests("ScaledObject")
    asked += [trigger["metadata"]["metric"] for trigger in scaled["spec"]["triggers"]]
    assert set(asked) - {"gateway_backlog"} <= set(Catalog().metrics)


def test_the_queue_alone_would_scale_in_what_the_load_needs() -> None:
    """Four replicas at work, none of them full."""
    running, waiting = from_manifest(manifests("HorizontalPodAutoscaler")[0]).metrics
    pods = [PodState(name) for name in "abcd"]
    seen = Observation(4, pods, [])
    busy = propose(running, dict.fromkeys("abcd", 23_000), seen, "default")[0]
    calm = propose(waiting, dict.fromkeys("abcd", 0), seen, "default")[0]
    assert (busy, calm) == (4, 0)
