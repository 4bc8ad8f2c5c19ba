"""Pages of pods, from real HTTP servers through the real `serve` to the API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.adapter.serving import Exporter, Lab

PAGES = {
    "vllm": 'vllm:num_requests_waiting{engine="0",model_name="m"} 3.0\n'
    'vllm:num_requests_waiting{engine="1",model_name="m"} 4.0\n'
    'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n',
    "triton": 'nv_inference_pending_request_count{model="a",version="1"} 5\n'
    'nv_inference_pending_request_count{model="b",version="1"} 6\n',
    "tgi": "tgi_queue_size 12\n\ntgi_batch_current_size 2\n",
    "sglang": 'sglang:num_queue_reqs{model_name="m",tp_rank="0"} 13.0\n',
}
WAITING = {"vllm": "7", "triton": "11", "tgi": "12", "sglang": "13"}
PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns"


@pytest.fixture
def servers() -> Iterator[dict[str, Exporter]]:
    """An HTTP server per kind of inference server."""
    made = {name: Exporter() for name in PAGES}
    for name, server in made.items():
        server.page = PAGES[name].encode()
    yield made
    for server in made.values():
        server.close()


def pod(name: str, port: str) -> dict[str, Any]:
    """A pod without a GPU whose page is on this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "labels": {"app": "inference"},
            "annotations": {
                "gpu-metrics-adapter.io/scrape": "true",
                "gpu-metrics-adapter.io/port": port,
            },
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "server"}]},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def values(client: httpx.Client, path: str) -> dict[str, str]:
    answer = client.get(f"{PATH}/{path}")
    if answer.status_code != 200:
        return {}
    return {item["describedObject"]["name"]: item["value"] for item in answer.json()["items"]}


def test_pods_that_opt_in_get_values_from_their_own_pages(
    tmp_path: Path, servers: dict[str, Exporter]
) -> None:
    lab = Lab(tmp_path, servers["vllm"])
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": "ns"},
        "spec": {"selector": {"app": "inference"}},
    }
    pods = [pod(name, str(httpx.URL(server.url).port)) for name, server in servers.items()]
    wrong = pod("wrong", "abc")
    wrong["metadata"]["labels"] = {}
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([*pods, wrong, service]))
    lab.config["source"]["scrape"]["targets"] = []
    with lab.serving() as serving, serving.client() as client:
        deadline = time.monotonic() + 30
        while values(client, "pods/*/inference_requests_waiting") != WAITING:
            assert time.monotonic() < deadline, serving.log
            time.sleep(0.05)
        assert values(client, "services/front/inference_requests_waiting") == {"front": "43"}
        assert values(client, "pods/*/inference_kv_cache_utilization") == {"vllm": "50"}
        assert values(client, "pods/*/gpu_utilization") == {}
        assert serving.wait_for("pod cannot be scraped")["pod"] == "wrong"
