"""AMD: device-metrics-exporter.

Names and units are from its ``docs/configuration/metricslist.md`` and
``pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go``. ``MetricsFieldPrefix`` can add any prefix; the
exporter's own examples use ``amd_``, which is read in addition to the names without a prefix.

A card may report ``gpu_gfx_activity`` 0 while it works (issues 135 and 160). Its compute cores, the
profiler, the memory controller and the power then show the work. For a Radeon, the profiler's
activity and occupancy are always 0 (``metricslist.md``).

In the partitioned modes (DPX, QPX, CPX), only the first partition has an activity, a power and a
temperature; the others have 0, or no sample. There, ``gpu_gfx_busy_instantaneous`` of each
partition is used, which has a sample for each compute core, and power and temperature are those of
the board. From 1.4 on, each partition has a ``gpu_id`` and a ``gpu_uuid`` of its own, besides the
``serial_number`` of the board (``populateLabelsFromGPU``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from adapter.pipeline.catalog.contradictions import WORKING_WATTS, Contradiction
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.health import AMD_HEALTH
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Unit
from adapter.pipeline.catalog.quantities import celsius, memory, percent, watts

GFX: Final = "gpu_gfx_activity"
UMC: Final = "gpu_umc_activity"
BUSY: Final = "gpu_gfx_busy_instantaneous"
SM: Final = "gpu_prof_sm_active"
OCCUPANCY: Final = "gpu_prof_occupancy_percent"
TENSOR: Final = "gpu_prof_tensor_active_percent"
USED: Final = "gpu_used_vram"
FREE: Final = "gpu_free_vram"
TOTAL: Final = "gpu_total_vram"
POWERS: Final = ("gpu_package_power", "gpu_average_package_power", "gpu_power_usage")
"""Fields of MI3xx, of MI2xx and Radeon, and of both. The first that a page has is used."""
EDGE: Final = "gpu_edge_temperature"
JUNCTION: Final = "gpu_junction_temperature"
MEMORY_TEMPERATURE: Final = "gpu_memory_temperature"


_RADEON: Final = re.compile("radeon", re.IGNORECASE)


def _prefixed_name(name: str, unit: Unit) -> tuple[tuple[str, float, Unit], ...]:
    return (("amd_" + name, 1.0, unit),)


def _percent(name: str, *, mig: Mig, group: str, **more: Any) -> Field:
    renamed = _prefixed_name(name, Unit.PERCENT)
    return percent(name, mig=mig, renamed=renamed, group=group, **more)


def _profiled(name: str, unsupported: re.Pattern[str] | None = None) -> Field:
    return _percent(name, mig=Mig.INSTANCE, group="amd_profiling", unsupported=unsupported)


def _vram(name: str, load: LoadDirection = LoadDirection.RISES, *, total: bool = False) -> Field:
    """``MB`` is 1,048,576 bytes here: a 192 GiB MI300X reports 196592 for 206,141,652,992."""
    renamed = _prefixed_name(name, Unit.MEBIBYTES)
    return memory(name, Unit.MEBIBYTES, total=total, load=load, renamed=renamed, group="amd_memory")


def _celsius(name: str) -> Field:
    renamed = _prefixed_name(name, Unit.CELSIUS)
    return celsius(name, mig=Mig.FIRST, renamed=renamed, group="amd_board")


def _watts(name: str) -> Field:
    return watts(name, mig=Mig.FIRST, renamed=_prefixed_name(name, Unit.WATTS), group="amd_board")


FIELDS: Final[tuple[Field, ...]] = (
    _percent(GFX, mig=Mig.INVALID, group="amd_utilization"),
    _percent(UMC, mig=Mig.INVALID, group="amd_utilization"),
    _percent(BUSY, mig=Mig.INSTANCE, group="amd_utilization", parts=("xcc_index",)),
    _profiled(SM, _RADEON),
    _profiled(OCCUPANCY, _RADEON),
    _profiled(TENSOR),
    _vram(USED),
    _vram(FREE, LoadDirection.FALLS),
    _vram(TOTAL, total=True),
    *map(_watts, POWERS),
    *map(_celsius, (EDGE, JUNCTION, MEMORY_TEMPERATURE)),
    Field(
        AMD_HEALTH,
        Unit.CODE,
        1.0,
        mig=Mig.INSTANCE,
        over_devices=Combine.MIN,
        over_pods=Combine.MIN,
        renamed=_prefixed_name(AMD_HEALTH, Unit.CODE),
        divisible=False,
        load=LoadDirection.STEADY,
    ),
)

_ACTIVE: Final = 10.0
"""Mean percent of the cores' or the profiler's activity that contradicts an activity of 0."""
_BUSY: Final = 50.0
"""Percent, at every sample, that contradicts a 0 of the other counters.

For the memory controller too: copies by the DMA engines use only a few percent of the memory's
bandwidth, because a link is that much slower.
"""

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    *(Contradiction(GFX, by, mean=_ACTIVE, at_once=True) for by in (BUSY, SM)),
    Contradiction(GFX, UMC, least=_BUSY, at_once=True),
    *(Contradiction(GFX, by, least=WORKING_WATTS, at_once=True) for by in POWERS),
    *(Contradiction(zero, GFX, least=_BUSY) for zero in (BUSY, SM, OCCUPANCY)),
    *(Contradiction(zero, BUSY, least=_BUSY) for zero in (SM, OCCUPANCY)),
    Contradiction(BUSY, SM, mean=_ACTIVE, at_once=True),
)
