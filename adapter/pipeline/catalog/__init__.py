"""The table of fields and metrics: which exporter fields make which API metrics, in which unit.

One module per vendor holds the fields that its exporters write. :mod:`.neutral` holds the metrics
that have one meaning for all vendors. To add a field, add an entry to the vendor's module.
"""

from __future__ import annotations

from adapter.pipeline.catalog.neutral import METRICS
from adapter.pipeline.catalog.nvidia import (
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
from adapter.pipeline.catalog.quantities import MIB
from adapter.pipeline.catalog.table import Catalog, built_in
from adapter.pipeline.catalog.vendors import FIELDS, VENDORS

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
    "built_in",
]
