"""NVIDIA: dcgm-exporter.

Names, units and ranges are from dcgm-exporter's ``etc/*.csv`` and DCGM's field list.
``…_RATIO`` and ``…_BYTES`` are the names of exporter 4.9.0 (DCGM 4.7). A page with the old or
the new names provides the API metrics of both.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.contradictions import WORKING_WATTS, Contradiction, Whole
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.health import XID
from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Unit
from adapter.pipeline.catalog.quantities import (
    MIB,
    celsius,
    megahertz,
    memory,
    percent,
    ratio,
    watts,
)


def _percent(name: str, share: str, legacy: str) -> Field:
    return percent(
        name,
        mig=Mig.INVALID,
        renamed=((share, 100.0, Unit.RATIO),),
        legacy=(legacy,),
        group="utilization",
        traps=True,
    )


def _activity(name: str, share: str, *, group: str = "profiling") -> Field:
    return ratio(name, renamed=((share, 1.0, Unit.RATIO),), group=group)


def _framebuffer(
    name: str,
    renamed: str,
    *legacy: str,
    total: bool = False,
    load: LoadDirection = LoadDirection.RISES,
) -> Field:
    return memory(
        name,
        Unit.MEBIBYTES,
        total=total,
        load=load,
        renamed=((renamed, 1 / MIB, Unit.BYTES),),
        legacy=legacy,
        group="memory",
    )


def _celsius(name: str, renamed: str, legacy: str) -> Field:
    return celsius(name, renamed=((renamed, 1.0, Unit.CELSIUS),), legacy=(legacy,))


def _pcie(name: str) -> Field:
    """A gauge of bytes per second, regardless of its name (``dcp-metrics-included.csv``)."""
    return Field(
        name,
        Unit.BYTES_PER_SECOND,
        1e13,
        kind=Kind.MEAN,
        mig=Mig.BOARD,
        group="profiling",
        load=LoadDirection.RISES,
    )


UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED: Final = "DCGM_FI_DEV_FB_USED"
FREE: Final = "DCGM_FI_DEV_FB_FREE"
RESERVED: Final = "DCGM_FI_DEV_FB_RESERVED"
TOTAL: Final = "DCGM_FI_DEV_FB_TOTAL"
USED_SHARE: Final = "DCGM_FI_DEV_FB_USED_PERCENT"
POWER: Final = "DCGM_FI_DEV_POWER_USAGE"
TEMPERATURE: Final = "DCGM_FI_DEV_GPU_TEMP"
SM: Final = "DCGM_FI_PROF_SM_ACTIVE"
OCCUPANCY: Final = "DCGM_FI_PROF_SM_OCCUPANCY"
DRAM: Final = "DCGM_FI_PROF_DRAM_ACTIVE"
COPY: Final = "DCGM_FI_DEV_MEM_COPY_UTIL"
CODECS: Final = ("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL")
PROFILING: Final = "DCGM_FI_PROF_"
"""How the names of the counters begin."""
ENGINES: Final = (ENGINE, SM, OCCUPANCY)
"""Counters that are above 0 while a kernel runs: one warp on one of 132 SMs shows as 0.0001.

Pipes and memory may be idle while a kernel runs, so a 0 of theirs proves nothing.
"""
ACTIVE: Final = 0.1
"""Mean share of engine activity that contradicts GPU_UTIL 0.

GPU_UTIL samples a period of up to a second and misses short bursts. It cannot miss a tenth of
the window.
"""
BUSY: Final = 50.0
"""Percent of GPU_UTIL, at every sample of the window, that contradicts counters at 0."""
_COPYING: Final = 10.0
"""Percent of MEM_COPY_UTIL, at every sample, that contradicts DRAM_ACTIVE 0.

It does not show engine activity: copies need no kernel.
"""

FIELDS: Final[tuple[Field, ...]] = (
    _percent(UTIL, "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization"),
    _percent(COPY, "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "dcgm_mem_copy_utilization"),
    _percent("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO", "dcgm_enc_utilization"),
    _percent("DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO", "dcgm_dec_utilization"),
    _activity(ENGINE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", group="utilization"),
    _activity(SM, "DCGM_FI_PROF_SM_UTIL_RATIO"),
    _activity(OCCUPANCY, "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    _activity(DRAM, "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"),
    _pcie("DCGM_FI_PROF_PCIE_TX_BYTES"),
    _pcie("DCGM_FI_PROF_PCIE_RX_BYTES"),
    _framebuffer(USED, "DCGM_FI_DEV_FB_USED_BYTES", "dcgm_fb_used"),
    _framebuffer(FREE, "DCGM_FI_DEV_FB_FREE_BYTES", "dcgm_fb_free", load=LoadDirection.FALLS),
    _framebuffer(RESERVED, "DCGM_FI_DEV_FB_RESERVED_BYTES", load=LoadDirection.STEADY),
    _framebuffer(TOTAL, "DCGM_FI_DEV_FB_CAPACITY_BYTES", total=True),
    Field(USED_SHARE, Unit.RATIO, 1.0, group="memory", load=LoadDirection.RISES),
    watts(
        POWER,
        renamed=(("DCGM_FI_DEV_BOARD_POWER_WATTS", 1.0, Unit.WATTS),),
        legacy=("dcgm_power_usage",),
    ),
    _celsius(TEMPERATURE, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "dcgm_gpu_temp"),
    _celsius("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "dcgm_memory_temp"),
    megahertz("DCGM_FI_DEV_SM_CLOCK", legacy=("dcgm_sm_clock",)),
    megahertz("DCGM_FI_DEV_MEM_CLOCK", legacy=("dcgm_memory_clock",)),
    Field(
        XID,
        Unit.CODE,
        100_000.0,
        mig=Mig.BOARD,
        over_devices=Combine.MAX,
        over_pods=Combine.MAX,
        renamed=(("DCGM_FI_DEV_XID_ERROR", 1.0, Unit.CODE),),
        legacy=("dcgm_xid_errors",),
        divisible=False,
        load=LoadDirection.STEADY,
    ),
)

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    *(Contradiction(UTIL, by, mean=ACTIVE, at_once=True) for by in (ENGINE, SM)),
    Contradiction(UTIL, POWER, least=WORKING_WATTS, at_once=True),
    *(Contradiction(zero, UTIL, least=BUSY) for zero in ENGINES),
    *(
        Contradiction(zero, by, mean=ACTIVE)
        for zero in ENGINES
        for by in (ENGINE, SM)
        if zero != by
    ),
    Contradiction(DRAM, COPY, least=_COPYING),
)
"""GPU_UTIL 0 beside busy engines, and counters stuck at 0 (dcgm-exporter#662, DCGM#303)."""
WHOLES: Final[tuple[Whole, ...]] = (
    Whole(UTIL, UTIL, spare=5.0),
    Whole(USED, USED, spare=1024.0),
)
"""Per-process accounting: other processes and the driver's own memory explain a small remainder."""
