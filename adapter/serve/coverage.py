"""How many pods that hold GPUs have a value: what nobody sees until an HPA stands still.

Counted beside the answers and a few pods at a time, because a big fleet would hold them up.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.api.provider import Values
from adapter.attribution.reading import Absence
from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Pod
from adapter.devices.assignment import Mismatch
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import paced

METRIC: Final = "gpu_utilization"
"""What every device that is in use has a value of."""
_FIRST: Final = 1.0
_LAST: Final = 60.0
"""Seconds between counts, doubling from the first: at the start values are still coming. A
count of 10,000 pods takes 0.7 s of CPU where nobody has asked for their values meanwhile."""
_NOT_MEANT: Final = frozenset((Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY))
"""Pods that shall have no value yet, or none any more."""


Attributing = Generator[None, None, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Counted:
    """One count."""

    measured: int
    """Pods with a value."""
    missing: Counter[str]
    """Pods without, by reason."""

    @property
    def pods(self) -> int:
        """All that should have one."""
        return self.measured + self.missing.total()


class Coverage:
    """Counts again and again.

    Args:
        known: the values.
        pods: those that there are.
        attributions: starts to count how pods are given their devices.
    """

    def __init__(
        self,
        known: Values,
        pods: PodIndex,
        attributions: Callable[[], Attributing],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._known = known
        self._pods = pods
        self._attributions = attributions
        self._clock = clock
        self.last: Counted | None = None
        """The last whole count; None before there is one."""
        self.attributed: Mapping[str, int] | None = None
        """How pods are given their devices' utilisation -> devices, when it was counted last."""

    async def run(self) -> None:
        """Count until cancelled."""
        pause = _FIRST
        while True:
            if self._pods.synced:
                await self.look()
                pause = min(2 * pause, _LAST)
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """Count once."""
        self.last = await self.count()
        self.attributed = await paced(self._attributions())

    async def count(self) -> Counted:
        """One count, pausing for others' work."""
        return await paced(self._count())

    def _count(self) -> Generator[None, None, Counted]:
        measured, missing = 0, Counter[str]()
        for pod in self._pods.each():
            yield
            if not _holds(pod):
                continue
            found = self._known.snapshot.pod(pod, METRIC, EVERYTHING, self._clock())
            if not isinstance(found, Absence):
                measured += 1
            elif found.reason not in _NOT_MEANT:
                missing[found.reason] += 1
        return Counted(measured, missing)


def _holds(pod: Pod) -> bool:
    return pod.holds_gpu and bool(pod.node) and not pod.deleting and not pod.finished
