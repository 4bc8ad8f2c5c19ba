"""What the GPU pods use, read once a minute. Idle GPUs are reported; nothing is evicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from adapter.nodepool.learn.idle import GpuPod, IdlePod, IdleRule, IdleStreak, follow, report
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.seen import instant
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.metricvalues import MetricValues
from adapter.nodepool.seen.nodes import UNLABELLED

log = structlog.get_logger(__name__)

METRIC: Final = "gpu_utilization"
_EVERY: Final = 60.0
"""Seconds between looks."""
_NAMESPACES: Final = 500
"""Most namespaces asked in one look, one request each; the others follow in the next."""
_VALUES: Final = 20.0
"""Seconds that one look may take: a plan waits for it."""
_HALF_LIFE: Final = 120.0
"""Seconds after which an old reading counts half for a deletion cost."""


class Utilization:
    """Keeps readings between rounds; of pods that are there only."""

    def __init__(self, values: MetricValues) -> None:
        self._values = values
        self._looked: float | None = None
        self._turn = 0
        self._streaks: dict[str, IdleStreak] = {}
        self.smoothed: dict[str, float] = {}
        """Pod, by uid, to its smoothed utilisation in percent."""
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
            price: pool to the price of one of its GPUs for an hour.
            labels: node labels that name a pool, before the clouds' own.

        Returns:
            Whether it was read.
        """
        elapsed = _EVERY if self._looked is None else now - self._looked
        # Less than 0 is a clock that was set back: waiting for it to catch up would be blind.
        if 0 <= elapsed < _EVERY:
            return False
        self._looked = now
        pool_of = {node.name: node.pool(labels) or UNLABELLED for node in cluster.nodes}
        held = [pod for pod in cluster.pods if pod.node and not pod.headroom and gpus(pod.shape)]
        read = await self._read(sorted({pod.namespace for pod in held}))
        rows = [
            GpuPod(
                pod.namespace,
                pod.name,
                pod.uid,
                pool_of.get(pod.node, UNLABELLED),
                gpus(pod.shape) or 0,
                read.get((pod.namespace, pod.name)),
            )
            for pod in held
        ]
        rule = IdleRule()
        self._streaks = follow(self._streaks, rows, rule, now)
        before = {row.pod.uid for row in self.idle}
        self.idle = report(self._streaks, rows, rule, price, now)
        for found in self.idle:
            if found.pod.uid not in before:
                log.info(
                    "GPUs are held and not used",
                    namespace=found.pod.namespace,
                    pod=found.pod.name,
                    gpus=found.pod.gpus,
                    since=instant.write(found.since),
                    gpu_hours=round(found.gpu_hours, 2),
                    cost=found.cost,
                )
        kept = {}
        for row in rows:
            value = smooth(self.smoothed.get(row.uid), row.utilization, elapsed, _HALF_LIFE)
            if value is not None:
                kept[row.uid] = value
        self.smoothed = kept
        return True

    async def _read(self, namespaces: Sequence[str]) -> Mapping[tuple[str, str], float]:
        turn = self._turn % max(1, len(namespaces))
        chosen = (*namespaces[turn:], *namespaces[:turn])[:_NAMESPACES]
        self._turn = turn + len(chosen)
        found = {}
        for namespace, values in (await self._values.pods(chosen, METRIC, _VALUES)).items():
            found.update({(namespace, name): value for name, value in values.items()})
        return found


def smooth(
    past: float | None, value: float | None, elapsed: float, half_life: float
) -> float | None:
    """The exponential mean of a pod's utilisation.

    Args:
        past: the mean before; None for a new pod.
        value: percent; None where it could not be read: what was known stays.
        elapsed: seconds since ``past``.
        half_life: seconds after which an old value counts half.
    """
    if value is None or past is None:
        return past if value is None else value
    # After a clock was set back, the elapsed time is unknown.
    keep: float = 0.5 ** (max(elapsed, 0.0) / half_life)
    return past * keep + value * (1 - keep)
