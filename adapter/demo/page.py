"""A simulated node's exporter page, in dcgm-exporter's text format.

Names, order, HELP texts and label names follow the pages of releases 3.3 to 4.8 with
``--kubernetes`` (its etc/default-counters.csv): unassigned devices have no pod labels, and MIG
instances share their GPU's UUID and have no GPU_UTIL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from adapter.demo.fleet import DemoPod, Stage
from adapter.demo.hardware import DemoDevice, DemoNode
from adapter.demo.world import DemoWorkload, power

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_DRIVER = "580.105.08"
_RESERVED_MIB = 610

_HELP = {
    "DCGM_FI_DEV_SM_CLOCK": "SM clock frequency (in MHz).",
    "DCGM_FI_DEV_MEM_CLOCK": "Memory clock frequency (in MHz).",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Total energy consumption since boot (in mJ).",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "Memory utilization (in %).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
    "DCGM_FI_DEV_FB_FREE": "Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_RESERVED": "Framebuffer memory reserved (in MiB).",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "Ratio of time the graphics engine is active.",
    "DCGM_FI_PROF_SM_ACTIVE": "The ratio of cycles an SM has at least 1 warp assigned.",
    "DCGM_FI_PROF_SM_OCCUPANCY": "The ratio of number of warps resident on an SM.",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Ratio of cycles the tensor (HMMA) pipe is active.",
    "DCGM_FI_PROF_DRAM_ACTIVE": (
        "Ratio of cycles the device memory interface is active sending or receiving data."
    ),
}
"""Fields in the page's order."""


class DeviceHolder(NamedTuple):
    """The container that a device is assigned to."""

    namespace: str
    pod: str
    container: str
    memory_share: float
    """Share of the device's framebuffer in use, 0 to 1."""


def render(
    node: DemoNode,
    pods: Mapping[str, DemoPod],
    workloads: Mapping[str, DemoWorkload],
    namespace: str,
) -> bytes:
    """Render the page of a node of the simulated cluster, as UTF-8.

    The exporters of a pool with ``names_pods`` False do not read the kubelet's assignments.
    """

    def holder(device: DemoDevice) -> DeviceHolder | None:
        pod = pods.get(device.pod) if device.pod else None
        if pod is None:
            return None
        share = 0.0 if pod.stage is Stage.STARTING else workloads[pod.service].memory_share
        return DeviceHolder(namespace, pod.name, "server", share)

    return text(node, holder)


def text(node: DemoNode, holder: Callable[[DemoDevice], DeviceHolder | None]) -> bytes:
    """Render the page as UTF-8; ``holder`` returns a device's container, None if unassigned."""
    devices = []
    for device in node.devices:
        container = holder(device)
        shown = container if node.pool.names_pods else None
        devices.append((_labels(node, device, shown), _values(node, device, container)))
    lines = []
    for name, about in _HELP.items():
        rows = [
            f"{name}{{{labels}}} {values[name]}" for labels, values in devices if name in values
        ]
        if rows:
            kind = "counter" if name == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" else "gauge"
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *rows]
    return ("\n".join(lines) + "\n").encode()


def _labels(node: DemoNode, device: DemoDevice, holder: DeviceHolder | None) -> str:
    labels = {
        "gpu": str(device.gpu),
        "UUID": device.uuid,
        "pci_bus_id": f"00000000:{0x17 + 0x11 * device.gpu:02X}:00.0",
        "device": f"nvidia{device.gpu}",
        "modelName": node.pool.model,
    }
    if device.instance is not None:
        labels |= {"GPU_I_PROFILE": node.pool.mig_profile, "GPU_I_ID": str(device.instance)}
    labels |= {"Hostname": node.name, "DCGM_FI_DRIVER_VERSION": _DRIVER}
    if holder:
        labels |= {"container": holder.container, "namespace": holder.namespace, "pod": holder.pod}
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def _values(node: DemoNode, device: DemoDevice, holder: DeviceHolder | None) -> dict[str, str]:
    """Return what the driver would report about a device now, by field."""
    busy = min(1.0, device.busy)
    memory = node.pool.memory_mib - _RESERVED_MIB
    used = holder.memory_share * memory if holder else 0.0
    # The board's value: on MIG it is repeated for every instance.
    board = [part.busy for part in node.devices if part.gpu == device.gpu]
    watts = power(sum(board) / len(board))
    values = {
        "DCGM_FI_DEV_SM_CLOCK": str(345 + 1635 * (busy > 0)),
        "DCGM_FI_DEV_MEM_CLOCK": "2619",
        "DCGM_FI_DEV_GPU_TEMP": f"{27 + watts / 15:.0f}",
        "DCGM_FI_DEV_POWER_USAGE": f"{watts:.6f}",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": f"{1000 * device.energy:.0f}",
        "DCGM_FI_DEV_XID_ERRORS": "0",
        "DCGM_FI_DEV_FB_FREE": f"{memory - used:.0f}",
        "DCGM_FI_DEV_FB_USED": f"{used:.0f}",
        "DCGM_FI_DEV_FB_RESERVED": str(_RESERVED_MIB),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": f"{busy:.6f}",
        "DCGM_FI_PROF_SM_ACTIVE": f"{0.82 * busy:.6f}",
        "DCGM_FI_PROF_SM_OCCUPANCY": f"{0.31 * busy:.6f}",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": f"{0.38 * busy:.6f}",
        "DCGM_FI_PROF_DRAM_ACTIVE": f"{0.55 * busy:.6f}",
    }
    if device.instance is None:
        values["DCGM_FI_DEV_GPU_UTIL"] = f"{100 * busy:.0f}"
        values["DCGM_FI_DEV_MEM_COPY_UTIL"] = f"{45 * busy:.0f}"
    return values
