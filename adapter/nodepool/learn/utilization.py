"""Read the utilisation of the GPU pods once a minute, and report idle GPUs without evicting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from adapter.nodepool.learn.idle import GpuPod, IdlePod, IdleStreak, follow, report
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.metricvalues import MetricValues
from adapter.nodepool.seen.nodes import UNLABELLED
from adapter.nodepool.seen.pods import PodInfo
from apiservice.wire import instant

log = structlog.get_logger(__name__)

METRIC: Final = "gpu_utilization"
_EVERY: Final = 60.0
"""Seconds between readings."""
_NAMESPACES: Final = 500
"""Maximum number of namespaces per reading, one request each; the others follow in the next."""
_VALUES: Final = 20.0
"""Maximum seconds of one reading: a plan waits for it."""
_HALF_LIFE: Final = 120.0
"""Half-life in seconds of a reading's weight in the deletion cost."""


class Utilization:
    """Keeps the readings of existing pods between rounds."""

    def __init__(self, values: MetricValues) -> None:
        self._values = values
        self._looked: float | None = None
        self._turn = 0
        self._streaks: dict[str, IdleStreak] = {}
        self.smoothed: dict[str, float] = {}
        """uid of a pod -> its smoothed utilisation in percent."""
        self.idle: tuple[IdlePod, ...] = ()

    async def look(
        self,
        cluster: ClusterTables,
        price: Callable[[str], float | None],
        labels: Sequence[str],
        now: float,
    ) -> bool:
        """Read the utilisation again if a minute has passed.

        Args:
            price: pool -> price of one of its GPUs for an hour.
            labels: node labels that name a pool. They precede the clouds' own labels.

        Returns:
            Whether it was read.
        """
        elapsed = _EVERY if self._looked is None else now - self._looked
        # If the clock was set back, read immediately.
        if 0 <= elapsed < _EVERY:
            return False
        self._looked = now
        pool_of = {node.name: node.pool(labels) for node in cluster.nodes}
        gpu_pods = [pod for pod in cluster.pods if _counts(pod)]
        read = await self._read(sorted({pod.namespace for pod in gpu_pods}))
        rows = [
            GpuPod(
                pod.namespace,
                pod.name,
                pod.uid,
                pool_of.get(pod.node, UNLABELLED),
                gpus(pod.shape) or 0,
                read.get((pod.namespace, pod.name)),
            )
            for pod in gpu_pods
        ]
        self._streaks = follow(self._streaks, rows, now)
        before = {row.pod.uid for row in self.idle}
        self.idle = report(self._streaks, rows, price, now)
        for idle_pod in self.idle:
            if idle_pod.pod.uid not in before:
                log.info(
                    "idle GPUs",
                    namespace=idle_pod.pod.namespace,
                    pod=idle_pod.pod.name,
                    gpus=idle_pod.pod.gpus,
                    since=instant.write(idle_pod.since),
                    gpu_hours=round(idle_pod.gpu_hours, 2),
                    cost=idle_pod.cost,
                )
        smoothed = {}
        for row in rows:
            value = smooth(self.smoothed.get(row.uid), row.utilization, elapsed, _HALF_LIFE)
            if value is not None:
                smoothed[row.uid] = value
        self.smoothed = smoothed
        return True

    async def _read(self, namespaces: Sequence[str]) -> Mapping[tuple[str, str], float]:
        turn = self._turn % max(1, len(namespaces))
        chosen = (*namespaces[turn:], *namespaces[:turn])[:_NAMESPACES]
        self._turn = turn + len(chosen)
        pod_values = {}
        for namespace, values in (await self._values.pods(chosen, METRIC, _VALUES)).items():
            pod_values.update({(namespace, name): value for name, value in values.items()})
        return pod_values


def smooth(
    past: float | None, value: float | None, elapsed: float, half_life: float
) -> float | None:
    """Return the exponential mean of a pod's utilisation.

    Args:
        past: the previous mean; None for a new pod.
        value: percent; None if it could not be read, which keeps ``past``.
        elapsed: seconds since ``past``.
        half_life: seconds after which a value has half its weight.
    """
    if value is None or past is None:
        return past if value is None else value
    # After a clock was set back, the elapsed time is unknown.
    keep: float = 0.5 ** (max(elapsed, 0.0) / half_life)
    return past * keep + value * (1 - keep)


def _counts(pod: PodInfo) -> bool:
    """Return whether a pod's GPUs can be idle: it has a node and GPUs, and has work."""
    return bool(pod.node and not (pod.headroom or pod.placeholder) and gpus(pod.shape))
