"""The fields of all vendors' exporters."""

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
)
from adapter.pipeline.catalog.contradictions import Contradiction, Whole
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.serverkinds import GATEWAY_FIELDS, SERVER_FIELDS

VENDORS: Final[dict[str, tuple[Field, ...]]] = {
    "NVIDIA (dcgm-exporter)": nvidia.FIELDS,
    "AMD (device-metrics-exporter)": amd.FIELDS,
    "Intel (XPU Manager)": intel.FIELDS,
    "HAMi and Volcano (vGPU monitor)": hami.FIELDS,
    "Intel Gaudi (metric exporter)": gaudi.FIELDS,
    "Huawei Ascend (npu-exporter)": ascend.FIELDS,
    "GKE (device plugins for GPUs and TPUs)": gkeplugin.FIELDS,
    "Azure (Container Insights)": azure.FIELDS,
    "GKE (Cloud Monitoring)": google.FIELDS,
    "Inference servers": SERVER_FIELDS,
    "Inference gateways": GATEWAY_FIELDS,
}
"""Vendor and program -> its fields, in the order of the documentation."""
FIELDS: Final[tuple[Field, ...]] = sum(VENDORS.values(), start=())
CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    *nvidia.CONTRADICTIONS,
    *amd.CONTRADICTIONS,
    *intel.CONTRADICTIONS,
    *gaudi.CONTRADICTIONS,
    *ascend.CONTRADICTIONS,
    *gkeplugin.CONTRADICTIONS,
)
"""What contradicts a 0 of a field, on the same device. Earlier entries apply first."""
WHOLES: Final[tuple[Whole, ...]] = (
    *nvidia.WHOLES,
    *hami.WHOLES,
    *gkeplugin.WHOLES,
    *google.WHOLES,
    *azure.WHOLES,
)
"""Which fields of a device the values of its containers, or of another exporter, must explain."""
