"""Changes of pods that begin a round at once.

Node autoscalers act within seconds on pending pods plus headroom. Once pods have come that the
headroom was for, the same demand counts twice until the headroom is lowered: the plan is made
again at once. Events are taken together, and the rate of rounds is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from adapter.cluster.table import Keyed, Table
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.workloads import ScalableWorkload
from apiservice.kube.reflector import EventType

TOGETHER: Final = 0.2
"""Seconds that events are collected for: a ReplicaSet creates its pods in batches of 1, 2, 4."""
APART: Final = 1.0
"""Least seconds from the end of one round to the next that events begin."""
SHARE: Final = 5.0
"""A round that events begin waits at least so many times what the last round took."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Keyed[Hashable])


class ChangeSignal:
    """Remembers that something has changed, until a round begins."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def note(self) -> None:
        """Pods have come, gone or been asked for."""
        self._event.set()

    def clear(self) -> None:
        """A round begins, and sees it."""
        self._event.clear()

    async def until(self, due: float, took: float) -> bool:
        """Wait for the next round.

        Args:
            due: when a full round is due, by the loop's clock.
            took: seconds that the last round took.

        Returns:
            Whether it comes before it is due, because of a change.
        """
        loop = asyncio.get_running_loop()
        earliest = loop.time() + max(APART, SHARE * took)
        try:
            async with asyncio.timeout_at(due):
                await self._event.wait()
                await asyncio.sleep(max(TOGETHER, earliest - loop.time()))
        except TimeoutError:
            return False
        return True


class WatchedTable(Generic[K, V]):
    """A table for a reflector, which notes changes of what counts in its objects."""

    def __init__(
        self, table: Table[K, V], changes: ChangeSignal, counts: Callable[[V], object]
    ) -> None:
        """``counts`` is what of an object matters; None where the object does not."""
        self._table = table
        self._changes = changes
        self._counts = counts

    def replace(self, items: Sequence[V]) -> None:
        """These are all objects that exist."""
        self._table.replace(items)
        self._changes.note()

    def apply(self, event: EventType, item: V) -> None:
        """One object was added, modified or deleted."""
        known = self._table.find(item.key)  # type: ignore[arg-type]
        before = None if known is None else self._counts(known)
        self._table.apply(event, item)
        after = None if event is EventType.DELETED else self._counts(item)
        if before != after:
            self._changes.note()


def living(pod: PodInfo) -> object:
    """A pod of a workload that holds GPUs and is not being deleted."""
    ours = pod.headroom or pod.daemon or pod.deleting
    return None if ours or gpus(pod.shape) == 0 else pod.uid


def sized(workload: ScalableWorkload) -> object:
    """How many pods a workload of GPU pods asks for."""
    return None if gpus(workload.shape) == 0 else workload.replicas
