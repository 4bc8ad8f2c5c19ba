"""Write ``controller.kubernetes.io/pod-deletion-cost`` when a scale-in is likely.

If another writer sets the cost of a pod, the controller leaves all pods of its workload alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from adapter.hpa import MetricKind, TargetKind, Values
from adapter.nodepool.act.serverside import KubeObject, WriteError, Writer
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.names import DELETION_COST, MANAGER
from adapter.nodepool.model.shape import gpus
from adapter.nodepool.plan.deletioncost import PodLoad, costs, nears_scale_in
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.targets import ScaleTarget

log = structlog.get_logger(__name__)

_MARGIN: Final = 0.3
"""A scale-in is likely if the load is below the target by this fraction of it."""


class DeletionCosts:
    """Remembers which workloads may scale in soon, and which ones another writer manages."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._near: dict[WorkloadRef, bool] = {}
        self._foreign: set[WorkloadRef] = set()
        self._refused: dict[WorkloadRef, str] = {}

    async def write(
        self,
        cluster: ClusterTables,
        targets: Sequence[ScaleTarget],
        values: Mapping[WorkloadRef, tuple[Values, ...]],
        smoothed: Mapping[str, float],
    ) -> None:
        """Write the deletion costs that changed. Log a failure and continue with the others.

        Args:
            values: workload -> values from the metrics APIs.
            smoothed: uid of a pod -> its smoothed utilisation in percent.
        """
        devices = {node.name: sum(node.devices.values()) for node in cluster.nodes}
        used: dict[str, int] = {}
        for pod in cluster.pods:
            if pod.node and not pod.headroom:
                used[pod.node] = used.get(pod.node, 0) + (gpus(pod.shape) or 0)
        nearing: dict[WorkloadRef, bool] = {}
        for target in targets:
            if target.group:
                continue  # a StatefulSet or a controller of its own removes groups by number
            was = self._near.get(target.workload, False)
            now_near = _nears_scale_in(target, values.get(target.workload, ()), was=was)
            nearing[target.workload] = now_near
            await self._write(target, devices, used, smoothed, close=now_near)
        self._near = nearing
        self._foreign &= nearing.keys()
        self._refused = {row: text for row, text in self._refused.items() if row in nearing}

    async def _write(
        self,
        target: ScaleTarget,
        devices: Mapping[str, int],
        used: Mapping[str, int],
        smoothed: Mapping[str, float],
        *,
        close: bool,
    ) -> None:
        ready = {pod.name: pod for pod in target.pods if pod.ready and not pod.deleting}
        loads = [
            PodLoad(
                pod.name,
                smoothed.get(pod.uid),
                devices.get(pod.node, 0),
                used.get(pod.node, 0) - (gpus(pod.shape) or 0),
                pod.deletion_cost,
                pod.cost_writer == MANAGER,
                pod.unhealthy,
            )
            for pod in ready.values()
        ]
        change = costs(loads, near=close)
        if bool(change.foreign) != (target.workload in self._foreign):
            self._foreign ^= {target.workload}
            if change.foreign:
                log.warning(
                    "deletion costs are managed by another writer",
                    workload=target.workload,
                    pods=list(change.foreign[:5]),
                )
        for name, cost in change.costs.items():
            try:
                await self._writer.apply(_cost_patch(ready[name], cost))
            except WriteError as error:
                if self._refused.get(target.workload) != error.failure:
                    log.warning("deletion cost not written", error=str(error))
                self._refused[target.workload] = error.failure
                return
        if change.costs:
            self._refused.pop(target.workload, None)


def _nears_scale_in(target: ScaleTarget, values: tuple[Values, ...], *, was: bool) -> bool:
    status = target.autoscaler.status
    desired = int(status.get("desiredReplicas", target.replicas))
    load, aim = None, 0.0
    for metric, read in zip(target.readable.spec.metrics, values, strict=False):
        average = metric.target.kind is TargetKind.AVERAGE_VALUE
        if metric.kind is MetricKind.PODS and average and isinstance(read, Mapping) and read:
            load, aim = sum(read.values()) / len(read) / 1000, metric.target.milli / 1000
            break
    return nears_scale_in(desired, target.replicas, load, aim, _MARGIN, was=was)


def _cost_patch(pod: PodInfo, cost: int | None) -> KubeObject:
    """Return an apply patch. Without the annotation, it removes the controller's own value."""
    annotations = {} if cost is None else {DELETION_COST: str(cost)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            # The uid prevents that the apply creates a pod that was deleted in the meantime.
            "uid": pod.uid,
            "annotations": annotations,
        },
    }
