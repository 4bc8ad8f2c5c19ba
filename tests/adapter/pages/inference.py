"""Pages of inference servers describe the pod that serves them, with or without a GPU."""

from __future__ import annotations

from typing import Final

from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import World, captured_page, make_pod

VLLM: Final = "30_vllm_v1_qwen_full_page.prom"
TRTLLM: Final = "31_triton_trtllm.prom"
TRITON: Final = "32_triton_8_models.prom"
TGI: Final = "33_tgi.prom"


def _served(page: str, *, then: str = "", gpus: dict[str, int] | None = None) -> World:
    server = make_pod("server-0", gpus=gpus or {}, node="n")
    world = World(server, make_pod("beside-0", gpus={}, node="n"))
    url = "http://10.0.0.9:8000/metrics"
    for i, text in enumerate(filter(None, (captured_page(page), then))):
        world.scrape(
            text, 100.0 + 10 * i, origin=url, node="n", pod=("ml", "server-0"), serves=True
        )
    return world


def _beside() -> tuple[Line, ...]:
    return (Line("inference_requests_waiting", "server_not_scraped", "it serves no page"),)


SCENES: Final = {
    "30": Scene(
        pages=(VLLM,),
        build=lambda: _served(VLLM),
        now=100.0,
        says={
            "ml/server-0": (
                Line("vllm:num_requests_waiting", 0, "verbatim"),
                Line("vllm:num_requests_running", 0, "verbatim"),
                Line("vllm:kv_cache_usage_perc", 0, "verbatim, 0-1"),
                Line("inference_requests_waiting", 0, "the queue; a zero is a value"),
                Line("inference_requests_running", 0, "in batches"),
                Line("inference_kv_cache_utilization", 0, "percent"),
                Line("gpu_utilization", "no_gpu_in_spec", "no GPU's row, and no GPU"),
                Line("gpu_count", "no_gpu_in_spec", "an engine is not a GPU"),
            ),
            "ml/beside-0": _beside(),
        },
    ),
    "31": Scene(
        pages=(TRTLLM,),
        build=lambda: _served(TRTLLM),
        now=100.0,
        says={
            "ml/server-0": (
                Line("nv_inference_pending_request_count", 0, "verbatim"),
                Line("inference_requests_waiting", 1, "in TensorRT-LLM's own queue, none before"),
                Line("inference_requests_running", 1, "scheduled; 512 is a maximum, not a load"),
                Line("inference_kv_cache_utilization", 48.75, "fraction, in percent"),
                Line("nv_inference_queue_duration_us", "no_value", "no rate from one scrape"),
                Line("gpu_utilization", "no_gpu_in_spec", "not on the page"),
            ),
            "ml/beside-0": _beside(),
        },
    ),
    "32": Scene(
        pages=(TRITON,),
        build=lambda: _served(TRITON, gpus={"nvidia.com/gpu": 1}),
        now=100.0,
        says={
            "ml/server-0": (
                Line("nv_inference_pending_request_count", 0, "sum over three models"),
                Line("inference_requests_waiting", 0, "sum over three models"),
                Line("inference_requests_running", "metric_not_exported", "Triton does not say"),
                Line(
                    "inference_kv_cache_utilization", "metric_not_exported", "nor does it have one"
                ),
                Line("nv_inference_queue_duration_us", "no_value", "no rate from one scrape"),
                Line("nv_gpu_utilization", 0, "of the one GPU that it sees"),
                Line("gpu_utilization", 0, "no exporter speaks of its GPU"),
                Line("gpu_utilization_max", 0, "of one"),
                Line("gpu_utilization_imbalance", 0, "of one"),
                Line("gpu_utilization_of_request", 0, "it asks for the whole"),
                Line("nv_gpu_memory_used_bytes", 266338304, "verbatim"),
                Line("nv_gpu_memory_total_bytes", 16106127360, "verbatim"),
                Line("gpu_memory_used_bytes", 266338304, "the same"),
                Line("gpu_memory_total_bytes", 16106127360, "the same"),
                Line("gpu_memory_headroom_bytes", 15839789056, "the rest"),
                Line("gpu_memory_utilization", 100 * 266338304 / 16106127360, "used of total"),
                Line("gpu_count", 1, "a row of it was heard"),
            ),
            "ml/beside-0": _beside(),
        },
    ),
    "33": Scene(
        pages=(TGI,),
        build=lambda: _served(TGI),
        now=100.0,
        says={
            "ml/server-0": (
                Line("tgi_queue_size", 0, "a row without any label"),
                Line("tgi_batch_current_size", 0, "verbatim"),
                Line("inference_requests_waiting", 0, "the queue"),
                Line("inference_requests_running", 0, "the batch"),
                Line("inference_kv_cache_utilization", "metric_not_exported", "not on the page"),
            ),
            "ml/beside-0": _beside(),
        },
    ),
}
