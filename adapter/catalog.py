"""The one table: which exporter fields become which API metrics, in which unit.

Names, units and ranges are those of dcgm-exporter's ``etc/*.csv`` and DCGM's field list;
``…_RATIO`` and ``…_BYTES`` are the names of exporter 4.9.0 (DCGM 4.7). A page with either
generation of names feeds the API metrics of both. A new field is a new row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adapter.basis import Presence, Scaled, Share, Total
from adapter.metric import Combine, Field, Kind, Metric, Mig, Spelling, Unit

MIB: Final = 1048576
_MAX_MIB: Final = 16.0 * 1024 * 1024
"""16 TiB of framebuffer: far beyond any device, far below DCGM's blank 2147483632."""


def _percent(name: str, ratio: str, legacy: str, *, group: str = "utilization") -> Field:
    return Field(
        name,
        Unit.PERCENT,
        100.0,
        kind=Kind.MEAN,
        mig=Mig.INVALID,
        renamed=((ratio, 100.0, Unit.RATIO),),
        legacy=(legacy,),
        group=group,
    )


def _activity(name: str, ratio: str, *, group: str = "profiling") -> Field:
    return Field(
        name,
        Unit.RATIO,
        1.0,
        kind=Kind.MEAN,
        renamed=((ratio, 1.0, Unit.RATIO),),
        group=group,
    )


def _framebuffer(name: str, renamed: str, *legacy: str) -> Field:
    return Field(
        name,
        Unit.MEBIBYTES,
        _MAX_MIB,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        renamed=((renamed, 1 / MIB, Unit.BYTES),),
        legacy=legacy,
        group="memory",
    )


def _board(name: str, unit: Unit, high: float, renamed: str, legacy: str) -> Field:
    spellings = ((renamed, 1.0, unit),) if renamed else ()
    return Field(name, unit, high, mig=Mig.BOARD, renamed=spellings, legacy=(legacy,))


def _pcie(name: str) -> Field:
    """A gauge of bytes per second, whatever its name says (``dcp-metrics-included.csv``)."""
    return Field(
        name, Unit.BYTES_PER_SECOND, 1e13, kind=Kind.MEAN, mig=Mig.BOARD, group="profiling"
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

FIELDS: Final[tuple[Field, ...]] = (
    _percent(UTIL, "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization"),
    _percent(
        "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "dcgm_mem_copy_utilization"
    ),
    _percent("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO", "dcgm_enc_utilization"),
    _percent("DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO", "dcgm_dec_utilization"),
    _activity(ENGINE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", group="utilization"),
    _activity("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"),
    _activity("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"),
    _pcie("DCGM_FI_PROF_PCIE_TX_BYTES"),
    _pcie("DCGM_FI_PROF_PCIE_RX_BYTES"),
    _framebuffer(USED, "DCGM_FI_DEV_FB_USED_BYTES", "dcgm_fb_used"),
    _framebuffer(FREE, "DCGM_FI_DEV_FB_FREE_BYTES", "dcgm_fb_free"),
    _framebuffer(RESERVED, "DCGM_FI_DEV_FB_RESERVED_BYTES"),
    _framebuffer(TOTAL, "DCGM_FI_DEV_FB_CAPACITY_BYTES"),
    Field(USED_SHARE, Unit.RATIO, 1.0, group="memory"),
    _board(POWER, Unit.WATTS, 10_000.0, "DCGM_FI_DEV_BOARD_POWER_WATTS", "dcgm_power_usage"),
    _board(TEMPERATURE, Unit.CELSIUS, 200.0, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "dcgm_gpu_temp"),
    _board(
        "DCGM_FI_DEV_MEMORY_TEMP",
        Unit.CELSIUS,
        200.0,
        "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS",
        "dcgm_memory_temp",
    ),
    _board("DCGM_FI_DEV_SM_CLOCK", Unit.MEGAHERTZ, 100_000.0, "", "dcgm_sm_clock"),
    _board("DCGM_FI_DEV_MEM_CLOCK", Unit.MEGAHERTZ, 100_000.0, "", "dcgm_memory_clock"),
    Field(
        "DCGM_FI_DEV_XID_ERRORS",
        Unit.CODE,
        100_000.0,
        mig=Mig.BOARD,
        over_devices=Combine.MAX,
        over_pods=Combine.MAX,
        renamed=(("DCGM_FI_DEV_XID_ERROR", 1.0, Unit.CODE),),
        legacy=("dcgm_xid_errors",),
    ),
)


def _neutral(name: str, field: str) -> Metric:
    return Metric(name, Unit.PERCENT, Kind.MEAN, (Scaled(field, 100.0),))


_USED_BYTES = Scaled(USED, MIB)
_SUMMED = Total((USED, FREE), (RESERVED,), MIB)

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "gpu_utilization",
        Unit.PERCENT,
        Kind.MEAN,
        (
            Scaled(ENGINE, 100.0, mig=True),
            Scaled(UTIL, mig=False),
            Scaled(ENGINE, 100.0, mig=False, unless=UTIL),
        ),
    ),
    Metric(
        "gpu_memory_utilization",
        Unit.PERCENT,
        Kind.LAST,
        (
            Share(_USED_BYTES, Scaled(TOTAL, MIB)),
            Share(_USED_BYTES, _SUMMED),
            Scaled(USED_SHARE, 100.0),
        ),
    ),
    Metric(
        "gpu_memory_used_bytes",
        Unit.BYTES,
        Kind.LAST,
        (_USED_BYTES,),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
    ),
    Metric(
        "gpu_memory_total_bytes",
        Unit.BYTES,
        Kind.LAST,
        (Scaled(TOTAL, MIB), _SUMMED),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
    ),
    _neutral("gpu_memory_bandwidth_utilization", "DCGM_FI_PROF_DRAM_ACTIVE"),
    _neutral("gpu_sm_activity", "DCGM_FI_PROF_SM_ACTIVE"),
    _neutral("gpu_sm_occupancy", "DCGM_FI_PROF_SM_OCCUPANCY"),
    _neutral("gpu_tensor_activity", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    Metric("gpu_power_watts", Unit.WATTS, Kind.LAST, (Scaled(POWER),), per_board=True),
    Metric(
        "gpu_temperature_celsius", Unit.CELSIUS, Kind.LAST, (Scaled(TEMPERATURE),), per_board=True
    ),
    Metric(
        "gpu_count",
        Unit.DEVICES,
        Kind.LAST,
        (Presence(tuple(field.name for field in FIELDS)),),
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
    ),
)


class Catalog:
    """The rows, indexed: what to read from pages and what to serve."""

    def __init__(self, fields: Sequence[Field] = FIELDS, metrics: Sequence[Metric] = METRICS):
        self.fields: Mapping[str, Field] = {field.name: field for field in fields}
        self.spellings: Mapping[str, Spelling] = {
            spelt.name: spelt for field in fields for spelt in _spellings(field)
        }
        """Series name on a page -> how to read it."""
        verbatim = {metric.name: metric for field in fields for metric in _verbatim(field)}
        self.metrics: Mapping[str, Metric] = verbatim | {metric.name: metric for metric in metrics}
        """API name -> what it is made of."""
        self.series: frozenset[str] = frozenset(self.spellings)
        """Every series name worth reading."""
        self.groups: Mapping[str, tuple[str, ...]] = _groups(self.spellings.values())
        """Series names that one Prometheus query fetches together."""


def _spellings(field: Field) -> Iterable[Spelling]:
    named = [(field.name, 1.0), *((n, f) for n, f, _ in field.renamed)]
    named += [(name, 1.0) for name in field.legacy]
    for name, factor in named:
        yield Spelling(name, factor, field)
        if name.lower() != name:
            yield Spelling(name.lower(), factor, field)


def _verbatim(field: Field) -> Iterable[Metric]:
    """A metric per name, and its lowercase alias: some HPAs on GKE break on upper case."""
    served = [(field.name, 1.0, field.unit), *field.renamed]
    served += [(name, 1.0, field.unit) for name in field.legacy]
    whole_only = False if field.mig is Mig.INVALID else None
    for name, factor, unit in served:
        for spelt in (name, name.lower()):
            yield Metric(
                spelt,
                unit,
                field.kind,
                (Scaled(field.name, 1.0 / factor, mig=whole_only),),
                over_devices=field.over_devices,
                over_pods=field.over_pods,
                per_board=field.mig is Mig.BOARD,
            )


def _groups(spellings: Iterable[Spelling]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for spelling in spellings:
        groups.setdefault(spelling.field.group, []).append(spelling.name)
    return {group: tuple(names) for group, names in groups.items()}
