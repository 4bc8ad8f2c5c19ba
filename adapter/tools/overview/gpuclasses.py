"""What a GPU is used for: each device of the list ``gpus`` is in exactly one class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from adapter.tools.client.tables import Cell
from adapter.tools.overview.columns import Columns

IDLE: Final = 600.0
"""Seconds after which a GPU counts as idle, as in ``gpu-metrics-adapter idle -A``."""

GpuClass = Literal["free", "blocked", "unheld", "busy", "idle", "unmeasured"]
"""``free``: no pod holds it, it does nothing, and a pod can get it. ``blocked``: the same, but no
pod can start on its node. ``unheld``: no pod holds it, and it works.
``busy`` and ``idle``: a pod holds it, and it has done nothing for so long or not.
``unmeasured``: nothing says whether it works."""


class GpuCounts(NamedTuple):
    """Devices by class."""

    free: int = 0
    blocked: int = 0
    unheld: int = 0
    busy: int = 0
    idle: int = 0
    unmeasured: int = 0

    @property
    def total(self) -> int:
        """All devices."""
        return sum(self)


def gpu_class(
    util: float | None,
    pods: Cell,
    idle_for: float | None,
    blocked: Cell,
    idle_after: float = IDLE,
) -> GpuClass:
    """Return the class of a device from four cells of its row.

    ``Idle-Seconds`` is given while no field of the exporter shows work, so it proves that a device
    does nothing also where no utilization is reported. A utilization of 0 that other fields
    contradict is not given.

    Args:
        util: ``Util-Percent``.
        pods: ``Pods``.
        idle_for: ``Idle-Seconds``.
        blocked: ``Blocked``.
        idle_after: seconds for which a held device does nothing until it counts as idle.
    """
    if pods is None:
        if idle_for is not None or util == 0:
            return "free" if blocked is None else "blocked"
        return "unmeasured" if util is None else "unheld"
    if idle_for is not None and idle_for >= idle_after:
        return "idle"
    return "unmeasured" if util is None else "busy"


def gpu_classes(gpus: Columns, idle_after: float = IDLE) -> list[GpuClass]:
    """Return the class of each row of ``gpus``; see :func:`gpu_class`."""
    util, idle = map(gpus.numbers, ("Util-Percent", "Idle-Seconds"))
    pods, blocked = map(gpus.cells, ("Pods", "Blocked"))
    return [gpu_class(*row, idle_after) for row in zip(util, pods, idle, blocked, strict=True)]


def silent_gpus(nodes: Columns) -> int:
    """Return the GPUs of ``gpunodes`` that no exporter reports, which are in no class."""
    return int(sum(filter(None, nodes.numbers("Silent"))))


def count_classes(classes: Iterable[GpuClass]) -> GpuCounts:
    """Return how many devices are in each class."""
    found: Counter[str] = Counter(classes)
    return GpuCounts(**found)
