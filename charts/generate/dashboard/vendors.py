"""MIG instances, and the GPUs of AMD and Intel."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import devices
from charts.generate.dashboard.panel import Query, Row, graph

_MIG: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
_AMD: Final = "{{hostname}} GPU {{gpu_id}}"
_INTEL: Final = "{{instance}} {{pci_bdf}}"


def _instances(series: str) -> Query:
    return Query(devices(series, 'GPU_I_PROFILE!=""'), _MIG)


def mig() -> Row:
    """Return the panels of MIG instances."""
    return Row(
        "MIG instances",
        (
            graph(
                "Activity of MIG instances",
                "Share of time in which the instance worked. The utilization of its board does "
                "not exist.",
                _instances("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
                unit="percentunit",
            ).max(1),
            graph(
                "Tensor activity of MIG instances",
                "Share of time in which tensor cores worked.",
                _instances("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
                unit="percentunit",
            ).max(1),
            graph(
                "Memory of MIG instances",
                "Used framebuffer of each instance.",
                _instances("DCGM_FI_DEV_FB_USED"),
                unit="mbytes",
            ),
        ),
        collapsed=True,
    )


def amd() -> Row:
    """Return the panels of AMD's device-metrics-exporter."""
    return Row(
        "AMD GPUs",
        (
            graph(
                "Graphics activity",
                "From AMD's device-metrics-exporter, per device.",
                Query("avg by (hostname, gpu_id) (gpu_gfx_activity)", _AMD),
                unit="percent",
            ).max(100),
            graph(
                "VRAM used",
                "Inference servers reserve it at startup, so it seldom shows the load.",
                Query("max by (hostname, gpu_id) (gpu_used_vram)", _AMD),
                unit="mbytes",
            ),
            graph(
                "Package power",
                "Power draw of a package.",
                Query("max by (hostname, gpu_id) (gpu_package_power)", _AMD),
                unit="watt",
            ),
        ),
        collapsed=True,
    )


def intel() -> Row:
    """Return the panels of Intel's XPU Manager."""
    return Row(
        "Intel GPUs",
        (
            graph(
                "Engine activity",
                "From Intel's XPU Manager, as a share of time.",
                Query("avg by (instance, pci_bdf) (xpum_engine_ratio)", _INTEL),
                unit="percentunit",
            ).max(1),
            graph(
                "Memory of Intel GPUs",
                "Local memory of a device.",
                Query("max by (instance, pci_bdf) (xpum_memory_used_bytes)", _INTEL),
                unit="bytes",
            ),
            graph(
                "Power of Intel GPUs",
                "Power draw of a device.",
                Query("max by (instance, pci_bdf) (xpum_power_watts)", _INTEL),
                unit="watt",
            ),
        ),
        collapsed=True,
    )
