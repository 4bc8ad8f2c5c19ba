"""What an exporter's fields say about the health of a device. One declaration for each sign.

- NVIDIA: ``DCGM_FI_DEV_XID_ERRORS`` is the code of the last XID error. NVIDIA's device plugin takes
  a device for unhealthy after any of them, except those that an application can cause
  (NVIDIA/k8s-device-plugin ``internal/rm/health.go``).
- AMD: ``gpu_health`` is 1 for a healthy device and 0 for another (ROCm/device-metrics-exporter
  ``pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

XID: Final = "DCGM_FI_DEV_XID_ERRORS"
AMD_HEALTH: Final = "gpu_health"
_OF_APPLICATIONS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""XID errors after which the device plugin still offers the device."""


def _xid(code: float) -> str:
    return f"XID error {code:g}" if code and code not in _OF_APPLICATIONS else ""


def _amd(health: float) -> str:
    return "" if health else "gpu_health is 0"


SIGNS: Final[Mapping[str, Callable[[float], str]]] = {XID: _xid, AMD_HEALTH: _amd}
"""Metric -> why a device with this value is not healthy; empty if it may be."""
