"""What a GPU is used for: each device of the list ``gpus`` is in exactly one class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from adapter.tools.client.tables import Cell
from adapter.tools.overview.columns import Columns

IDLE: Final = 600.0
"""Seconds after which a GPU counts as idle, as in ``gpu-metrics-adapter idle -A``."""

GpuClass = Literal["free", "unheld", "busy", "idle", "unmeasured"]
"""``free``: no pod holds it, and it does nothing. ``unheld``: no pod holds it, and it works.
``busy`` and ``idle``: a pod holds it, and it has done nothing for so long or not.
``unmeasured``: nothing says whether it works."""


class GpuCounts(NamedTuple):
    """Devices by class."""

    free: int = 0
    unheld: int = 0
    busy: int = 0
    idle: int = 0
    unmeasured: int = 0

    @property
    def total(self) -> int:
        """All devices."""
        return sum(self)


def gpu_class(
    util: float | None, pods: Cell, idle_for: float | None, idle_after: float = IDLE
) -> GpuClass:
    """Return the class of a device from three cells of its row.

    ``Idle-Seconds`` is given while no field of the exporter shows work, so it proves that a device
    does nothing also where no utilization is reported. A utilization of 0 that other fields
    contradict is not given.

    Args:
        util: ``Util-Percent``.
        pods: ``Pods``.
        idle_for: ``Idle-Seconds``.
        idle_after: seconds for which a held device does nothing until it counts as idle.
    """
    if pods is None:
        if idle_for is not None or util == 0:
            return "free"
        return "unmeasured" if util is None else "unheld"
    if idle_for is not None and idle_for >= idle_after:
        return "idle"
    return "unmeasured" if util is None else "busy"


def gpu_classes(gpus: Columns, idle_after: float = IDLE) -> list[GpuClass]:
    """Return the class of each row of ``gpus``; see :func:`gpu_class`."""
    util, idle = map(gpus.numbers, ("Util-Percent", "Idle-Seconds"))
    pods = gpus.cells("Pods")
    return [gpu_class(*row, idle_after) for row in zip(util, pods, idle, strict=True)]


def count_classes(classes: Iterable[GpuClass]) -> GpuCounts:
    """Return how many devices are in each class."""
    found: Counter[str] = Counter(classes)
    return GpuCounts(**found)
