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
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.metric import Combine, Kind, LoadDirection, Unit
from adapter.pipeline.catalog.units import MAX_CELSIUS, MAX_MIB, MAX_WATTS

GROUP: Final = "ascend"
UTIL: Final = "npu_chip_info_utilization"
HBM_USED: Final = "npu_chip_info_hbm_used_memory"
HBM_TOTAL: Final = "npu_chip_info_hbm_total_memory"
POWER: Final = "npu_chip_info_power"
TEMPERATURE: Final = "npu_chip_info_temperature"


def _memory(name: str, load: LoadDirection, *, positive: bool = False) -> Field:
    return Field(
        name,
        Unit.MEBIBYTES,
        MAX_MIB,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        group=GROUP,
        positive=positive,
        load=load,
    )


FIELDS: Final[tuple[Field, ...]] = (
    Field(UTIL, Unit.PERCENT, 100.0, kind=Kind.MEAN, group=GROUP, load=LoadDirection.RISES),
    _memory(HBM_USED, LoadDirection.RISES),
    _memory(HBM_TOTAL, LoadDirection.STEADY, positive=True),
    Field(
        POWER,
        Unit.WATTS,
        MAX_WATTS,
        mig=Mig.BOARD,
        group=GROUP,
        positive=True,
        load=LoadDirection.RISES,
    ),
    Field(
        TEMPERATURE,
        Unit.CELSIUS,
        MAX_CELSIUS,
        mig=Mig.BOARD,
        group=GROUP,
        divisible=False,
        positive=True,
        load=LoadDirection.STEADY,
    ),
)

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    Contradiction(UTIL, POWER, least=WORKING_WATTS, at_once=True),
)
