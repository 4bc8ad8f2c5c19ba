"""The metrics with one meaning on whole GPUs, MIG instances, shared GPUs and every vendor."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import (
    amd,
    ascend,
    azure,
    gaudi,
    gkeplugin,
    google,
    hami,
    intel,
    nvidia,
    serverkinds,
    servermeasures,
    triton,
)
from adapter.pipeline.catalog.formulas import Percentage, Presence, Rest, Scaled, Total
from adapter.pipeline.catalog.metric import (
    Combine,
    Formula,
    Kind,
    LoadDirection,
    Metric,
    Scope,
    Unit,
)
from adapter.pipeline.catalog.promise import MOST, SLO_RATIO
from adapter.pipeline.catalog.quantities import MIB
from adapter.pipeline.catalog.serverkind import (
    CACHE,
    GATEWAY_RUNNING,
    GATEWAY_WAITING,
    RUNNING,
    WAITING,
)
from adapter.pipeline.catalog.vendors import FIELDS

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
    Scaled(triton.UTIL, 100.0, mig=False),
)
"""A container's own field comes first: on a page with both, the device's is beside it."""

_HAMI_USED: Final = Scaled(hami.USED)
_HAMI_LIMIT: Final = Scaled(hami.LIMIT)
_HAMI_SHARE: Final = Percentage(_HAMI_USED, _HAMI_LIMIT)
_HAMI_REST: Final = Rest(_HAMI_LIMIT, _HAMI_USED)
_DCGM_USED: Final = Scaled(nvidia.USED, MIB)
_DCGM_SUM: Final = Total((nvidia.USED, nvidia.FREE), (nvidia.RESERVED,), MIB)
_AMD_USED: Final = Scaled(amd.USED, MIB)
_TRITON_USED: Final = Scaled(triton.USED)

_MEMORY: Final[tuple[tuple[Formula, Formula], ...]] = (
    (_HAMI_USED, _HAMI_LIMIT),
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
    (_TRITON_USED, Scaled(triton.TOTAL)),
)
"""(Used, total), each in bytes."""


def _mean(
    name: str,
    *formulas: Formula,
    devices: Combine = Combine.MEAN,
    pods: Combine = Combine.MEAN,
    load: LoadDirection = LoadDirection.RISES,
) -> Metric:
    return Metric(name, Unit.PERCENT, Kind.MEAN, formulas, devices, pods, load=load, high=100.0)


def _bytes(
    name: str, load: LoadDirection, *formulas: Formula, of_parts: tuple[Formula, ...] = ()
) -> Metric:
    return Metric(
        name,
        Unit.BYTES,
        Kind.LAST,
        tuple(dict.fromkeys(formulas)),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        of_parts=of_parts,
        load=load,
    )


def _board(name: str, unit: Unit, *fields: str | Formula) -> Metric:
    return Metric(
        name,
        unit,
        Kind.LAST,
        tuple(Scaled(field) if isinstance(field, str) else field for field in fields),
        per_board=True,
        divisible=unit is Unit.WATTS,
        load=LoadDirection.RISES if unit is Unit.WATTS else LoadDirection.STEADY,
    )


def _server(name: str, unit: Unit, how: Combine) -> Metric:
    return Metric(
        name,
        unit,
        Kind.LAST,
        serverkinds.formulas(name),
        over_devices=how,
        over_pods=how,
        scope=Scope.SERVER,
        divisible=False,
        load=LoadDirection.RISES,
        high=100.0 if unit is Unit.PERCENT else None,
    )


METRICS: Final[tuple[Metric, ...]] = (
    _mean("gpu_utilization", *_BUSY),
    _mean("gpu_utilization_max", *_BUSY, devices=Combine.MAX, pods=Combine.MAX),
    _mean(
        "gpu_utilization_imbalance",
        *_BUSY,
        devices=Combine.SPREAD,
        pods=Combine.MAX,
        load=LoadDirection.STEADY,
    ),
    Metric(
        "gpu_utilization_of_request",
        Unit.PERCENT,
        Kind.MEAN,
        _BUSY,
        of_request=True,
        load=LoadDirection.RISES,
    ),
    Metric(
        "gpu_memory_utilization",
        Unit.PERCENT,
        Kind.LAST,
        (
            *(Percentage(used, total) for used, total in _MEMORY),
            Scaled(nvidia.USED_SHARE, 100.0),
            Scaled(intel.USED_SHARE, 100.0),
        ),
        of_parts=(_HAMI_SHARE,),
        load=LoadDirection.RISES,
        high=100.0,
    ),
    _bytes(
        "gpu_memory_used_bytes",
        LoadDirection.RISES,
        *(used for used, _ in _MEMORY),
        Scaled(intel.USED),
        Scaled(hami.HOST_USED),
    ),
    _bytes(
        "gpu_memory_total_bytes",
        LoadDirection.STEADY,
        *(total for _, total in _MEMORY),
        of_parts=(_HAMI_LIMIT,),
    ),
    _bytes(
        "gpu_memory_headroom_bytes",
        LoadDirection.FALLS,
        *(Rest(total, used) for used, total in _MEMORY),
        of_parts=(_HAMI_REST,),
    ),
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
        load=LoadDirection.STEADY,
    ),
    _server(WAITING, Unit.REQUESTS, Combine.SUM),
    _server(RUNNING, Unit.REQUESTS, Combine.SUM),
    _server(CACHE, Unit.PERCENT, Combine.MEAN),
    # Not the names of the servers: a sum over a namespace would count a request twice.
    _server(GATEWAY_WAITING, Unit.REQUESTS, Combine.SUM),
    _server(GATEWAY_RUNNING, Unit.REQUESTS, Combine.SUM),
    *servermeasures.metrics_of(serverkinds.measured_formulas()),
    Metric(
        SLO_RATIO,
        Unit.RATIO,
        Kind.MEAN,
        (),
        scope=Scope.SERVER,
        divisible=False,
        window=servermeasures.WINDOW,
        load=LoadDirection.RISES,
        high=MOST,
        promised=True,
    ),
)
