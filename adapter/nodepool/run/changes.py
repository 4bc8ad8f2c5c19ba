"""Changes of pods that start a round immediately.

Node autoscalers act within seconds on pending pods plus headroom. When the pods are created that
headroom was ordered for, the same demand counts twice until the headroom is lowered. Therefore a
change starts a new plan. Changes are collected for a moment, and the rate of rounds is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from adapter.nodepool.model.shape import gpus
from adapter.nodepool.seen.nodes import NodeInfo
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.status import AutoscalerStatus
from adapter.nodepool.seen.workloads import ScalableWorkload
from adapter.pipeline.cluster.table import Keyed, Table
from apiservice.kube.reflector import EventType

TOGETHER: Final = 0.2
"""Seconds for which changes are collected: a ReplicaSet creates its pods in batches of 1, 2, 4."""
APART: Final = 1.0
"""Minimum seconds from the end of a round to the next one that a change starts."""
SHARE: Final = 5.0
"""A round that a change starts waits at least this multiple of the last round's duration."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Keyed[Hashable])


class ChangeSignal:
    """Remembers that something has changed until a round starts."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def note(self) -> None:
        """Note that pods were created, deleted or requested."""
        self._event.set()

    def clear(self) -> None:
        """Forget the changes: a round starts and reads them."""
        self._event.clear()

    async def until(self, due: float, took: float) -> bool:
        """Wait for the next round.

        Args:
            due: when a full round is due, by the loop's clock.
            took: duration of the last round in seconds.

        Returns:
            Whether a change starts it before it is due.
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
    """A table for a reflector that notes relevant changes of its objects."""

    def __init__(
        self, table: Table[K, V], changes: ChangeSignal, counts: Callable[[V], object]
    ) -> None:
        """``counts`` returns the relevant part of an object; None if nothing in it is relevant."""
        self._table = table
        self._changes = changes
        self._counts = counts

    def replace(self, items: Sequence[V]) -> None:
        """Replace the contents with all existing objects."""
        self._table.replace(items)
        self._changes.note()

    def apply(self, event: EventType, item: V) -> None:
        """Add, modify or delete one object."""
        old = self._table.find(item.key)  # type: ignore[arg-type]  # V's bound cannot name K
        before = None if old is None else self._counts(old)
        self._table.apply(event, item)
        after = None if event is EventType.DELETED else self._counts(item)
        if before != after:
            self._changes.note()


def living_gpu_pod(pod: PodInfo) -> object:
    """Return the relevant part of a pod: of a workload, with GPUs, and not being deleted."""
    ours = pod.headroom or pod.daemon or pod.deleting
    return None if ours or gpus(pod.shape) == 0 else pod.uid


def usable_capacity(node: NodeInfo) -> object:
    """Return what makes a node capacity: an order is tied to nodes as soon as they exist."""
    return node.healthy, tuple(sorted(node.devices.items()))


def requested_nodes(status: AutoscalerStatus) -> object:
    """Return the nodes that the cluster-autoscaler has requested."""
    return tuple((group.name, group.target) for group in status.groups)


def requested_pods(workload: ScalableWorkload) -> object:
    """Return how many pods a workload of GPU pods requests."""
    shape = workload.shape
    return None if shape is None or gpus(shape) == 0 else workload.replicas
