"""Azure Container Insights: cAdvisor's accelerator readings, one value per minute.

Names, units and meanings are from Azure Monitor's "Configure GPU monitoring with Container
insights". cAdvisor reads whole devices only, so samples of MIG instances are not used.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import nvidia
from adapter.pipeline.catalog.contradictions import Whole
from adapter.pipeline.catalog.quantities import whole_devices

UTIL: Final = "containerGpuDutyCycle"
USED: Final = "containerGpumemoryUsedBytes"
TOTAL: Final = "containerGpumemoryTotalBytes"

FIELDS: Final = whole_devices(UTIL, USED, TOTAL, group="azure")
WHOLES: Final = (Whole(UTIL, nvidia.UTIL, spare=nvidia.BUSY, elsewhere=True),)
