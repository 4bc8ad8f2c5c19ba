"""Which pod a ReplicaSet should let go first: ``controller.kubernetes.io/pod-deletion-cost``.

The ReplicaSet controller removes pods without a node, pending and not ready ones first; among
the others the one of the least cost (``ActivePodsWithRanks`` of
``pkg/controller/controller_utils.go``). A pod without the annotation has cost 0, so that once
one pod of a workload has a cost, all must have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"
BUCKET: Final = 100
"""Cost of every 10 percent of utilisation: 0, 100, … 1000."""
BUSIEST: Final = 10 * BUCKET
_SINGLE: Final = 5
_NEIGHBOUR: Final = 10
_STICKY: Final = 7.5
"""Percent that a pod may be off the middle of its bucket before its cost is written again."""


class PodLoad(NamedTuple):
    """One ready pod of a workload."""

    name: str
    utilization: float | None
    """Percent, smoothed; None where nothing is known."""
    node_gpus: int
    """GPUs that the pod's node has."""
    others_gpus: int
    """GPUs of that node that other pods hold."""
    cost: str | None = None
    """The annotation as it is; None where there is none."""
    ours: bool = False
    """The annotation was written by this controller (``managedFields``)."""


class CostChange(NamedTuple):
    """What is to be written; pods that are right as they are have no entry."""

    costs: Mapping[str, int | None]
    """Pod to its cost; None takes the annotation off."""
    foreign: tuple[str, ...]
    """Pods whose cost another writer sets: the whole workload is then left to that writer."""


def near(
    desired: int, current: int, load: float | None, target: float, margin: float, *, was: bool
) -> bool:
    """Whether a scale-in is near enough for costs to matter.

    Args:
        desired: of the HPA's status.
        current: replicas of its target.
        load: the workload's value in the metric's unit; None where it is unknown.
        target: of the HPA, in the same unit.
        margin: share of the target that the load must be below it.
        was: it was near a moment ago: half the margin then holds it.
    """
    if desired < current:
        return True
    if load is None or current <= 1:
        return False
    return load < target * (1 - (margin / 2 if was else margin))


def costs(pods: Sequence[PodLoad], *, near: bool) -> CostChange:
    """The costs of a workload's pods, less those that are right already.

    The utilisation decides; among pods of one bucket those go first whose node has the fewest
    other GPUs in use, and of these the ones on multi-GPU nodes. A pod whose utilisation is
    unknown gets the highest bucket: a missing reading must not remove it.
    """
    foreign = tuple(sorted(pod.name for pod in pods if pod.cost is not None and not pod.ours))
    if foreign or not near:
        return CostChange(
            {pod.name: None for pod in pods if pod.cost is not None and pod.ours}, foreign
        )
    wanted = {pod.name: _cost(pod) for pod in pods}
    known = {pod.name: pod.cost for pod in pods}
    return CostChange(
        {name: cost for name, cost in wanted.items() if known[name] != str(cost)}, foreign
    )


def _cost(pod: PodLoad) -> int:
    """The nearest bucket, or the present one while the pod is not far from it."""
    neighbours = min(_NEIGHBOUR * max(0, pod.others_gpus), BUCKET - _NEIGHBOUR)
    place = neighbours + (_SINGLE if pod.node_gpus <= 1 else 0)
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
