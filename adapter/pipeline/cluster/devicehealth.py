"""The health of a pod's devices, as the kubelet reports it in the pod's status (KEP-4680).

The device plugin or the DRA driver decides: NVIDIA's plugin after an XID error that is not one of
the application (NVIDIA/k8s-device-plugin ``internal/rm/health.go``), AMD's by the health service of
its exporter (ROCm/device-metrics-exporter ``pkg/amdgpu/gpuagent/gpuagent_health.go``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

UNHEALTHY: Final = "Unhealthy"
"""The other values are ``Healthy`` and ``Unknown``."""


class _Device(msgspec.Struct):
    resourceID: str = ""  # noqa: N815 - as the API spells it
    health: str = ""


class _Resource(msgspec.Struct):
    name: str = ""
    resources: list[_Device] | None = None


class ContainerHealth(msgspec.Struct):
    """The devices of one of ``status.containerStatuses``."""

    allocatedResourcesStatus: list[_Resource] | None = None  # noqa: N815 - as the API spells it


def unhealthy_devices(containers: Iterable[ContainerHealth]) -> tuple[str, ...]:
    """Return the devices that are reported unhealthy, each as ``ID of RESOURCE``, sorted."""
    return tuple(
        sorted(
            {
                f"{device.resourceID} of {resource.name}"
                for container in containers
                for resource in container.allocatedResourcesStatus or ()
                for device in resource.resources or ()
                if device.health == UNHEALTHY
            }
        )
    )
