"""Azure Container Insights: cAdvisor's accelerator readings, one value per minute.

Names, units and meanings are from Azure Monitor's "Configure GPU monitoring with Container
insights". cAdvisor reads whole devices only, so samples of MIG instances are not used.
"""

from __future__ import annotations

from typing import Final

from adapter.catalog.field import Field, Mig
from adapter.catalog.metric import Combine, Kind, Unit
from adapter.catalog.units import MAX_BYTES

UTIL: Final = "containerGpuDutyCycle"
USED: Final = "containerGpumemoryUsedBytes"
TOTAL: Final = "containerGpumemoryTotalBytes"


def _bytes(name: str) -> Field:
    return Field(
        name,
        Unit.BYTES,
        MAX_BYTES,
        mig=Mig.INVALID,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        group="azure",
    )


FIELDS: Final[tuple[Field, ...]] = (
    Field(UTIL, Unit.PERCENT, 100.0, kind=Kind.MEAN, mig=Mig.INVALID, group="azure"),
    _bytes(USED),
    _bytes(TOTAL),
)
