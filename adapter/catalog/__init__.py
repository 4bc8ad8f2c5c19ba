"""The one table: which exporter fields become which API metrics, in which unit.

A module per vendor holds the fields that its exporters write; :mod:`.neutral` the metrics
that mean the same on all of them. A new field is a new row.
"""

from __future__ import annotations

from typing import Final

from adapter.catalog import amd, azure, google, hami, intel, nvidia, servers
from adapter.catalog.field import Field
from adapter.catalog.neutral import METRICS
from adapter.catalog.nvidia import (
    ENGINE,
    FREE,
    POWER,
    RESERVED,
    TEMPERATURE,
    TOTAL,
    USED,
    USED_SHARE,
    UTIL,
)
from adapter.catalog.table import BUILT_IN, Catalog
from adapter.catalog.units import MIB

VENDORS: Final[dict[str, tuple[Field, ...]]] = {
    "NVIDIA (dcgm-exporter)": nvidia.FIELDS,
    "AMD (device-metrics-exporter)": amd.FIELDS,
    "Intel (XPU Manager)": intel.FIELDS,
    "HAMi (vGPU monitor)": hami.FIELDS,
    "Azure (Container Insights)": azure.FIELDS,
    "GKE (Cloud Monitoring)": google.FIELDS,
    "Inference servers (vLLM, Triton, TGI, SGLang)": servers.FIELDS,
}
"""Who writes which fields, in the order of the documentation."""

FIELDS: Final = BUILT_IN

__all__ = [
    "ENGINE",
    "FIELDS",
    "FREE",
    "METRICS",
    "MIB",
    "POWER",
    "RESERVED",
    "TEMPERATURE",
    "TOTAL",
    "USED",
    "USED_SHARE",
    "UTIL",
    "VENDORS",
    "Catalog",
]
