"""NVIDIA's Triton Inference Server: one page for all backends, which differ in what it can show.

``docs/user_guide/metrics.md``: ``nv_inference_pending_request_count`` counts the requests that wait
for a backend. That is the queue of a backend that takes a request when it can run it. Backends that
schedule requests themselves take each one at once, so the count is 0 however many wait:

- vLLM: the backend's own series (``vllm_backend/src/utils/metrics.py``), which name the model in
  ``model``. They need ``REPORT_CUSTOM_METRICS`` in the model's configuration, and releases 24.08 to
  24.10 have counters only: then the page cannot show a queue.
- TensorRT-LLM: the backend's own series (tensorrtllm_backend's README).

The histogram of first responses is in milliseconds, and only decoupled models count in it
(triton-inference-server/core, ``src/metrics.cc`` and ``src/infer_response.cc``).

Beside them, the count of an ensemble's last step is the number of streamed answers, not of requests
(server#6494, tensorrtllm_backend#667). So the counts are used only on a page without the series of
such a backend, and on a page without a decoupled model, whose requests have many answers.

Triton's GPU samples (0-1, bytes) name no pod. They are assigned to the pod that serves the page, if
no exporter describes its devices.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.engines import VLLM_WAITING
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.formulas import Rated, Scaled, Total, Unless, Unshown
from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Scope, Unit
from adapter.pipeline.catalog.quantities import MAX_BYTES
from adapter.pipeline.catalog.serverkind import (
    CACHE,
    RUNNING,
    WAITING,
    Scaling,
    ServerKind,
    cache,
    image_pattern,
    mark,
    requests,
)
from adapter.pipeline.catalog.servermeasures import measures

PARTS: Final = frozenset(("model", "version", "gpu_uuid"))
PENDING: Final = "nv_inference_pending_request_count"
QUEUED: Final = "nv_inference_queue_duration_us"
TRTLLM_WAITING: Final = "nv_trt_llm_request_metrics waiting"
TRTLLM_RUNNING: Final = "nv_trt_llm_request_metrics scheduled"
TRTLLM_CACHE: Final = "nv_trt_llm_kv_cache_block_metrics fraction"
UTIL: Final = "nv_gpu_utilization"
USED: Final = "nv_gpu_memory_used_bytes"
TOTAL: Final = "nv_gpu_memory_total_bytes"
_TRTLLM: Final = "nv_trt_llm_request_metrics"
_OF_VLLM: Final = mark("vllm:prompt_tokens_total", PARTS)
_DECOUPLED: Final = mark("nv_inference_first_response_histogram_ms_count", PARTS)
"""Only decoupled models have it (``docs/user_guide/metrics.md``)."""
_OWN: Final = (VLLM_WAITING, TRTLLM_WAITING)
"""Queues that a backend reports itself."""
_BLIND: Final = (_OF_VLLM.name, _DECOUPLED.name)


def _seen_field(
    name: str, unit: Unit, high: float, kind: Kind, how: Combine, load: LoadDirection
) -> Field:
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
        load=load,
    )


_QUEUE: Final = ServerKind(
    "Triton",
    image_pattern("tritonserver"),
    8002,
    fields=(
        requests(PENDING, PARTS),
        Field(
            QUEUED,
            Unit.MICROSECONDS_PER_SECOND,
            1e18,
            kind=Kind.RATE,
            over_devices=Combine.SUM,
            over_pods=Combine.SUM,
            group="servers",
            scope=Scope.SERVER,
            divisible=False,
            from_zero=True,
            part_labels=PARTS,
            load=LoadDirection.RISES,
        ),
        _OF_VLLM,
        _DECOUPLED,
        _seen_field(UTIL, Unit.RATIO, 1.0, Kind.MEAN, Combine.MEAN, LoadDirection.RISES),
        _seen_field(USED, Unit.BYTES, MAX_BYTES, Kind.LAST, Combine.SUM, LoadDirection.RISES),
        _seen_field(TOTAL, Unit.BYTES, MAX_BYTES, Kind.LAST, Combine.SUM, LoadDirection.STEADY),
    ),
    formulas={
        WAITING: (
            Unless(Unshown(_BLIND), _OWN),
            Unless(Scaled(PENDING), (*_OWN, *_BLIND)),
            # Little's law: the waiting time of all requests per unit of time is the mean number of
            # requests that wait.
            Unless(Rated(QUEUED, 1e-6, unless=PENDING), (*_OWN, *_BLIND)),
        ),
    },
    measures=(
        *measures(
            PARTS, first_token=("nv_inference_first_response_histogram_ms",), milliseconds=True
        ),
        *measures(PARTS, requests=("nv_inference_request_success",)),
    ),
    names=("nv_inference_",),
    scaling=Scaling.DEVICE,
)

TRITON: Final[dict[str, ServerKind]] = {
    "triton-vllm": ServerKind(
        "Triton with vLLM",
        image_pattern("tritonserver"),
        8002,
        tag="vllm",
        note="needs `REPORT_CUSTOM_METRICS` in the model's configuration, and release 24.11",
        engines=("vllm",),
    ),
    "triton-trtllm": ServerKind(
        "Triton with TensorRT-LLM",
        image_pattern("tritonserver"),
        8002,
        tag="trtllm",
        fields=(
            requests(TRTLLM_WAITING, PARTS, series=_TRTLLM, kind="waiting"),
            requests(TRTLLM_RUNNING, PARTS, series=_TRTLLM, kind="scheduled"),
            cache(TRTLLM_CACHE, PARTS, series="nv_trt_llm_kv_cache_block_metrics"),
        ),
        formulas={
            WAITING: (Total((TRTLLM_WAITING,), (PENDING,)),),
            RUNNING: (Scaled(TRTLLM_RUNNING),),
            CACHE: (Scaled(TRTLLM_CACHE, 100.0),),
        },
        names=("nv_trt_llm_",),
        reserves="kv_cache_free_gpu_mem_fraction",
    ),
    "triton": _QUEUE,
}
"""Short name -> kind; the images of the backends that schedule requests themselves come first."""
