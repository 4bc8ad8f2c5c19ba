"""Demand of Jobs with GPU pods: all Jobs of one shape in a namespace are one queue. Pure.

The Job controller creates a Job's pods within milliseconds, and pending pods trigger the node
autoscaler. Therefore a queue wants the pods that it has, and only a forecast adds headroom. Pods
that a Job's spec calls for but that do not exist are not demand and do not keep headroom: mostly
they have just ended, and the Job's status does not show it yet.

Queueing systems such as Kueue hold Jobs back by suspending them. A suspended Job has no demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from adapter.nodepool.model.demand import JOB_QUEUE, Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandHistory
from adapter.nodepool.model.shape import Shape, key


class JobPods(NamedTuple):
    """One Job and its pods."""

    namespace: str
    shape: Shape
    left: int
    """Pods that it should have now, from :func:`pods_left`."""
    bound: int
    pending: int
    pools: Mapping[str, int] = {}
    """Pool -> its bound pods there."""
    name: str = ""
    """Empty for a queue that has no Job now."""


def queues(
    jobs: Iterable[JobPods], histories: Mapping[WorkloadRef, DemandHistory], now: float
) -> tuple[Demand, ...]:
    """Return the demand of all Jobs, one entry per namespace and shape.

    Args:
        histories: history of each queue.
        now: epoch seconds. The demand of Jobs is always known.
    """
    rows: dict[WorkloadRef, list[JobPods]] = {}
    for job in jobs:
        rows.setdefault(WorkloadRef(job.namespace, JOB_QUEUE, key(job.shape)), []).append(job)
    return tuple(
        Demand(
            workload=queue,
            shape=theirs[0].shape,
            bound=sum(job.bound for job in theirs),
            pending=sum(job.pending for job in theirs),
            wanted=sum(job.bound + job.pending for job in theirs),
            max_replicas=None,
            history=histories.get(queue, EMPTY),
            known_at=now,
            pools=sum((Counter(job.pools) for job in theirs), Counter()),
            about=_about(queue, theirs),
        )
        for queue, theirs in sorted(rows.items())
    )


def _about(queue: WorkloadRef, jobs: Iterable[JobPods]) -> str:
    """Return a description of the queue that names its Jobs."""
    names = sorted(job.name for job in jobs if job.name)
    if not names:
        return f"Job queue {queue.name} (no Jobs now)"
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Job queue {queue.name} (Job {names[0]}{others})"
