"""The GPUs of the list ``gpus`` by what they are used for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from adapter.answers.view.gpuclass import IDLE, GpuClass, gpu_class
from adapter.tools.overview.columns import Columns


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
    counts: Counter[str] = Counter(classes)
    return GpuCounts(**counts)
