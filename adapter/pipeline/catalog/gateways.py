"""Gateways of inference servers: programs that hold the requests of a pool of servers.

The endpoint picker of llm-d and of the Gateway API inference extension:
``docs/metrics.md`` and ``pkg/epp/metrics/llm_d_router_metrics.go`` of llm-d-router, which writes
each series under ``llm_d_epp_`` and, with fewer labels, under the older prefixes. NVIDIA Dynamo:
``lib/runtime/src/metrics/prometheus_names.rs`` and ``lib/llm/src/http/service/metrics.rs``; each
token counts with the mean of its part of the answer. Release 0.5 gives two of its gauges names that
end with ``_total``. Ray Serve: ``python/ray/serve/_private`` of
Ray 2, ``router.py`` and ``proxy_metrics.py``; each router counts the requests that it has not
assigned to a replica. Latencies and finished requests are those of HTTP: gRPC has series of its
own.

A picker serves one InferencePool, and each of its replicas writes the averages of the whole pool.
The number of requests in the queue and in flight is of the replica alone. All of them describe the
pod that serves the page, like the pages of servers, in one part: other labels are added up.
"""

from __future__ import annotations

import re
from typing import Final

from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.formulas import Counting, Scaled, Unless
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Scope, Unit
from adapter.pipeline.catalog.serverkind import (
    GATEWAY_RUNNING,
    GATEWAY_WAITING,
    MAX_REQUESTS,
    ON_RAY,
    ServerKind,
)
from adapter.pipeline.catalog.servermeasures import measures, measures_behind

_MAX_SATURATION: Final = 1e6
"""1 is the set point. The picker does not limit the value."""
_WHOLE: Final = frozenset[str]()
_FLOW: Final = ("inference_pool", "fairness_id", "priority", "model_name", "target_model_name")

QUEUE: Final = "llm_d_epp_flow_control_queue_size"
SATURATION: Final = "llm_d_epp_flow_control_pool_saturation"
RUNNING: Final = "llm_d_epp_request_running"
OLD_RUNNING: Final = "inference_objective_running_requests"
FRONTEND_QUEUED: Final = "dynamo_frontend_queued_requests"
FRONTEND_ACTIVE: Final = "dynamo_frontend_active_requests"
ROUTER_PENDING: Final = "dynamo_frontend_router_queue_pending_requests"
_SERVE_QUEUED: Final = "ray_serve_deployment_queued_queries"


def _field(
    name: str,
    unit: Unit,
    high: float,
    *others: str,
    how: Combine,
    parts: tuple[str, ...] = (),
    over_parts: Combine = Combine.SUM,
    load: LoadDirection = LoadDirection.RISES,
) -> Field:
    return Field(
        name,
        unit,
        high,
        over_devices=how,
        over_pods=how,
        renamed=tuple((other, 1.0, unit) for other in others),
        group="gateways",
        scope=Scope.SERVER,
        divisible=False,
        parts=parts,
        over_parts=over_parts,
        part_labels=_WHOLE,
        load=load,
    )


def _requests(name: str, parts: tuple[str, ...], *others: str) -> Field:
    return _field(name, Unit.REQUESTS, MAX_REQUESTS, *others, how=Combine.SUM, parts=parts)


def _of_pool(name: str, unit: Unit, high: float, old: str = "") -> Field:
    """Return a field of the whole pool, which each replica of the picker writes."""
    return _field(
        f"llm_d_epp_{name}",
        unit,
        high,
        f"llm_d_router_epp_{name}",
        f"inference_pool_{old or name}",
        how=Combine.MEAN,
        load=LoadDirection.STEADY if unit is Unit.NUMBER else LoadDirection.RISES,
    )


def _epp(name: str) -> tuple[str, ...]:
    """Return the names of a picker's series."""
    return (f"llm_d_epp_{name}", f"llm_d_router_epp_{name}")


_PICKER: Final = (
    _requests(
        QUEUE,
        _FLOW,
        "llm_d_router_epp_flow_control_queue_size",
        "inference_extension_flow_control_queue_size",
    ),
    _field(
        SATURATION,
        Unit.RATIO,
        _MAX_SATURATION,
        "llm_d_router_epp_flow_control_pool_saturation",
        "inference_extension_flow_control_pool_saturation",
        how=Combine.MAX,
        parts=("stage",),
        over_parts=Combine.MAX,
    ),
    _requests(RUNNING, _FLOW, "llm_d_router_epp_request_running"),
    _requests(OLD_RUNNING, ("model_name",), "inference_model_running_requests"),
    _of_pool("average_queue_size", Unit.REQUESTS, MAX_REQUESTS),
    _of_pool("average_running_requests", Unit.REQUESTS, MAX_REQUESTS),
    _of_pool("average_kv_cache_utilization", Unit.RATIO, 1.0),
    _of_pool("ready_endpoints", Unit.NUMBER, MAX_REQUESTS, "ready_pods"),
)

_PICKER_MEASURES: Final = measures(
    None,
    first_token=_epp("request_ttft_seconds"),
    output_token=_epp("request_streaming_itl_seconds"),
    request=_epp("request_duration_seconds"),
    queue=_epp("flow_control_request_queue_duration_seconds"),
    output_tokens=_epp("request_output_tokens_sum"),
    prompt_tokens=_epp("request_input_tokens_sum"),
    requests=_epp("request_total"),
    gateway=True,
)
_OLD_PICKER_MEASURES: Final = measures(
    None,
    first_token=("inference_objective_request_ttft_seconds",),
    request=("inference_objective_request_duration_seconds",),
    queue=("inference_extension_flow_control_request_queue_duration_seconds",),
    output_tokens=("inference_objective_output_tokens_sum",),
    prompt_tokens=("inference_objective_input_tokens_sum",),
    requests=("inference_objective_request_total",),
    gateway=True,
)
"""Those of the Gateway API inference extension, which newer pickers write too."""

GATEWAYS: Final[dict[str, ServerKind]] = {
    "endpoint-picker": ServerKind(
        "an endpoint picker",
        re.compile(
            r"(?:^|/)(?:llm-d-inference-scheduler|llm-d-router-endpoint-picker"
            r"|gateway-api-inference-extension/epp)$"
        ),
        9090,
        note="needs `--metrics-endpoint-auth=false`",
        fields=_PICKER,
        formulas={
            GATEWAY_WAITING: (Counting(QUEUE, SATURATION),),
            GATEWAY_RUNNING: (
                Scaled(RUNNING),
                Unless(Scaled(OLD_RUNNING), (RUNNING,), with_fewer_labels=True),
            ),
        },
        measures=(*_PICKER_MEASURES, *measures_behind(_OLD_PICKER_MEASURES, _PICKER_MEASURES)),
        names=("llm_d_", "inference_extension_", "inference_objective_", "inference_pool_"),
        scaling=None,
    ),
    "dynamo-frontend": ServerKind(
        "the frontend of NVIDIA Dynamo",
        re.compile(r"(?:^|/)ai-dynamo/(?:dynamo-)?frontend$"),
        8000,
        fields=(
            _requests(FRONTEND_QUEUED, ("model",), "dynamo_frontend_queued_requests_total"),
            _requests(
                FRONTEND_ACTIVE,
                ("model",),
                "dynamo_frontend_inflight_requests",
                "dynamo_frontend_inflight_requests_total",
            ),
            _requests(ROUTER_PENDING, ("worker_type", "model", "policy_class")),
        ),
        formulas={
            GATEWAY_WAITING: (Scaled(ROUTER_PENDING), Scaled(FRONTEND_QUEUED)),
            GATEWAY_RUNNING: (Scaled(FRONTEND_ACTIVE),),
        },
        measures=measures(
            None,
            first_token=("dynamo_frontend_time_to_first_token_seconds",),
            output_token=("dynamo_frontend_inter_token_latency_seconds",),
            request=("dynamo_frontend_request_duration_seconds",),
            output_tokens=("dynamo_frontend_output_tokens_total",),
            prompt_tokens=("dynamo_frontend_input_sequence_tokens_sum",),
            requests=("dynamo_frontend_requests_total",),
            gateway=True,
        ),
        names=("dynamo_frontend_",),
        scaling=None,
    ),
    "ray-serve": ServerKind(
        "Ray Serve",
        re.compile(r"(?:^|/)ray-llm$"),
        8080,
        note="the port in `--metrics-export-port` of `ray start`",
        fields=(
            _requests(
                _SERVE_QUEUED,
                ("deployment", "application", "handle", "actor_id", "route", *ON_RAY),
            ),
        ),
        formulas={GATEWAY_WAITING: (Scaled(_SERVE_QUEUED),)},
        measures=(
            *measures(
                None,
                request=("ray_serve_http_request_latency_ms",),
                milliseconds=True,
                gateway=True,
            ),
            *measures(None, requests=("ray_serve_num_http_requests_total",), gateway=True),
        ),
        names=("ray_serve_",),
        engines=("vllm", "sglang"),
        scaling=None,
    ),
}
"""Short name -> kind."""
