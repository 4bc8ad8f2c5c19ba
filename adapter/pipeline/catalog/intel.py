"""Intel: XPU Manager, in both generations of names.

1.x: ``rest/prometheus_exporter/prometheus_exporter_types.py``. Its ratios are 0-1 although their
help text says percent. The sample of a tile has ``sub_dev``. A page may repeat a sample with
another value (xpumanager#112), and the last one counts. 2.x:
``xpumd/receiver/intelxpu/sysman/documentation.md``. It uses OpenTelemetry's names: one series for
all engine groups, memories or sensors, which a label identifies.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.contradictions import WORKING_WATTS, Contradiction
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Unit
from adapter.pipeline.catalog.quantities import celsius, memory, ratio, watts

_TILES: Final = ("sub_dev", "com_intel_subdevice_id")

ENGINE: Final = "xpum_engine_ratio"
BANDWIDTH: Final = "xpum_memory_bandwidth_ratio"
ACTIVE: Final = "xpum_eu_active_ratio"
USED: Final = "xpum_memory_used_bytes"
USED_SHARE: Final = "xpum_memory_ratio"
POWER: Final = "xpum_power_watts"
TEMPERATURE: Final = "xpum_temperature_celsius gpu"

TASKS: Final = "hw_gpu_utilization_ratio all"
COMPUTE: Final = "hw_gpu_utilization_ratio compute-all"
HW_BANDWIDTH: Final = "hw_memory_bandwidth_utilization_ratio device"
HW_USED: Final = "hw_memory_usage_bytes device"
HW_TOTAL: Final = "hw_memory_size_bytes device"
HW_POWERS: Final = tuple(f"hw_power_watts {domain}" for domain in ("gpu", "package", "card"))
HW_TEMPERATURE: Final = "hw_temperature_celsius gpu"


def _ratio(
    name: str, series: str = "", *where: tuple[str, str], parts: tuple[str, ...] = _TILES
) -> Field:
    return ratio(name, group="intel_utilization", series=series, where=where, parts=parts)


def _task(name: str, task: str) -> Field:
    """A ratio of the differences of two counters; rounding may push it above 1: it is rejected."""
    return _ratio(name, "hw_gpu_utilization_ratio", ("hw_gpu_task", task))


def _bytes(name: str, series: str = "", *, total: bool = False) -> Field:
    return memory(
        name,
        total=total,
        group="intel_memory",
        series=series,
        where=(("hw_memory_location", "device"),) if series else (),
        parts=(*_TILES, "hw_name") if series else _TILES,
        over_parts=Combine.SUM,
    )


def _watts(name: str, domain: str = "") -> Field:
    return watts(
        name,
        group="intel_board",
        series="hw_power_watts" if domain else "",
        where=(("hw_sensor_location", domain),) if domain else (),
        parts=_TILES,
        over_parts=Combine.SUM,
    )


def _celsius(name: str, series: str, *where: tuple[str, str]) -> Field:
    return celsius(
        name,
        group="intel_board",
        series=series,
        where=where,
        parts=_TILES,
        over_parts=Combine.MAX,
    )


FIELDS: Final[tuple[Field, ...]] = (
    _ratio(ENGINE),
    _ratio(BANDWIDTH),
    _ratio(ACTIVE),
    _bytes(USED),
    Field(
        USED_SHARE,
        Unit.RATIO,
        1.0,
        group="intel_memory",
        parts=_TILES,
        load=LoadDirection.RISES,
    ),
    _watts(POWER),
    _celsius(TEMPERATURE, "xpum_temperature_celsius", ("location", "gpu")),
    _task(TASKS, "all"),
    _task(COMPUTE, "compute-all"),
    _ratio(
        HW_BANDWIDTH,
        "hw_memory_bandwidth_utilization_ratio",
        ("hw_memory_location", "device"),
        parts=(*_TILES, "hw_name"),
    ),
    _bytes(HW_USED, "hw_memory_usage_bytes"),
    _bytes(HW_TOTAL, "hw_memory_size_bytes", total=True),
    *(_watts(name, name.split()[1]) for name in HW_POWERS),
    _celsius(
        HW_TEMPERATURE, "hw_temperature_celsius", ("hw_sensor_location", "gpu"), ("statistic", "")
    ),
)

_ACTIVE: Final = 0.1
"""Mean share of the execution units' or compute engines' activity that contradicts a 0."""
_BUSY: Final = 0.5
"""Share of the memory's bandwidth, at every sample, that copies alone do not use."""

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    Contradiction(ENGINE, ACTIVE, mean=_ACTIVE, at_once=True),
    Contradiction(ENGINE, BANDWIDTH, least=_BUSY, at_once=True),
    Contradiction(ENGINE, POWER, least=WORKING_WATTS, at_once=True),
    Contradiction(TASKS, COMPUTE, mean=_ACTIVE, at_once=True),
    *(Contradiction(zero, HW_BANDWIDTH, least=_BUSY, at_once=True) for zero in (TASKS, COMPUTE)),
    *(
        Contradiction(zero, by, least=WORKING_WATTS, at_once=True)
        for zero in (TASKS, COMPUTE)
        for by in HW_POWERS
    ),
)
