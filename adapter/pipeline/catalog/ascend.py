"""Huawei Ascend: npu-exporter of MindCluster.

Names and labels are from ``component/npu-exporter/collector`` (``id``, ``model_name``, ``vdie_id``,
``pcie_bus_info``, ``namespace``, ``pod_name``, ``container_name``; the last three are empty for a
chip without a container) and from its API page, "NPU Exporter Prometheus Metrics API". Memory is in
MB of 1,048,576 bytes: a chip with 64 GiB reports 65536. The memory of chips without HBM (310P) has
other names (``used_memory``), which are not read.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.contradictions import WORKING_WATTS, Contradiction
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.catalog.quantities import celsius, memory, percent, watts

GROUP: Final = "ascend"
UTIL: Final = "npu_chip_info_utilization"
HBM_USED: Final = "npu_chip_info_hbm_used_memory"
HBM_TOTAL: Final = "npu_chip_info_hbm_total_memory"
POWER: Final = "npu_chip_info_power"
TEMPERATURE: Final = "npu_chip_info_temperature"


FIELDS: Final[tuple[Field, ...]] = (
    percent(UTIL, group=GROUP),
    memory(HBM_USED, Unit.MEBIBYTES, group=GROUP),
    memory(HBM_TOTAL, Unit.MEBIBYTES, total=True, group=GROUP),
    watts(POWER, group=GROUP),
    celsius(TEMPERATURE, group=GROUP),
)

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    Contradiction(UTIL, POWER, least=WORKING_WATTS, at_once=True),
)
