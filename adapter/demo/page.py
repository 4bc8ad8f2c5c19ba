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


class _Seen(NamedTuple):
    """The values that the driver would report about a device now."""

    busy: float
    used_mib: float
    total_mib: float
    watts: float
    energy_mj: float
    mig: bool


class _Field(NamedTuple):
    name: str
    help: str
    kind: str
    value: Callable[[_Seen], str]
    on_mig: bool = True


def _whole(value: float) -> str:
    return str(round(value))


def _six(value: float) -> str:
    return f"{value:.6f}"


_FIELDS = (
    _Field(
        "DCGM_FI_DEV_SM_CLOCK",
        "SM clock frequency (in MHz).",
        "gauge",
        lambda seen: _whole(345 + 1635 * (seen.busy > 0)),
    ),
    _Field("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", "gauge", lambda _: "2619"),
    _Field(
        "DCGM_FI_DEV_GPU_TEMP",
        "GPU temperature (in C).",
        "gauge",
        lambda seen: _whole(27 + seen.watts / 15),
    ),
    _Field("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "gauge", lambda seen: _six(seen.watts)),
    _Field(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "Total energy consumption since boot (in mJ).",
        "counter",
        lambda seen: _whole(seen.energy_mj),
    ),
    _Field(
        "DCGM_FI_DEV_GPU_UTIL",
        "GPU utilization (in %).",
        "gauge",
        lambda seen: _whole(100 * seen.busy),
        on_mig=False,
    ),
    _Field(
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "Memory utilization (in %).",
        "gauge",
        lambda seen: _whole(45 * seen.busy),
        on_mig=False,
    ),
    _Field(
        "DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", "gauge", lambda _: "0"
    ),
    _Field(
        "DCGM_FI_DEV_FB_FREE",
        "Framebuffer memory free (in MiB).",
        "gauge",
        lambda seen: _whole(seen.total_mib - seen.used_mib),
    ),
    _Field(
        "DCGM_FI_DEV_FB_USED",
        "Framebuffer memory used (in MiB).",
        "gauge",
        lambda seen: _whole(seen.used_mib),
    ),
    _Field(
        "DCGM_FI_DEV_FB_RESERVED",
        "Framebuffer memory reserved (in MiB).",
        "gauge",
        lambda _: _whole(_RESERVED_MIB),
    ),
    _Field(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "Ratio of time the graphics engine is active.",
        "gauge",
        lambda seen: _six(seen.busy),
    ),
    _Field(
        "DCGM_FI_PROF_SM_ACTIVE",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        "gauge",
        lambda seen: _six(0.82 * seen.busy),
    ),
    _Field(
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "The ratio of number of warps resident on an SM.",
        "gauge",
        lambda seen: _six(0.31 * seen.busy),
    ),
    _Field(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        "gauge",
        lambda seen: _six(0.38 * seen.busy),
    ),
    _Field(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        "gauge",
        lambda seen: _six(0.55 * seen.busy),
    ),
)


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
    """Render the page of a node of the simulated cluster, as UTF-8."""

    def holder(device: DemoDevice) -> DeviceHolder | None:
        pod = pods.get(device.pod) if device.pod else None
        if pod is None:
            return None
        share = 0.0 if pod.stage is Stage.STARTING else workloads[pod.service].memory_share
        return DeviceHolder(namespace, pod.name, "server", share)

    return text(node, holder)


def text(node: DemoNode, holder: Callable[[DemoDevice], DeviceHolder | None]) -> bytes:
    """Render the page as UTF-8; ``holder`` returns a device's container, None if unassigned."""
    devices = [_device(node, device, holder(device)) for device in node.devices]
    lines = []
    for field in _FIELDS:
        rows = [
            f"{field.name}{{{labels}}} {field.value(seen)}"
            for labels, seen in devices
            if field.on_mig or not seen.mig
        ]
        if rows:
            lines += [f"# HELP {field.name} {field.help}", f"# TYPE {field.name} {field.kind}"]
            lines += rows
    return ("\n".join(lines) + "\n").encode()


def _device(node: DemoNode, device: DemoDevice, holder: DeviceHolder | None) -> tuple[str, _Seen]:
    pool = node.pool
    labels = {
        "gpu": str(device.gpu),
        "UUID": device.uuid,
        "pci_bus_id": f"00000000:{0x17 + 0x11 * device.gpu:02X}:00.0",
        "device": f"nvidia{device.gpu}",
        "modelName": pool.model,
    }
    if device.instance is not None:
        labels |= {"GPU_I_PROFILE": pool.mig_profile, "GPU_I_ID": str(device.instance)}
    labels |= {"Hostname": node.name, "DCGM_FI_DRIVER_VERSION": _DRIVER}
    if holder:
        labels |= {
            "container": holder.container,
            "namespace": holder.namespace,
            "pod": holder.pod,
        }
    free = pool.memory_mib - _RESERVED_MIB
    seen = _Seen(
        busy=min(1.0, device.busy),
        used_mib=holder.memory_share * free if holder else 0.0,
        total_mib=free,
        # The board's value: on MIG it is repeated for every instance.
        watts=power(_board_busy(node, device.gpu)),
        energy_mj=1000 * device.energy,
        mig=device.instance is not None,
    )
    return ",".join(f'{name}="{value}"' for name, value in labels.items()), seen


def _board_busy(node: DemoNode, gpu: int) -> float:
    shares = [device.busy for device in node.devices if device.gpu == gpu]
    return sum(shares) / len(shares)
