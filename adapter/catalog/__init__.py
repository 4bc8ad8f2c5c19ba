"""The table of fields and metrics: which exporter fields make which API metrics, in which unit.

One module per vendor holds the fields that its exporters write. :mod:`.neutral` holds the metrics
that have one meaning for all vendors. To add a field, add an entry to the vendor's module.
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
"""Vendor and program -> its fields, in the order of the documentation."""

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
