"""Faults of inference servers (GMA501 to GMA505)."""

from __future__ import annotations

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.page import ExporterPage, Trouble, reduce_page
from tests.adapter.tools.doctor.clean import (
    container,
    own_workload,
    pod,
)
from tests.adapter.tools.doctor.faults.register import fault

HTTP = "inference"


def server_pod(image: str, **notes: str) -> SeenPod:
    ports = [{"name": "http", "containerPort": 8000}]
    words = {f"gpu-metrics-adapter.io/{key}": value for key, value in notes.items()}
    return pod("vllm-1", containers=[container(image, ports=ports)], annotations=words)


VLLM = "docker.io/vllm/vllm-openai:v0.10.0"


@fault("GMA501")
def silent_server(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM)])


@fault("GMA502")
def unknown_port(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true", port="metrics")])


def server_trouble(facts: Facts, trouble: Trouble | None, detail: str) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true")])
    page = ExporterPage("chat/vllm-1", "gpu-a", HTTP, ":8000/metrics", trouble, detail)
    facts.server_pages = Fact({"chat/vllm-1": page})


@fault("GMA502")
def nobody_listens(facts: Facts) -> None:
    server_trouble(facts, Trouble.REFUSED, "connection refused")


@fault("GMA503")
def not_found(facts: Facts) -> None:
    server_trouble(facts, Trouble.STATUS, "HTTP status 404")


@fault("GMA504")
def no_queue(facts: Facts) -> None:
    server_trouble(facts, Trouble.EMPTY, "no line of a metrics page that the adapter knows")


def page_of(facts: Facts, image: str, body: bytes) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(image, scrape="true")])
    blank = ExporterPage("chat/vllm-1", "gpu-a", HTTP, ":8000/metrics")
    facts.server_pages = Fact({"chat/vllm-1": reduce_page(body, blank, now=facts.now)})


PENDING = b'nv_inference_pending_request_count{model="m",version="1"} 0\n'
TRITON = "nvcr.io/nvidia/tritonserver:25.08-vllm-python-py3"


@fault("GMA504")
def triton_without_the_series_of_vllm(facts: Facts) -> None:
    page_of(facts, TRITON, PENDING)


@fault("GMA504")
def triton_with_counters_of_vllm_only(facts: Facts) -> None:
    counter = b'vllm:prompt_tokens_total{model="m",version="1"} 9\n'
    page_of(facts, "registry.example/own-triton:1", PENDING + counter)


@fault("GMA505")
def turned_off(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true")])
    config = "source: {scrape: {inference: {enabled: false}}}\n"
    facts.release = Fact(own_workload(config))


@fault("GMA505")
def one_address(facts: Facts) -> None:
    server = server_pod(VLLM, scrape="true")
    twin = pod(
        "vllm-2",
        containers=[container(VLLM, ports=[{"name": "http", "containerPort": 8000}])],
        annotations={"gpu-metrics-adapter.io/scrape": "true"},
        status={"podIP": server.pod.ip, "podIPs": [{"ip": server.pod.ip}]},
    )
    facts.pods = Fact([*facts.pods.read(), server, twin])
