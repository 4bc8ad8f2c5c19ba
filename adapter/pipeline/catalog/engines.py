"""Inference servers that run a model themselves: what each one's page says about its requests.

Only exact names are read: ``vllm:num_requests_waiting_by_reason`` sums up to the same queue.

- vLLM: ``vllm/v1/metrics/loggers.py``. In Triton its parts are called ``model``
  (vllm_backend, ``src/utils/metrics.py``).
- vLLM-Omni: ``vllm_omni/metrics/definitions.py`` and ``prometheus.py``. Its own series describe the
  whole pipeline; vLLM's, beside them, describe each ``stage``. Its counters of tokens add up those
  of all stages, of which each reads what the one before has written, so they are not read.
- SGLang: ``python/sglang/srt/metrics/collector.py``. With prefill and decode apart, requests wait
  in further queues before they reach the waiting queue. SGLang's own load counts them
  (sglang#13203, #32122).
- TGI: ``docs/source/reference/metrics.md``. text-embeddings-inference: ``core/src/queue.rs``,
  ``router/src/lib.rs`` and ``router/src/http/server.rs``; it writes its queue from the first
  request on, and no number of running requests. A batch counts as one request.
- NVIDIA NIM 1 writes vLLM's names without the prefix, for every engine ("Observability for NVIDIA
  NIM for LLMs"), and TensorRT-LLM 1.0 does so too. TensorRT-LLM:
  ``tensorrt_llm/metrics/collector.py``, which ``trtllm-serve`` and Dynamo's workers serve; the
  workers of Dynamo 0.6 write ``trtllm:`` before the names of 1.0 (dynamo#3676).
- llama.cpp: ``tools/server/server-context.cpp`` and ``README.md``; only older builds write the use
  of the KV cache. As a router of several models it answers for the ``model`` that the query names,
  and for none without it (llama.cpp#19346, #24851).
- LMDeploy: ``lmdeploy/metrics/loggers.py`` (0.16). ``num_api_requests_waiting`` counts what the API
  server has not handed to its engine, and the engine's requests too, so it is not added. Its time
  per output token is that of a step, divided by the step's tokens, and each step counts
  (``lmdeploy/metrics/stats.py``).
- FastDeploy: ``fastdeploy/metrics/metrics.py`` and ``fastdeploy/output/token_processor.py``; its
  time per output token is that between two results. The first token counts from the arrival of a
  request, and before release 2.3 from the start of its inference, without the queue. LightLLM:
  ``lightllm/server/router/manager.py``, ``server/metrics/metrics.py`` and
  ``server/httpserver/manager.py``. It writes ``lightllm_request_duration`` and, since July 2025,
  the histogram of its queue's time, and never counts in them, so they are not read. Its time of
  inference is that of the whole request. Neither writes labels of parts.
- MAX: ``max/python/max/serve/telemetry/metrics.py`` and ``common.py``; OpenTelemetry writes the
  dots as underscores and appends the unit. Its number of running requests counts those that its
  HTTP server holds, so those that wait too. Each part of an answer counts as one token.

The sets of labels identify the parts of a server. Every other label is from the scrape or the
store: labels of the target, of a replica of Prometheus, and labels that a ``labelmap`` copied.
"""

from __future__ import annotations

import re
from typing import Final

from adapter.pipeline.catalog.formulas import Scaled, Total, Unless
from adapter.pipeline.catalog.serverkind import (
    CACHE,
    ON_RAY,
    ONE_MODEL,
    RUNNING,
    WAITING,
    Scaling,
    ServerKind,
    cache,
    image_pattern,
    requests,
)
from adapter.pipeline.catalog.servermeasures import measures

VLLM_PARTS: Final = frozenset(("engine", "model_name", *ON_RAY))
SGLANG_PARTS: Final = frozenset(("model_name", "engine_type", "dp_rank", *ON_RAY))
"""The other ranks report the queue of the same scheduler (``--enable-metrics-for-all-schedulers``).
With priority scheduling, a page has the whole queue and the part of each ``priority``. The largest
value counts."""
_SGLANG_REQUESTS: Final = SGLANG_PARTS | {"is_streaming", "stream"}
"""Since July 2026, streamed requests count apart from others (sglang#32363, #32734). A user may
choose further labels (``--tokenizer-metrics-allowed-custom-labels``, sglang#10143)."""
_TENSORRT_LLM: Final = frozenset(("model_name", "engine_type"))
_LMDEPLOY: Final = frozenset(("model_name", "engine"))
_OMNI: Final = frozenset(("model_name",))
_LLAMACPP: Final = frozenset(("model",))

VLLM_WAITING: Final = "vllm:num_requests_waiting"
VLLM_RUNNING: Final = "vllm:num_requests_running"
VLLM_CACHE: Final = "vllm:kv_cache_usage_perc"
_OLD_CACHE: Final = "vllm:gpu_cache_usage_perc"
_OMNI_WAITING: Final = "vllm_omni:num_requests_waiting"
_OMNI_RUNNING: Final = "vllm_omni:num_requests_running"
SGLANG_WAITING: Final = "sglang:num_queue_reqs"
SGLANG_RUNNING: Final = "sglang:num_running_reqs"
SGLANG_CACHE: Final = "sglang:token_usage"
SGLANG_APART: Final = (
    "sglang:num_prefill_bootstrap_queue_reqs",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
)
"""Queues before the waiting queue. Older releases call the first one ``prefill_prealloc``."""
TGI_WAITING: Final = "tgi_queue_size"
TGI_RUNNING: Final = "tgi_batch_current_size"
TENSORRT_WAITING: Final = "trtllm_num_requests_waiting"
TENSORRT_RUNNING: Final = "trtllm_num_requests_running"
TENSORRT_CACHE: Final = "trtllm_kv_cache_utilization"
TEI_WAITING: Final = "te_queue_size"
LLAMACPP_WAITING: Final = "llamacpp:requests_deferred"
LLAMACPP_RUNNING: Final = "llamacpp:requests_processing"
LLAMACPP_CACHE: Final = "llamacpp:kv_cache_usage_ratio"
_MAX_QUEUED: Final = "maxserve_num_requests_queued"
_MAX_AWAITING: Final = "maxserve_num_requests_awaiting_admission"
_MAX_RUNNING: Final = "maxserve_num_requests_running"


def _metrics_on(option: str) -> str:
    return f"needs `{option}`"


def _both(*names: str) -> tuple[str, ...]:
    """Return vLLM's names, and the same as NIM 1 writes them."""
    return (*(f"vllm:{name}" for name in names), *names)


ENGINES: Final[dict[str, ServerKind]] = {
    "dynamo": ServerKind(
        "a worker of NVIDIA Dynamo",
        re.compile(r"(?:^|/)ai-dynamo/(?:vllm|sglang|tensorrtllm)-runtime$"),
        9090,
        note="with Dynamo's operator; otherwise the port in `DYN_SYSTEM_PORT`",
        names=("dynamo_component_",),
        engines=("vllm", "sglang", "tensorrt-llm"),
    ),
    "nim": ServerKind(
        "NVIDIA NIM",
        re.compile(r"(?:^|/)nvcr\.io/nim/"),
        8000,
        "/v1/metrics",
        engines=("vllm", "sglang"),
    ),
    "tensorrt-llm": ServerKind(
        "TensorRT-LLM",
        re.compile(r"(?:^|/)tensorrt-llm/release$"),
        8000,
        "/prometheus/metrics",
        fields=(
            requests(TENSORRT_WAITING, _TENSORRT_LLM),
            requests(TENSORRT_RUNNING, _TENSORRT_LLM),
            cache(TENSORRT_CACHE, _TENSORRT_LLM),
        ),
        formulas={
            WAITING: (Scaled(TENSORRT_WAITING),),
            RUNNING: (Scaled(TENSORRT_RUNNING),),
            CACHE: (Scaled(TENSORRT_CACHE, 100.0),),
        },
        measures=measures(
            _TENSORRT_LLM,
            first_token=(
                "trtllm_time_to_first_token_seconds",
                "trtllm:time_to_first_token_seconds",
            ),
            output_token=(
                "trtllm_time_per_output_token_seconds",
                "trtllm:time_per_output_token_seconds",
            ),
            request=("trtllm_e2e_request_latency_seconds", "trtllm:e2e_request_latency_seconds"),
            queue=("trtllm_request_queue_time_seconds", "trtllm:request_queue_time_seconds"),
            output_tokens=("trtllm_generation_tokens_total",),
            prompt_tokens=("trtllm_prompt_tokens_total",),
            requests=("trtllm_request_success_total", "trtllm:request_success_total"),
            beside=("finished_reason",),
        ),
        names=("trtllm_", "trtllm:"),
        reserves="kv_cache_config.free_gpu_memory_fraction",
    ),
    "vllm-omni": ServerKind(
        "vLLM-Omni",
        image_pattern("vllm-omni"),
        8000,
        fields=(requests(_OMNI_WAITING, _OMNI), requests(_OMNI_RUNNING, _OMNI)),
        formulas={WAITING: (Scaled(_OMNI_WAITING),), RUNNING: (Scaled(_OMNI_RUNNING),)},
        measures=measures(
            _OMNI,
            request=("vllm_omni:e2e_request_latency_s", "vllm_omni:e2e_request_latency_seconds"),
            requests=("vllm_omni:requests_success_total",),
            beside=("finished_reason",),
        ),
        names=("vllm_omni:", "vllm_omni_"),
        engines=("vllm",),
        reserves="--gpu-memory-utilization",
    ),
    "llm-d": ServerKind(
        "a model server of llm-d or of KServe's LLMInferenceService",
        re.compile(r"(?:^|/)llm-d/llm-d(?:-(?:dev|cuda|aws|xpu|cpu))?$"),
        8000,
        note="scheme `https` if its arguments have `--ssl-certfile`; with llm-d's routing sidecar, "
        "the port of vLLM",
        engines=("vllm",),
    ),
    "vllm": ServerKind(
        "vLLM",
        image_pattern("vllm"),
        8000,
        fields=(
            *(
                requests(name, VLLM_PARTS, name.removeprefix("vllm:"))
                for name in (VLLM_WAITING, VLLM_RUNNING)
            ),
            cache(VLLM_CACHE, VLLM_PARTS, _OLD_CACHE, _OLD_CACHE.removeprefix("vllm:")),
        ),
        formulas={
            WAITING: (Unless(Scaled(VLLM_WAITING), (_OMNI_WAITING,)),),
            RUNNING: (Unless(Scaled(VLLM_RUNNING), (_OMNI_RUNNING,)),),
            CACHE: (Scaled(VLLM_CACHE, 100.0),),
        },
        measures=measures(
            VLLM_PARTS,
            first_token=_both("time_to_first_token_seconds"),
            output_token=_both("inter_token_latency_seconds", "time_per_output_token_seconds"),
            request=_both("e2e_request_latency_seconds"),
            queue=_both("request_queue_time_seconds"),
            output_tokens=_both("generation_tokens_total"),
            # Triton's marks read prompt_tokens_total at rest; this one counts when a request ends.
            prompt_tokens=_both("request_prompt_tokens_sum"),
            requests=_both("request_success_total"),
            beside=("finished_reason",),
            unless=(_OMNI_WAITING,),
        ),
        names=("vllm:", "vllm_", "ray_vllm"),
        reserves="--gpu-memory-utilization",
    ),
    "sglang": ServerKind(
        "SGLang",
        image_pattern("sglang"),
        30000,
        note=_metrics_on("--enable-metrics"),
        fields=(
            requests(SGLANG_WAITING, SGLANG_PARTS),
            requests(SGLANG_APART[0], SGLANG_PARTS, "sglang:num_prefill_prealloc_queue_reqs"),
            *(requests(name, SGLANG_PARTS) for name in SGLANG_APART[1:]),
            requests(SGLANG_RUNNING, SGLANG_PARTS),
            cache(SGLANG_CACHE, SGLANG_PARTS),
        ),
        formulas={
            WAITING: (Total((SGLANG_WAITING,), SGLANG_APART),),
            RUNNING: (Scaled(SGLANG_RUNNING),),
            CACHE: (Scaled(SGLANG_CACHE, 100.0),),
        },
        measures=(
            *measures(
                _SGLANG_REQUESTS,
                first_token=("sglang:time_to_first_token_seconds",),
                output_token=("sglang:inter_token_latency_seconds",),
                request=("sglang:e2e_request_latency_seconds",),
                output_tokens=("sglang:generation_tokens_total",),
                prompt_tokens=("sglang:prompt_tokens_total",),
                requests=("sglang:num_requests_total",),
                chosen_labels=True,
            ),
            *measures(SGLANG_PARTS, queue=("sglang:queue_time_seconds",)),
        ),
        names=("sglang:", "sglang_", "ray_sglang"),
        reserves="--mem-fraction-static",
    ),
    "tgi": ServerKind(
        "TGI",
        image_pattern("text-generation-inference|tgi"),
        80,
        fields=(requests(TGI_WAITING, ONE_MODEL), requests(TGI_RUNNING, ONE_MODEL)),
        formulas={WAITING: (Scaled(TGI_WAITING),), RUNNING: (Scaled(TGI_RUNNING),)},
        measures=measures(
            ONE_MODEL,
            output_token=("tgi_request_mean_time_per_token_duration",),
            request=("tgi_request_duration",),
            queue=("tgi_request_queue_duration",),
            output_tokens=("tgi_request_generated_tokens_sum",),
            prompt_tokens=("tgi_request_input_length_sum",),
            requests=("tgi_request_success",),
        ),
        names=("tgi_",),
        reserves="--cuda-memory-fraction",
    ),
    "tei": ServerKind(
        "text-embeddings-inference",
        image_pattern("text-embeddings-inference"),
        80,
        fields=(requests(TEI_WAITING, ONE_MODEL),),
        formulas={WAITING: (Scaled(TEI_WAITING),)},
        measures=measures(
            ONE_MODEL,
            request=("te_request_duration",),
            queue=("te_request_queue_duration",),
            requests=("te_request_success",),
            beside=("method",),
        ),
        names=("te_",),
        scaling=Scaling.DEVICE,
    ),
    "llamacpp": ServerKind(
        "llama.cpp",
        image_pattern(r"llama\.cpp"),
        8080,
        note=_metrics_on("--metrics") + "; as a router, path `/metrics?model=NAME`, which loads "
        "the model unless `&autoload=false` follows",
        fields=(
            requests(LLAMACPP_WAITING, _LLAMACPP),
            requests(LLAMACPP_RUNNING, _LLAMACPP),
            cache(LLAMACPP_CACHE, _LLAMACPP),
        ),
        formulas={
            WAITING: (Scaled(LLAMACPP_WAITING),),
            RUNNING: (Scaled(LLAMACPP_RUNNING),),
            CACHE: (Scaled(LLAMACPP_CACHE, 100.0),),
        },
        measures=measures(
            _LLAMACPP,
            output_tokens=("llamacpp:tokens_predicted_total",),
            prompt_tokens=("llamacpp:prompt_tokens_total",),
        ),
        names=("llamacpp",),
        scaling=Scaling.SLOTS,
    ),
    "lmdeploy": ServerKind(
        "LMDeploy",
        image_pattern("lmdeploy"),
        23333,
        note=_metrics_on("--enable-metrics"),
        fields=(
            requests("lmdeploy:num_requests_waiting", _LMDEPLOY),
            requests("lmdeploy:num_requests_running", _LMDEPLOY),
            cache("lmdeploy:gpu_cache_usage_perc", _LMDEPLOY),
        ),
        formulas={
            WAITING: (Scaled("lmdeploy:num_requests_waiting"),),
            RUNNING: (Scaled("lmdeploy:num_requests_running"),),
            CACHE: (Scaled("lmdeploy:gpu_cache_usage_perc", 100.0),),
        },
        measures=measures(
            _LMDEPLOY,
            first_token=("lmdeploy:time_to_first_token_seconds",),
            output_token=("lmdeploy:time_per_output_token_seconds",),
            request=("lmdeploy:e2e_request_latency_seconds",),
            queue=("lmdeploy:request_queue_time_seconds",),
            output_tokens=("lmdeploy:generation_tokens_total",),
            prompt_tokens=("lmdeploy:prompt_tokens_total",),
            requests=("lmdeploy:request_success_total",),
            beside=("finished_reason",),
        ),
        names=("lmdeploy:", "lmdeploy_"),
        reserves="--cache-max-entry-count",
    ),
    "fastdeploy": ServerKind(
        "FastDeploy",
        image_pattern("fastdeploy"),
        8000,
        note="the port in `--metrics-port`, if it is set",
        fields=(
            requests("fastdeploy:num_requests_waiting", ONE_MODEL),
            requests("fastdeploy:num_requests_running", ONE_MODEL),
            cache("fastdeploy:gpu_cache_usage_perc", ONE_MODEL),
        ),
        formulas={
            WAITING: (Scaled("fastdeploy:num_requests_waiting"),),
            RUNNING: (Scaled("fastdeploy:num_requests_running"),),
            CACHE: (Scaled("fastdeploy:gpu_cache_usage_perc", 100.0),),
        },
        measures=measures(
            ONE_MODEL,
            first_token=("fastdeploy:time_to_first_token_seconds",),
            output_token=("fastdeploy:time_per_output_token_seconds",),
            request=("fastdeploy:e2e_request_latency_seconds",),
            queue=("fastdeploy:request_queue_time_seconds",),
            output_tokens=("fastdeploy:generation_tokens_total",),
            prompt_tokens=("fastdeploy:prompt_tokens_total",),
            requests=("fastdeploy:request_success_total",),
        ),
        names=("fastdeploy:", "fastdeploy_"),
        reserves="--gpu-memory-utilization",
    ),
    "lightllm": ServerKind(
        "LightLLM",
        image_pattern("lightllm"),
        8000,
        fields=(
            requests("lightllm_queue_size", ONE_MODEL),
            requests("lightllm_batch_current_size", ONE_MODEL),
        ),
        formulas={
            WAITING: (Scaled("lightllm_queue_size"),),
            RUNNING: (Scaled("lightllm_batch_current_size"),),
        },
        measures=measures(
            ONE_MODEL,
            first_token=("lightllm_request_first_token_duration",),
            output_token=("lightllm_request_mean_time_per_token_duration",),
            request=("lightllm_request_inference_duration",),
            output_tokens=("lightllm_request_generated_tokens_sum",),
            prompt_tokens=("lightllm_request_input_length_sum",),
            requests=("lightllm_request_success",),
        ),
        names=("lightllm_",),
        reserves="--mem_fraction",
    ),
    "max": ServerKind(
        "MAX",
        re.compile(r"(?:^|/)modular/max-[^/]*$"),
        8001,
        note="the port in `MAX_SERVE_METRICS_ENDPOINT_PORT`, if it is set",
        fields=(
            requests(_MAX_QUEUED, ONE_MODEL),
            requests(_MAX_AWAITING, ONE_MODEL),
            requests(_MAX_RUNNING, ONE_MODEL),
        ),
        formulas={
            WAITING: (Total((_MAX_QUEUED,), (_MAX_AWAITING,)),),
            RUNNING: (Scaled(_MAX_RUNNING),),
        },
        measures=(
            *measures(
                ONE_MODEL,
                first_token=("maxserve_time_to_first_token_milliseconds",),
                output_token=("maxserve_itl_milliseconds",),
                request=("maxserve_request_time_milliseconds",),
                milliseconds=True,
            ),
            *measures(
                ONE_MODEL,
                output_tokens=("maxserve_num_output_tokens_total",),
                prompt_tokens=("maxserve_num_input_tokens_total",),
                requests=("maxserve_request_count_total",),
                beside=("code", "path"),
            ),
        ),
        names=("maxserve_",),
        reserves="--device-memory-utilization",
    ),
}
"""Short name -> kind. The first whose pattern fits an image is the image's kind."""
