"""Which pod a ReplicaSet should delete first: ``controller.kubernetes.io/pod-deletion-cost``.

The ReplicaSet controller first deletes pods that are unassigned, pending or not ready, and then
the pods with the lowest cost (``ActivePodsWithRanks`` of ``pkg/controller/controller_utils.go``).
A pod without the annotation has cost 0. Therefore, if one pod of a workload has a cost, all of
them need one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

BUCKET: Final = 100
"""Cost per 10 percent of utilisation: 0, 100, … 1000."""
BUSIEST: Final = 10 * BUCKET
_SINGLE: Final = 5
_NEIGHBOUR: Final = 10
_STICKY: Final = 7.5
"""Percentage points from the middle of its bucket at which a pod's cost is written again."""


class PodLoad(NamedTuple):
    """One ready pod of a workload."""

    name: str
    utilization: float | None
    """Smoothed percentage; None if unknown."""
    node_gpus: int
    """GPUs of the pod's node."""
    others_gpus: int
    """GPUs of that node that are held by other pods."""
    cost: str | None = None
    """Current value of the annotation; None without one."""
    ours: bool = False
    """Whether this controller wrote the annotation (``managedFields``)."""
    unhealthy: bool = False
    """Whether the kubelet reports one of its devices unhealthy."""


class CostChange(NamedTuple):
    """Changes of deletion costs, for pods whose cost is not right already."""

    costs: Mapping[str, int | None]
    """Pod -> its cost; None removes the annotation."""
    foreign: tuple[str, ...]
    """Pods whose cost another writer sets. The controller then leaves the whole workload alone."""


def nears_scale_in(
    desired: int, current: int, load: float | None, target: float, margin: float, *, was: bool
) -> bool:
    """Return whether a scale-in is likely soon.

    Args:
        desired: desired replicas in the HPA's status.
        current: replicas of its target.
        load: the workload's value in the metric's unit; None if unknown.
        target: target of the HPA, in the same unit.
        margin: fraction of the target by which the load must be below it.
        was: the result of the last round. If true, half the margin suffices.
    """
    if desired < current:
        return True
    if load is None or current <= 1:
        return False
    return load < target * (1 - (margin / 2 if was else margin))


def costs(pods: Sequence[PodLoad], *, near: bool) -> CostChange:
    """Return the deletion costs of a workload's pods that must change.

    The utilisation decides. Within a bucket, pods on nodes with the fewest other GPUs in use are
    deleted first, and among those the pods on multi-GPU nodes. A pod whose utilisation is unknown
    gets the highest bucket, because a missing reading must not cause its deletion. A pod with an
    unhealthy device is deleted before all others.
    """
    foreign = tuple(sorted(pod.name for pod in pods if pod.cost is not None and not pod.ours))
    if foreign or not near:
        return CostChange(
            {pod.name: None for pod in pods if pod.cost is not None and pod.ours}, foreign
        )
    wanted = {pod.name: _cost(pod) for pod in pods}
    current = {pod.name: pod.cost for pod in pods}
    return CostChange(
        {name: cost for name, cost in wanted.items() if current[name] != str(cost)}, foreign
    )


def _cost(pod: PodLoad) -> int:
    """Return the nearest bucket, or the current one while the utilisation is close to it."""
    neighbours = min(_NEIGHBOUR * max(0, pod.others_gpus), BUCKET - _NEIGHBOUR)
    place = neighbours + (_SINGLE if pod.node_gpus <= 1 else 0)
    if pod.unhealthy:
        return place - BUCKET
    if pod.utilization is None:
        return BUSIEST + place
    percent = min(max(pod.utilization, 0.0), 100.0)
    present = _bucket(pod.cost)
    if present is not None and abs(percent * BUCKET / 10 - present) <= _STICKY * BUCKET / 10:
        return present + place
    return round(percent / 10) * BUCKET + place


def _bucket(cost: str | None) -> int | None:
    if cost is None or not cost.isdecimal():
        return None
    return int(cost) // BUCKET * BUCKET
