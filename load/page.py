"""A dcgm-exporter page: 25 fields of up to eight GPUs, each held by one pod.

Field names and label order are those of dcgm-exporter's own pages
(``etc/default-counters.csv`` and ``internal/pkg/rendermetrics``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

GPUS_PER_NODE = 8
UTIL = "DCGM_FI_DEV_GPU_UTIL"


class Device(NamedTuple):
    """A GPU, and the pod that holds it."""

    number: int
    uuid: str
    pod: str | None
    """None: nobody's."""


class Field(NamedTuple):
    """A counter and the range that simulated values are drawn from."""

    name: str
    kind: str
    low: float
    high: float
    whole: bool


FIELDS: tuple[Field, ...] = (
    Field("DCGM_FI_DEV_SM_CLOCK", "gauge", 345, 1980, True),
    Field("DCGM_FI_DEV_MEM_CLOCK", "gauge", 1593, 2619, True),
    Field("DCGM_FI_DEV_MEMORY_TEMP", "gauge", 30, 80, True),
    Field("DCGM_FI_DEV_GPU_TEMP", "gauge", 26, 75, True),
    Field("DCGM_FI_DEV_POWER_USAGE", "gauge", 60, 690, False),
    Field("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", 1e9, 2e9, True),
    Field("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", 0, 0, True),
    # Never 0 beside active engines: `serve` leaves a value out that contradicts another.
    Field(UTIL, "gauge", 1, 100, True),
    Field("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", 0, 100, True),
    Field("DCGM_FI_DEV_ENC_UTIL", "gauge", 0, 0, True),
    Field("DCGM_FI_DEV_DEC_UTIL", "gauge", 0, 0, True),
    Field("DCGM_FI_DEV_XID_ERRORS", "gauge", 0, 0, True),
    Field("DCGM_FI_DEV_FB_FREE", "gauge", 500, 2000, True),
    Field("DCGM_FI_DEV_FB_USED", "gauge", 60000, 79000, True),
    Field("DCGM_FI_DEV_FB_RESERVED", "gauge", 500, 600, True),
    Field("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", 0, 90000, True),
    Field("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", 0, 0, True),
    Field("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", 0, 0, True),
    Field("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", 0, 0, True),
    Field("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", 0, 0, True),
    Field("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", 0, 1, False),
    Field("DCGM_FI_PROF_SM_ACTIVE", "gauge", 0, 1, False),
    Field("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", 0, 1, False),
    Field("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", 0, 1, False),
    Field("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", 0, 2e10, True),
)
_UTIL_AT = next(index for index, field in enumerate(FIELDS) if field.name == UTIL)
_VARIANTS = 997
_SLOW = 60
"""Seconds after which the values of a slow device change."""
_IDLE = (7,)
_STEADY = (4, 5, 6)
"""Of eight devices one is idle and the load of three changes once in a minute, as that of a server
with steady traffic; the values of the others change every second."""


def _draw_values() -> tuple[tuple[bytes, ...], ...]:
    """Per field a fixed sequence of values in its range, ready to be written."""
    seeded = random.Random(7)
    drawn = []
    for field in FIELDS:
        values = [seeded.uniform(field.low, field.high) for _ in range(_VARIANTS)]
        form = "%d\n" if field.whole else "%.6f\n"
        drawn.append(tuple((form % value).encode() for value in values))
    return tuple(drawn)


_DRAWN = _draw_values()
_RESTING = tuple(b"0\n" if field.name == UTIL else b"%d\n" % field.low for field in FIELDS)
"""Per field the value of an idle device."""


def drawn_value(field: int, device: Device, tick: int) -> bytes:
    """The value of a field of a device at ``tick``, as :class:`Page` writes it."""
    return _line(field, device, tick).rstrip()


def _line(field: int, device: Device, tick: int) -> bytes:
    place = device.number % GPUS_PER_NODE
    if place in _IDLE:
        return _RESTING[field]
    if place in _STEADY:
        tick //= _SLOW
    return _DRAWN[field][(tick * 31 + device.number * 7 + field) % _VARIANTS]


class Page:
    """One exporter's page: devices busy, steady and idle. Utilization can be set."""

    def __init__(self, node: str, namespace: str, devices: Sequence[Device]) -> None:
        self.node = node
        self.forced: int | None = None
        """GPU_UTIL of every device of this page, once set."""
        self._devices = tuple(devices)
        self._labels = [_labels(node, namespace, device) for device in devices]
        self._parts = self._template()

    def _template(self) -> list[bytes]:
        """Text before each value; slot ``2 i`` is constant, ``2 i + 1`` the value."""
        parts: list[bytes] = []
        for field in FIELDS:
            head = f"# HELP {field.name} {field.name}.\n# TYPE {field.name} {field.kind}\n"
            for labels in self._labels:
                parts += [f"{head}{field.name}{{{labels}}} ".encode(), b""]
                head = ""
        return parts

    def render(self, tick: int) -> bytes:
        """The page's text at ``tick``: the same tick gives the same values."""
        parts = self._parts
        slot = 1
        for number in range(len(FIELDS)):
            forced = self.forced if number == _UTIL_AT else None
            for device in self._devices:
                if forced is None:
                    parts[slot] = _line(number, device, tick)
                else:
                    parts[slot] = b"%d\n" % forced
                slot += 2
        return b"".join(parts)


def _labels(node: str, namespace: str, device: Device) -> str:
    gpu = device.number % GPUS_PER_NODE
    text = f'gpu="{gpu}",UUID="{device.uuid}",device="nvidia{gpu}",modelName="NVIDIA H100"'
    text += f',Hostname="{node}"'
    if device.pod is not None:
        text += f',container="main",namespace="{namespace}",pod="{device.pod}"'
    return text
