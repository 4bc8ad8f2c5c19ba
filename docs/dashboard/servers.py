"""Queues and load of inference servers, from their own pages."""

from __future__ import annotations

from typing import Final

from docs.dashboard.panel import Panel, Query, Row

_CHOSEN: Final = '{namespace=~"$namespace", pod=~"($workload)(-.*)?"}'
_POD: Final = "{{namespace}}/{{pod}}"


def _any(*names: str) -> str:
    """The first of these series that a pod has; a pod has those of one server."""
    return " or ".join(f"sum by (namespace, pod) ({name}{_CHOSEN})" for name in names)


SERVERS: Final = Row(
    "Inference servers: queues",
    (
        Panel(
            "Requests waiting",
            "Of vLLM, SGLang, TGI and Triton. A queue that grows means that the workload needs "
            "replicas before its GPUs show it.",
            "none",
            (
                Query(
                    _any(
                        "vllm:num_requests_waiting",
                        "sglang:num_queue_reqs",
                        "tgi_queue_size",
                        "nv_inference_pending_request_count",
                    ),
                    _POD,
                ),
            ),
            low=0,
        ),
        Panel(
            "Requests running",
            "Requests in the current batch.",
            "none",
            (
                Query(
                    _any(
                        "vllm:num_requests_running",
                        "sglang:num_running_reqs",
                        "tgi_batch_current_size",
                    ),
                    _POD,
                ),
            ),
            low=0,
        ),
        Panel(
            "KV cache in use",
            "Near 100 %, servers preempt requests or let them wait.",
            "percentunit",
            (
                Query(
                    " or ".join(
                        f"avg by (namespace, pod) ({name}{_CHOSEN})"
                        for name in ("vllm:kv_cache_usage_perc", "sglang:token_usage")
                    ),
                    _POD,
                ),
            ),
            low=0,
            high=1,
        ),
    ),
)
