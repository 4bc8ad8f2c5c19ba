"""What the GPU pods use, asked for once a minute, and what follows from it.

Idle GPUs are reported; nothing is evicted. Deletion costs are written where the setting
asks for it and a scale-in is near, and never beside another writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from adapter.hpa import MetricKind, TargetKind, Values
from adapter.nodepool.cluster import Cluster
from adapter.nodepool.deletioncost import ANNOTATION, PodLoad, costs, near, smooth
from adapter.nodepool.demand import WorkloadRef
from adapter.nodepool.idle import GpuPod, Idle, Rule, Streak, follow, report
from adapter.nodepool.limits import Limits
from adapter.nodepool.metricvalues import MetricValues
from adapter.nodepool.pools import UNLABELLED
from adapter.nodepool.seen import instant
from adapter.nodepool.seen.pods import Pod
from adapter.nodepool.serverside import Object, WriteError, Writer
from adapter.nodepool.shape import device_resource, gpus
from adapter.nodepool.targets import Target
from adapter.nodepool.ways.names import MANAGER

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
_MARGIN: Final = 0.3
"""Share of the target that the load is below it when a scale-in is near."""


class Utilization:
    """Keeps readings between rounds; of pods that are there only."""

    def __init__(self, values: MetricValues, writer: Writer) -> None:
        self._values = values
        self._writer = writer
        self._looked: float | None = None
        self._turn = 0
        self._streaks: dict[str, Streak] = {}
        self._smooth: dict[str, float] = {}
        self._near: dict[WorkloadRef, bool] = {}
        self._foreign: set[WorkloadRef] = set()
        self._refused: dict[WorkloadRef, str] = {}
        self.idle: tuple[Idle, ...] = ()

    async def look(
        self, cluster: Cluster, limits: Limits, labels: Sequence[str], now: float
    ) -> bool:
        """Read anew, if it is time; whether it was."""
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
        rule = Rule()
        self._streaks = follow(self._streaks, rows, rule, now)
        before = {row.pod.uid for row in self.idle}
        self.idle = report(self._streaks, rows, rule, limits.price, now)
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
            value = smooth(self._smooth.get(row.uid), row.utilization, elapsed, _HALF_LIFE)
            if value is not None:
                kept[row.uid] = value
        self._smooth = kept
        return True

    async def _read(self, namespaces: Sequence[str]) -> Mapping[tuple[str, str], float]:
        turn = self._turn % max(1, len(namespaces))
        chosen = (*namespaces[turn:], *namespaces[:turn])[:_NAMESPACES]
        self._turn = turn + len(chosen)
        found = {}
        for namespace, values in (await self._values.pods(chosen, METRIC, _VALUES)).items():
            found.update({(namespace, name): value for name, value in values.items()})
        return found

    async def write_costs(
        self,
        cluster: Cluster,
        targets: Sequence[Target],
        values: Mapping[WorkloadRef, tuple[Values, ...]],
    ) -> None:
        """Write the deletion costs that changed; a failure is logged and the rest goes on."""
        devices = {
            node.name: sum(
                milli // 1000 for name, milli in node.allocatable.items() if device_resource(name)
            )
            for node in cluster.nodes
        }
        used: dict[str, int] = {}
        for pod in cluster.pods:
            if pod.node and not pod.headroom:
                used[pod.node] = used.get(pod.node, 0) + (gpus(pod.shape) or 0)
        nearing: dict[WorkloadRef, bool] = {}
        for target in targets:
            was = self._near.get(target.workload, False)
            now_near = _near(target, values.get(target.workload, ()), was=was)
            nearing[target.workload] = now_near
            await self._write(target, devices, used, close=now_near)
        self._near = nearing
        self._foreign &= nearing.keys()
        self._refused = {row: text for row, text in self._refused.items() if row in nearing}

    async def _write(
        self, target: Target, devices: Mapping[str, int], used: Mapping[str, int], *, close: bool
    ) -> None:
        ready = {pod.name: pod for pod in target.pods if pod.ready and not pod.deleting}
        loads = [
            PodLoad(
                pod.name,
                self._smooth.get(pod.uid),
                devices.get(pod.node, 0),
                used.get(pod.node, 0) - (gpus(pod.shape) or 0),
                pod.deletion_cost,
                pod.cost_writer == MANAGER,
            )
            for pod in ready.values()
        ]
        change = costs(loads, near=close)
        if bool(change.foreign) != (target.workload in self._foreign):
            self._foreign ^= {target.workload}
            if change.foreign:
                log.warning(
                    "deletion costs are somebody else's, and left to them",
                    workload=target.workload,
                    pods=list(change.foreign[:5]),
                )
        for name, cost in change.costs.items():
            try:
                await self._writer.apply(_costed(ready[name], cost))
            except WriteError as error:
                if self._refused.get(target.workload) != error.failure:
                    log.warning("deletion cost not written", error=str(error))
                self._refused[target.workload] = error.failure
                return
        if change.costs:
            self._refused.pop(target.workload, None)


def _near(target: Target, values: tuple[Values, ...], *, was: bool) -> bool:
    status = target.autoscaler.status
    desired = int(status.get("desiredReplicas", target.replicas))
    load, aim = None, 0.0
    for metric, read in zip(target.readable.spec.metrics, values, strict=False):
        average = metric.target.kind is TargetKind.AVERAGE_VALUE
        if metric.kind is MetricKind.PODS and average and isinstance(read, Mapping) and read:
            load, aim = sum(read.values()) / len(read) / 1000, metric.target.milli / 1000
            break
    return near(desired, target.replicas, load, aim, _MARGIN, was=was)


def _costed(pod: Pod, cost: int | None) -> Object:
    """Ours alone: applied without the annotation, it is taken off."""
    annotations = {} if cost is None else {ANNOTATION: str(cost)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            # Of a pod that is gone nothing may be made: the uid then does not match.
            "uid": pod.uid,
            "annotations": annotations,
        },
    }
