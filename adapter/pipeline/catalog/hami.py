"""HAMi: its vGPU monitor, which looks into containers.

Names are from ``cmd/vGPUmonitor/metrics.go``, including the older ones (``--legacy-metrics``).
The samples of a container describe its own part of the device, so they are exact under every
policy. Utilization is 0-100 regardless of the name. Values above 100 occur and are rejected.
The monitor writes 0 for a container that HAMi does not watch: one without a limit of cores, or
one whose processes it cannot find (HAMi#1864, #2015, #601, #403).
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import nvidia
from adapter.pipeline.catalog.contradictions import Whole
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.metric import Combine
from adapter.pipeline.catalog.quantities import MIB, memory, percent

UTIL: Final = "hami_container_device_utilization_ratio"
USED: Final = "hami_vgpu_memory_used_bytes"
LIMIT: Final = "hami_vgpu_memory_limit_bytes"
HOST_UTIL: Final = "hami_host_gpu_utilization_ratio"
HOST_USED: Final = "hami_host_gpu_memory_used_bytes"


def _percent(name: str, legacy: str, *, exact: bool, mig: Mig = Mig.INSTANCE) -> Field:
    return percent(name, mig=mig, legacy=(legacy,), group="hami", exact=exact)


def _bytes(name: str, legacy: str, *, exact: bool, total: bool = False) -> Field:
    """Several virtual devices of a container on one device are added up."""
    return memory(
        name,
        total=total,
        legacy=(legacy,),
        group="hami",
        exact=exact,
        parts=("vdevice_index", "vdeviceid") if exact else (),
        over_parts=Combine.SUM,
    )


FIELDS: Final[tuple[Field, ...]] = (
    _percent(UTIL, "Device_utilization_desc_of_container", exact=True),
    _bytes(USED, "vGPU_device_memory_usage_in_bytes", exact=True),
    _bytes(LIMIT, "vGPU_device_memory_limit_in_bytes", exact=True, total=True),
    _percent(HOST_UTIL, "HostCoreUtilization", exact=False, mig=Mig.INVALID),
    _bytes(HOST_USED, "HostGPUMemoryUsage", exact=False),
)

_SPARE: Final = 1024.0 * MIB

WHOLES: Final[tuple[Whole, ...]] = (
    Whole(UTIL, HOST_UTIL, spare=5.0),
    Whole(USED, HOST_USED, spare=_SPARE),
    Whole(UTIL, nvidia.UTIL, spare=5.0, elsewhere=True),
    Whole(USED, nvidia.USED, spare=_SPARE, factor=MIB, elsewhere=True),
    Whole(nvidia.UTIL, HOST_UTIL, spare=nvidia.BUSY, elsewhere=True),
    Whole(HOST_UTIL, nvidia.UTIL, spare=nvidia.BUSY, elsewhere=True),
)
"""The monitor's own samples of the device, and those of dcgm-exporter beside it."""
