"""How long the replicas of a workload take from their creation to Ready. Pure.

It is the time for the node, the image, the volumes and the model together. The condition Ready
keeps only its last change, so a pod that was Ready before shows a time that is too long. What was
seen from the creation of a pod on therefore takes the place of what other pods show.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from adapter.nodepool.learn.boots import KEPT, LONGEST, p90
from adapter.pipeline.cluster.pod import Pod

_STEP: Final = 15.0
"""Seconds in whole numbers of which a time is used: the HPA controller's sync period."""


class StartTimes(NamedTuple):
    """The start times of one workload. Immutable."""

    watched: tuple[float, ...] = ()
    """Seconds of the newest pods that were seen from their creation on, oldest first."""
    shown: tuple[float, ...] = ()
    """Seconds that the conditions of other pods show."""
    ready: frozenset[str] = frozenset()
    """Uids of the existing pods that have been Ready."""
    since: float = 0.0
    """Epoch seconds from which on pods are watched."""

    def watch(self, pods: Iterable[Pod], now: float) -> StartTimes:
        """Return the times after a look at the workload's pods."""
        since = self.since or now
        watched, shown, ready = self.watched, self.shown, set()
        for pod in pods:
            was_ready = pod.uid in self.ready
            if not (was_ready or pod.ready):
                continue
            ready.add(pod.uid)
            took = pod.ready_since - pod.born
            if was_ready or not (pod.born and 0 < took <= LONGEST):
                continue
            if pod.born >= since:
                watched = (*watched, took)[-KEPT:]
            else:
                shown = (*shown, took)[-KEPT:]
        return StartTimes(watched, shown, frozenset(ready), since)

    @property
    def seconds(self) -> float | None:
        """What nine of ten starts take at most, in steps of 15 s; None if no start is known.

        Of times that conditions show, it is the median, because some are too long.
        """
        took = p90(self.watched)
        if took is None and self.shown:
            took = sorted(self.shown)[(len(self.shown) - 1) // 2]
        return None if took is None else -(-took // _STEP) * _STEP
