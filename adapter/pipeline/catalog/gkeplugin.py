"""GKE: the pages of the device plugins for GPUs and for TPUs, on port 2112.

The names are from GoogleCloudPlatform/container-engine-accelerators,
``pkg/gpu/nvidia/metrics/metrics.go``, and from the metrics package of the TPU plugin: gauges per
container with ``namespace``, ``pod``, ``container``, ``make``, ``accelerator_id`` and ``model``.
``make`` is ``nvidia`` or ``cloud-tpu``. It is required, because other programs use such short names
too. Utilization is in percent, memory in bytes. Devices without a container are in separate series
(``…_gpu_node``, ``…_node``), which are not read: those of GPUs identify a device by its index only.
The TPU plugin writes ``duty_cycle`` and memory only while the runtime of a container reports them.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import nvidia
from adapter.pipeline.catalog.contradictions import Contradiction, Whole
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.quantities import memory, percent

GROUP: Final = "gke_plugin"
UTIL: Final = "gke_duty_cycle"
USED: Final = "gke_memory_used"
TOTAL: Final = "gke_memory_total"
TPU_UTIL: Final = "gke_tpu_duty_cycle"
TPU_USED: Final = "gke_tpu_memory_used"
TPU_TOTAL: Final = "gke_tpu_memory_total"
TPU_TENSOR: Final = "gke_tpu_tensorcore_utilization"
TPU_BANDWIDTH: Final = "gke_tpu_memory_bandwidth_utilization"

_GPU: Final = (("make", "nvidia"),)
_TPU: Final = (("make", "cloud-tpu"),)


def _percent(name: str, series: str, where: tuple[tuple[str, str], ...]) -> Field:
    return percent(name, mig=Mig.INVALID, group=GROUP, series=series, where=where)


def _memory(
    name: str, series: str, where: tuple[tuple[str, str], ...], *, total: bool = False
) -> Field:
    return memory(name, total=total, mig=Mig.INVALID, group=GROUP, series=series, where=where)


FIELDS: Final[tuple[Field, ...]] = (
    _percent(UTIL, "duty_cycle", _GPU),
    _memory(USED, "memory_used", _GPU),
    _memory(TOTAL, "memory_total", _GPU, total=True),
    _percent(TPU_UTIL, "duty_cycle", _TPU),
    _memory(TPU_USED, "memory_used", _TPU),
    _memory(TPU_TOTAL, "memory_total", _TPU, total=True),
    _percent(TPU_TENSOR, "tensorcore_utilization", _TPU),
    _percent(TPU_BANDWIDTH, "memory_bandwidth_utilization", _TPU),
)

_ACTIVE: Final = 10.0
"""Mean percent of the tensor cores' activity that contradicts a duty cycle of 0."""
_BUSY: Final = 50.0
"""Percent of the memory's bandwidth, at every sample, that copies alone do not use."""

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    Contradiction(TPU_UTIL, TPU_TENSOR, mean=_ACTIVE, at_once=True),
    Contradiction(TPU_UTIL, TPU_BANDWIDTH, least=_BUSY, at_once=True),
)
WHOLES: Final[tuple[Whole, ...]] = (Whole(UTIL, nvidia.UTIL, spare=nvidia.BUSY, elsewhere=True),)
"""A page of the GPU plugin has no other sign of work: only dcgm-exporter beside it shows one."""
