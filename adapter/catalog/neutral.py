"""The metrics with one meaning on whole GPUs, MIG instances, shared GPUs and every vendor."""

from __future__ import annotations

from typing import Final

from adapter.catalog import (
    amd,
    ascend,
    azure,
    gateways,
    gaudi,
    gkeplugin,
    google,
    hami,
    intel,
    nvidia,
    servers,
)
from adapter.catalog.formulas import Counting, Percentage, Presence, Rated, Rest, Scaled, Total
from adapter.catalog.metric import Combine, Formula, Kind, Metric, Scope, Unit
from adapter.catalog.units import MIB
from adapter.catalog.vendors import FIELDS

_BUSY: Final[tuple[Formula, ...]] = (
    Scaled(hami.UTIL),
    Scaled(nvidia.ENGINE, 100.0, mig=True),
    Scaled(nvidia.UTIL, mig=False),
    Scaled(nvidia.ENGINE, 100.0, mig=False, unless=nvidia.UTIL),
    Scaled(amd.BUSY, mig=True),
    Scaled(amd.GFX, mig=False),
    Scaled(amd.BUSY, mig=False, unless=amd.GFX),
    Scaled(intel.ENGINE, 100.0),
    Scaled(intel.TASKS, 100.0),
    Scaled(intel.COMPUTE, 100.0, unless=intel.TASKS),
    Scaled(gaudi.UTIL, mig=False),
    Scaled(ascend.UTIL),
    Scaled(hami.HOST_UTIL, mig=False),
    Scaled(azure.UTIL, mig=False),
    Scaled(google.UTIL, mig=False),
    Scaled(gkeplugin.UTIL, mig=False),
    Scaled(gkeplugin.TPU_UTIL, mig=False),
    Scaled(servers.TRITON_UTIL, 100.0, mig=False),
)
"""A container's own field comes first: on a page with both, the device's is beside it."""

_HAMI_USED: Final = Scaled(hami.USED)
_DCGM_USED: Final = Scaled(nvidia.USED, MIB)
_DCGM_SUM: Final = Total((nvidia.USED, nvidia.FREE), (nvidia.RESERVED,), MIB)
_AMD_USED: Final = Scaled(amd.USED, MIB)
_TRITON_USED: Final = Scaled(servers.TRITON_USED)

_MEMORY: Final[tuple[tuple[Formula, Formula], ...]] = (
    (_HAMI_USED, Scaled(hami.LIMIT)),
    (_DCGM_USED, Scaled(nvidia.TOTAL, MIB)),
    (_DCGM_USED, _DCGM_SUM),
    (_AMD_USED, Scaled(amd.TOTAL, MIB)),
    (_AMD_USED, Total((amd.USED, amd.FREE), (), MIB)),
    (Scaled(intel.HW_USED), Scaled(intel.HW_TOTAL)),
    (Scaled(gaudi.USED), Scaled(gaudi.TOTAL)),
    (Scaled(ascend.HBM_USED, MIB), Scaled(ascend.HBM_TOTAL, MIB)),
    (Scaled(azure.USED), Scaled(azure.TOTAL)),
    (Scaled(google.USED), Scaled(google.TOTAL)),
    (Scaled(gkeplugin.USED), Scaled(gkeplugin.TOTAL)),
    (Scaled(gkeplugin.TPU_USED), Scaled(gkeplugin.TPU_TOTAL)),
    (_TRITON_USED, Scaled(servers.TRITON_TOTAL)),
)
"""(Used, total), each in bytes."""


def _mean(
    name: str, *formulas: Formula, devices: Combine = Combine.MEAN, pods: Combine = Combine.MEAN
) -> Metric:
    return Metric(name, Unit.PERCENT, Kind.MEAN, formulas, devices, pods)


def _bytes(name: str, *formulas: Formula) -> Metric:
    return Metric(
        name,
        Unit.BYTES,
        Kind.LAST,
        tuple(dict.fromkeys(formulas)),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
    )


def _board(name: str, unit: Unit, *fields: str | Formula) -> Metric:
    return Metric(
        name,
        unit,
        Kind.LAST,
        tuple(Scaled(field) if isinstance(field, str) else field for field in fields),
        per_board=True,
        divisible=unit is Unit.WATTS,
    )


def _server(name: str, unit: Unit, how: Combine, *formulas: Formula) -> Metric:
    return Metric(
        name,
        unit,
        Kind.LAST,
        formulas,
        over_devices=how,
        over_pods=how,
        scope=Scope.SERVER,
        divisible=False,
    )


METRICS: Final[tuple[Metric, ...]] = (
    _mean("gpu_utilization", *_BUSY),
    _mean("gpu_utilization_max", *_BUSY, devices=Combine.MAX, pods=Combine.MAX),
    _mean("gpu_utilization_imbalance", *_BUSY, devices=Combine.SPREAD, pods=Combine.MAX),
    Metric("gpu_utilization_of_request", Unit.PERCENT, Kind.MEAN, _BUSY, of_request=True),
    Metric(
        "gpu_memory_utilization",
        Unit.PERCENT,
        Kind.LAST,
        (
            *(Percentage(used, total) for used, total in _MEMORY),
            Scaled(nvidia.USED_SHARE, 100.0),
            Scaled(intel.USED_SHARE, 100.0),
        ),
    ),
    _bytes(
        "gpu_memory_used_bytes",
        *(used for used, _ in _MEMORY),
        Scaled(intel.USED),
        Scaled(hami.HOST_USED),
    ),
    _bytes("gpu_memory_total_bytes", *(total for _, total in _MEMORY)),
    _bytes("gpu_memory_headroom_bytes", *(Rest(total, used) for used, total in _MEMORY)),
    _mean(
        "gpu_memory_bandwidth_utilization",
        Scaled("DCGM_FI_PROF_DRAM_ACTIVE", 100.0),
        Scaled(amd.UMC, mig=False),
        Scaled(intel.BANDWIDTH, 100.0),
        Scaled(intel.HW_BANDWIDTH, 100.0),
        Scaled(gkeplugin.TPU_BANDWIDTH, mig=False),
    ),
    _mean("gpu_sm_activity", Scaled("DCGM_FI_PROF_SM_ACTIVE", 100.0), Scaled(amd.SM)),
    _mean("gpu_sm_occupancy", Scaled("DCGM_FI_PROF_SM_OCCUPANCY", 100.0), Scaled(amd.OCCUPANCY)),
    _mean(
        "gpu_tensor_activity",
        Scaled("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 100.0),
        Scaled(amd.TENSOR),
        Scaled(gkeplugin.TPU_TENSOR, mig=False),
    ),
    _board(
        "gpu_power_watts",
        Unit.WATTS,
        nvidia.POWER,
        *amd.POWERS,
        intel.POWER,
        *intel.HW_POWERS,
        Scaled(gaudi.MILLIWATTS, 0.001),
        ascend.POWER,
    ),
    _board(
        "gpu_temperature_celsius",
        Unit.CELSIUS,
        nvidia.TEMPERATURE,
        amd.EDGE,
        amd.JUNCTION,
        intel.TEMPERATURE,
        intel.HW_TEMPERATURE,
        gaudi.CHIP_TEMPERATURE,
        gaudi.BOARD_TEMPERATURE,
        ascend.TEMPERATURE,
    ),
    Metric(
        "gpu_count",
        Unit.DEVICES,
        Kind.LAST,
        (Presence(tuple(field.name for field in FIELDS if field.scope is Scope.DEVICE)),),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        divisible=False,
    ),
    _server(
        "inference_requests_waiting",
        Unit.REQUESTS,
        Combine.SUM,
        Scaled(servers.VLLM_WAITING),
        Scaled(servers.SGLANG_WAITING),
        Scaled(servers.TGI_WAITING),
        Scaled(servers.TENSORRT_WAITING),
        Scaled(servers.TEI_WAITING),
        Scaled(servers.LLAMACPP_WAITING),
        Total((servers.TRTLLM_WAITING,), (servers.TRITON_PENDING,)),
        Scaled(servers.TRITON_PENDING),
        # Little's law: the waiting time of all requests per unit of time is the mean number of
        # requests that wait.
        Rated(servers.TRITON_QUEUED, 1e-6, unless=servers.TRITON_PENDING),
    ),
    _server(
        "inference_requests_running",
        Unit.REQUESTS,
        Combine.SUM,
        Scaled(servers.VLLM_RUNNING),
        Scaled(servers.SGLANG_RUNNING),
        Scaled(servers.TGI_RUNNING),
        Scaled(servers.TENSORRT_RUNNING),
        Scaled(servers.LLAMACPP_RUNNING),
        Scaled(servers.TRTLLM_RUNNING),
    ),
    _server(
        "inference_kv_cache_utilization",
        Unit.PERCENT,
        Combine.MEAN,
        Scaled(servers.VLLM_CACHE, 100.0),
        Scaled(servers.SGLANG_CACHE, 100.0),
        Scaled(servers.TENSORRT_CACHE, 100.0),
        Scaled(servers.LLAMACPP_CACHE, 100.0),
        Scaled(servers.TRTLLM_CACHE, 100.0),
    ),
    # Not the names of the servers: a sum over a namespace would count a request twice.
    _server(
        "inference_gateway_requests_waiting",
        Unit.REQUESTS,
        Combine.SUM,
        Counting(gateways.QUEUE, gateways.SATURATION),
        Scaled(gateways.ROUTER_PENDING),
        Scaled(gateways.FRONTEND_QUEUED),
    ),
    _server(
        "inference_gateway_requests_running",
        Unit.REQUESTS,
        Combine.SUM,
        Scaled(gateways.RUNNING),
        Scaled(gateways.OLD_RUNNING, unless=gateways.RUNNING),
        Scaled(gateways.FRONTEND_ACTIVE),
    ),
)
