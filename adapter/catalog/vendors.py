"""The fields of all vendors' exporters."""

from __future__ import annotations

from typing import Final

from adapter.catalog import amd, azure, google, hami, intel, nvidia
from adapter.catalog.field import Field
from adapter.catalog.serverkinds import GATEWAY_FIELDS, SERVER_FIELDS

VENDORS: Final[dict[str, tuple[Field, ...]]] = {
    "NVIDIA (dcgm-exporter)": nvidia.FIELDS,
    "AMD (device-metrics-exporter)": amd.FIELDS,
    "Intel (XPU Manager)": intel.FIELDS,
    "HAMi (vGPU monitor)": hami.FIELDS,
    "Azure (Container Insights)": azure.FIELDS,
    "GKE (Cloud Monitoring)": google.FIELDS,
    "Inference servers": SERVER_FIELDS,
    "Inference gateways": GATEWAY_FIELDS,
}
"""Vendor and program -> its fields, in the order of the documentation."""
FIELDS: Final[tuple[Field, ...]] = sum(VENDORS.values(), start=())
