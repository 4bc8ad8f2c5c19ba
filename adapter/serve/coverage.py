"""Count how many pods with GPUs have a value, and why the others have none.

The count runs beside the requests, a few pods at a time, because a large cluster would delay them.
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
"""A metric of which every device in use has a value."""
_FIRST: Final = 1.0
_LAST: Final = 60.0
"""Longest time in seconds between counts.

The time starts short and doubles, because at the start values are still missing. A count of 10,000
pods takes 0.7 s of CPU if no client has asked for their values in the meantime.
"""
_NOT_MEANT: Final = frozenset((Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY))
"""Reasons of pods that are not expected to have a value."""


Attributing = Generator[None, None, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Counted:
    """The result of one count."""

    measured: int
    """Pods with a value."""
    missing: Counter[str]
    """Reason -> pods without a value."""

    @property
    def pods(self) -> int:
        """All pods that should have a value."""
        return self.measured + self.missing.total()


class Coverage:
    """Counts repeatedly.

    Args:
        attributions: starts a count of how devices are attributed to pods.
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
        """The last complete count; None before the first."""
        self.attributed: Mapping[str, int] | None = None
        """Attribution of utilisation -> devices, at the last count."""

    async def run(self) -> None:
        """Count until cancelled."""
        pause = _FIRST
        while True:
            if self._pods.synced:
                await self.look()
                pause = min(2 * pause, _LAST)
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """Count once, and keep the result."""
        self.last = await self.count()
        self.attributed = await paced(self._attributions())

    async def count(self) -> Counted:
        """Count once, with pauses for other tasks."""
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
