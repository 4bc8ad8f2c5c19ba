"""Inference servers: fields about the process that serves the page, and about the GPUs it sees.

Only exact names are read: ``vllm:num_requests_waiting_by_reason`` sums up to the same queue.
vLLM: ``vllm/v1/metrics/loggers.py``. SGLang: ``python/sglang/srt/metrics/collector.py``. TGI:
``docs/source/reference/metrics.md``. Triton: ``docs/user_guide/metrics.md`` and
tensorrtllm_backend's README. Its GPU samples (0-1, bytes) name no pod. They are assigned to the
pod that serves the page, if no exporter describes its devices.

NVIDIA NIM 1 writes vLLM's names without the prefix, for every engine ("Observability for NVIDIA NIM
for LLMs"). TensorRT-LLM: ``tensorrt_llm/metrics/collector.py``, which ``trtllm-serve`` and Dynamo's
workers serve. text-embeddings-inference: ``core/src/queue.rs``; it writes its queue from the first
request on, and no number of running requests. llama.cpp: ``tools/server/server-context.cpp`` and
``README.md``; only older builds write the use of the KV cache.

The sets of labels identify the parts of a server. Every other label is from the scrape or the
store: labels of the target, of a replica of Prometheus, and labels that a ``labelmap`` copied.
"""

from __future__ import annotations

from typing import Final

from adapter.catalog.field import Field, Mig
from adapter.catalog.metric import Combine, Kind, Scope, Unit
from adapter.catalog.units import MAX_BYTES

_MAX_REQUESTS: Final = 1e9

_ON_RAY: Final = ("ReplicaId", "WorkerId")
"""What Ray adds: replicas of one pod."""
VLLM: Final = frozenset(("engine", "model_name", *_ON_RAY))
SGLANG: Final = frozenset(("model_name", "engine_type", "dp_rank", *_ON_RAY))
"""The other ranks report the queue of the same scheduler (``--enable-metrics-for-all-schedulers``).
With priority scheduling, a page has the whole queue and the part of each ``priority``. The largest
value counts."""
TGI: Final = frozenset[str]()
"""Pages of TGI, text-embeddings-inference and llama.cpp describe one model."""
TENSORRT_LLM: Final = frozenset(("model_name", "engine_type"))
TRITON: Final = frozenset(("model", "version", "gpu_uuid"))

VLLM_WAITING: Final = "vllm:num_requests_waiting"
VLLM_RUNNING: Final = "vllm:num_requests_running"
VLLM_CACHE: Final = "vllm:kv_cache_usage_perc"
SGLANG_WAITING: Final = "sglang:num_queue_reqs"
SGLANG_RUNNING: Final = "sglang:num_running_reqs"
SGLANG_CACHE: Final = "sglang:token_usage"
TGI_WAITING: Final = "tgi_queue_size"
TGI_RUNNING: Final = "tgi_batch_current_size"
TRITON_PENDING: Final = "nv_inference_pending_request_count"
TRITON_QUEUED: Final = "nv_inference_queue_duration_us"
TRTLLM_WAITING: Final = "nv_trt_llm_request_metrics waiting"
TRTLLM_RUNNING: Final = "nv_trt_llm_request_metrics scheduled"
TRTLLM_CACHE: Final = "nv_trt_llm_kv_cache_block_metrics fraction"
TENSORRT_WAITING: Final = "trtllm_num_requests_waiting"
TENSORRT_RUNNING: Final = "trtllm_num_requests_running"
TENSORRT_CACHE: Final = "trtllm_kv_cache_utilization"
TEI_WAITING: Final = "te_queue_size"
LLAMACPP_WAITING: Final = "llamacpp:requests_deferred"
LLAMACPP_RUNNING: Final = "llamacpp:requests_processing"
LLAMACPP_CACHE: Final = "llamacpp:kv_cache_usage_ratio"
TRITON_UTIL: Final = "nv_gpu_utilization"
TRITON_USED: Final = "nv_gpu_memory_used_bytes"
TRITON_TOTAL: Final = "nv_gpu_memory_total_bytes"


def _requests(
    name: str, part_labels: frozenset[str], *spellings: str, series: str = "", kind: str = ""
) -> Field:
    return Field(
        name,
        Unit.REQUESTS,
        _MAX_REQUESTS,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        renamed=tuple((spelling, 1.0, Unit.REQUESTS) for spelling in spellings),
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        series=series,
        where=(("request_type", kind),) if kind else (),
        part_labels=part_labels,
    )


def _cache(name: str, part_labels: frozenset[str], *spellings: str, series: str = "") -> Field:
    return Field(
        name,
        Unit.RATIO,
        1.0,
        renamed=tuple((spelling, 1.0, Unit.RATIO) for spelling in spellings),
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        series=series,
        where=(("kv_cache_block_type", "fraction"),) if series else (),
        part_labels=part_labels,
    )


def _seen(name: str, unit: Unit, high: float, kind: Kind, how: Combine) -> Field:
    return Field(
        name,
        unit,
        high,
        kind=kind,
        mig=Mig.INVALID if kind is Kind.MEAN else Mig.INSTANCE,
        over_devices=how,
        over_pods=how,
        group="servers",
        seen=True,
    )


_TRTLLM: Final = "nv_trt_llm_request_metrics"
_OLD_CACHE: Final = "vllm:gpu_cache_usage_perc"

FIELDS: Final[tuple[Field, ...]] = (
    *(_requests(name, VLLM, name.removeprefix("vllm:")) for name in (VLLM_WAITING, VLLM_RUNNING)),
    _cache(
        VLLM_CACHE,
        VLLM,
        _OLD_CACHE,
        _OLD_CACHE.removeprefix("vllm:"),
    ),
    _requests(SGLANG_WAITING, SGLANG),
    _requests(SGLANG_RUNNING, SGLANG),
    _cache(SGLANG_CACHE, SGLANG),
    _requests(TGI_WAITING, TGI),
    _requests(TGI_RUNNING, TGI),
    _requests(TENSORRT_WAITING, TENSORRT_LLM),
    _requests(TENSORRT_RUNNING, TENSORRT_LLM),
    _cache(TENSORRT_CACHE, TENSORRT_LLM),
    _requests(TEI_WAITING, TGI),
    _requests(LLAMACPP_WAITING, TGI),
    _requests(LLAMACPP_RUNNING, TGI),
    _cache(LLAMACPP_CACHE, TGI),
    _requests(TRITON_PENDING, TRITON),
    Field(
        TRITON_QUEUED,
        Unit.MICROSECONDS_PER_SECOND,
        1e18,
        kind=Kind.RATE,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        part_labels=TRITON,
    ),
    _requests(TRTLLM_WAITING, TRITON, series=_TRTLLM, kind="waiting"),
    _requests(TRTLLM_RUNNING, TRITON, series=_TRTLLM, kind="scheduled"),
    _cache(TRTLLM_CACHE, TRITON, series="nv_trt_llm_kv_cache_block_metrics"),
    _seen(TRITON_UTIL, Unit.RATIO, 1.0, Kind.MEAN, Combine.MEAN),
    _seen(TRITON_USED, Unit.BYTES, MAX_BYTES, Kind.LAST, Combine.SUM),
    _seen(TRITON_TOTAL, Unit.BYTES, MAX_BYTES, Kind.LAST, Combine.SUM),
)
