"""What a GPU is used for: each device is in exactly one class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from apiservice.view.resource import Cell

IDLE: Final = 600.0
"""Seconds after which a GPU counts as idle, as in ``gpu-metrics-adapter idle -A``."""

GpuClass = Literal["free", "blocked", "unheld", "busy", "idle", "unmeasured"]
"""``free``: no pod holds it, it does nothing, and a pod can get it. ``blocked``: the same, but no
pod can start on its node. ``unheld``: no pod holds it, and it works.
``busy`` and ``idle``: a pod holds it, and it has done nothing for so long or not.
``unmeasured``: nothing says whether it works."""


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


def block_withheld_devices(classes: Sequence[GpuClass], left: float | None) -> list[GpuClass]:
    """Return the classes of a node's devices if it does not offer all of them: no more are free
    than pods can still get, and nobody says which one is withheld."""
    corrected = list(classes)
    for _ in range(max(0, corrected.count("free") - int(left or 0))):
        corrected[corrected.index("free")] = "blocked"
    return corrected
