"""MIG instances, and the GPUs of AMD and Intel."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import devices
from charts.generate.dashboard.panel import Panel, Query, Row

_MIG: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
_AMD: Final = "{{hostname}} GPU {{gpu_id}}"
_INTEL: Final = "{{instance}} {{pci_bdf}}"


def _mig(series: str) -> str:
    return devices(series, 'GPU_I_PROFILE!=""')


MIG: Final = Row(
    "MIG instances",
    (
        Panel(
            "Activity of MIG instances",
            "Share of time in which the instance worked. The utilization of its board does not "
            "exist.",
            "percentunit",
            (Query(_mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE"), _MIG),),
            low=0,
            high=1,
        ),
        Panel(
            "Tensor activity of MIG instances",
            "Share of time in which tensor cores worked.",
            "percentunit",
            (Query(_mig("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _MIG),),
            low=0,
            high=1,
        ),
        Panel(
            "Memory of MIG instances",
            "Used framebuffer of each instance.",
            "mbytes",
            (Query(_mig("DCGM_FI_DEV_FB_USED"), _MIG),),
            low=0,
        ),
    ),
    collapsed=True,
)
AMD: Final = Row(
    "AMD GPUs",
    (
        Panel(
            "Graphics activity",
            "From AMD's device-metrics-exporter, per device.",
            "percent",
            (Query("avg by (hostname, gpu_id) (gpu_gfx_activity)", _AMD),),
            low=0,
            high=100,
        ),
        Panel(
            "VRAM used",
            "Inference servers reserve it at startup, so it seldom shows the load.",
            "mbytes",
            (Query("max by (hostname, gpu_id) (gpu_used_vram)", _AMD),),
            low=0,
        ),
        Panel(
            "Package power",
            "Power draw of a package.",
            "watt",
            (Query("max by (hostname, gpu_id) (gpu_package_power)", _AMD),),
            low=0,
        ),
    ),
    collapsed=True,
)
INTEL: Final = Row(
    "Intel GPUs",
    (
        Panel(
            "Engine activity",
            "From Intel's XPU Manager, as a share of time.",
            "percentunit",
            (Query("avg by (instance, pci_bdf) (xpum_engine_ratio)", _INTEL),),
            low=0,
            high=1,
        ),
        Panel(
            "Memory used",
            "Local memory of a device.",
            "bytes",
            (Query("max by (instance, pci_bdf) (xpum_memory_used_bytes)", _INTEL),),
            low=0,
        ),
        Panel(
            "Power",
            "Power draw of a device.",
            "watt",
            (Query("max by (instance, pci_bdf) (xpum_power_watts)", _INTEL),),
            low=0,
        ),
    ),
    collapsed=True,
)
