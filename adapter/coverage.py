"""How many pods that hold GPUs have a value: what nobody sees until an HPA stands still.

Counted beside the answers and a few pods at a time, because a big fleet would hold them up.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from adapter.claim import Refusal
from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Pod
from adapter.provider import Values
from adapter.reading import Absence
from apiservice.selector import EVERYTHING

METRIC: Final = "gpu_utilization"
"""What every device that is in use has a value of."""
_FIRST: Final = 1.0
_LAST: Final = 60.0
"""Seconds between counts, doubling from the first: at the start values are still coming. A
count of 10,000 pods takes 0.7 s of CPU where nobody has asked for their values meanwhile."""
_AT_ONCE: Final = 50
"""Pods looked at without a pause: some 5 ms."""
_NOT_MEANT: Final = frozenset((Refusal.FINISHED, Refusal.NOT_RUNNING, Refusal.NOT_READY))
"""Pods that shall have no value yet, or none any more."""


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
    """

    def __init__(
        self, known: Values, pods: PodIndex, clock: Callable[[], float] = time.time
    ) -> None:
        self._known = known
        self._pods = pods
        self._clock = clock
        self.last: Counted | None = None
        """The last whole count; None before there is one."""

    async def run(self) -> None:
        """Count until cancelled."""
        pause = _FIRST
        while True:
            if self._pods.synced:
                self.last = await self.count()
                pause = min(2 * pause, _LAST)
            await asyncio.sleep(pause)

    async def count(self) -> Counted:
        """One count, pausing for others' work."""
        measured, missing = 0, Counter[str]()
        for number, pod in enumerate(self._pods_there()):
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            if not _holds(pod):
                continue
            found = self._known.snapshot.pod(pod, METRIC, EVERYTHING, self._clock())
            if not isinstance(found, Absence):
                measured += 1
            elif found.reason not in _NOT_MEANT:
                missing[found.reason] += 1
        return Counted(measured, missing)

    def _pods_there(self) -> Iterator[Pod]:
        """Namespace by namespace: to sort the pods of a whole cluster takes long."""
        for namespace in self._pods.namespaces():
            yield from self._pods.select(namespace, EVERYTHING)


def _holds(pod: Pod) -> bool:
    return pod.holds_gpu and bool(pod.node) and not pod.deleting and not pod.finished
