"""Inference servers with their pages, and readings of their pods."""

from __future__ import annotations

from typing import Any

from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.world import CATALOG, World

T = 1_700_000_000.0
WAITING = "inference_requests_waiting"
VLLM = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_running{engine="0",model_name="qwen"} 4.0
vllm:num_requests_running{engine="1",model_name="qwen"} 2.0
vllm:num_requests_waiting{engine="0",model_name="qwen"} 3.0
vllm:num_requests_waiting{engine="1",model_name="qwen"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="qwen",reason="capacity"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="qwen"} 0.25
"""


def serve(world: World, page: str, time: float = T, pod: tuple[str, str] = ("ml", "llm")) -> None:
    """Ingest the page of a pod."""
    read = parse(page.encode(), time=time, wanted=CATALOG.series)
    origin = f"http://{pod[1]}:8000/metrics"
    world.store.ingest(
        ScrapeResult(origin, "n1", read.samples, time, read.rejects, pod, serves=True)
    )


def store(world: World, page: str, target: dict[str, str], origin: str = "10.0.0.5:8000") -> None:
    """Ingest the same samples as Prometheus stores them, with target labels."""
    read = parse(page.encode(), time=T, wanted=CATALOG.series)
    rows = [Sample(r.name, dict(r.labels) | target, r.value, r.time) for r in read.samples]
    world.store.ingest(ScrapeResult(origin, None, rows, T, read.rejects))


SCRAPES: dict[str, dict[str, str]] = {
    "PodMonitor": {
        "pod": "llm",
        "namespace": "ml",
        "container": "server",
        "instance": "10.0.0.5:8000",
        "job": "ml/llm",
    },
    "a job named after the pods": {
        "pod": "llm",
        "namespace": "ml",
        "job": "llm",
        "instance": "10.0.0.5:8000",
    },
    "handed on with honor_labels": {"pod": "llm", "namespace": "ml", "instance": "c:1"},
    "Google": {"instance": "llm:metrics", "namespace": "ml", "job": "llm", "cluster": "c"},
}


def rows_at(time: float) -> Any:
    return parse(b"tgi_queue_size 8\n", time=time).samples


def page(pod: str) -> ScrapeResult:
    rows = rows_at(T)
    return ScrapeResult(f"http://{pod}:80/metrics", "n1", rows, T, {}, ("ml", pod), serves=True)
