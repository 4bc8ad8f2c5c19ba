"""Jobs of GPU pods: all Jobs of one shape in a namespace are one queue. Pure.

The Job controller creates a Job's pods within milliseconds, and pending pods drive the node
autoscaler: a queue wants the pods that it has, and only a forecast adds headroom. Pods that are
missing by a Job's spec are no demand either, nor do they keep headroom: mostly they have just
ended, and the Job's status does not say so yet.

Queues that hold Jobs back themselves (Kueue) do it by suspending them: a suspended Job asks
for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from adapter.nodepool.demand import Demand, WorkloadRef
from adapter.nodepool.history import EMPTY, History
from adapter.nodepool.shape import Shape, key

KIND = "Job"
"""``WorkloadRef.kind`` of a queue; its name is the shape's key."""

_ENDED = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})


class Job(NamedTuple):
    """One Job and its pods."""

    namespace: str
    shape: Shape
    left: int
    """Pods that it should have now: :func:`pods_left`."""
    bound: int
    pending: int
    pools: Mapping[str, int] = {}
    """Its bound pods by the pool they are on."""
    name: str = ""
    """Empty for a queue of the past, which has no Job now."""


def pods_left(job: Mapping[str, Any]) -> int:
    """The pods that a Job should have at once, from now on, as its controller counts.

    ``parallelism`` of them, or what is left of ``completions`` if that is fewer; without
    ``completions`` (a work queue) no pod is started any more after the first success
    (``manageJob`` of ``pkg/controller/job/job_controller.go``).
    """
    spec, status = job.get("spec") or {}, job.get("status") or {}
    rows = status.get("conditions") or ()
    ended = any(row.get("type") in _ENDED and row.get("status") == "True" for row in rows)
    if ended or spec.get("suspend") or (job.get("metadata") or {}).get("deletionTimestamp"):
        return 0
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    if parallelism is None:
        parallelism = 1
        completions = 1 if completions is None else completions
    succeeded = int(status.get("succeeded") or 0)
    if completions is None:
        return int(status.get("active") or 0) if succeeded else int(parallelism)
    return max(0, min(int(parallelism), int(completions) - succeeded))


def queues(
    jobs: Iterable[Job], histories: Mapping[WorkloadRef, History], now: float
) -> tuple[Demand, ...]:
    """The demand of all Jobs, one row for each namespace and shape.

    Args:
        histories: what was learned of each queue.
        now: epoch seconds; Jobs are always known.
    """
    rows: dict[WorkloadRef, list[Job]] = {}
    for job in jobs:
        rows.setdefault(WorkloadRef(job.namespace, KIND, key(job.shape)), []).append(job)
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
            pools=_pools(theirs),
            about=_about(queue, theirs),
        )
        for queue, theirs in sorted(rows.items())
    )


def _about(queue: WorkloadRef, jobs: Iterable[Job]) -> str:
    """The queue in words that lead to its Jobs: by its key alone nobody finds them."""
    names = sorted(job.name for job in jobs if job.name)
    if not names:
        return f"Job queue {queue.name} (no Jobs now)"
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Job queue {queue.name} (Job {names[0]}{others})"


def _pools(jobs: Iterable[Job]) -> dict[str, int]:
    total: dict[str, int] = {}
    for job in jobs:
        for pool, pods in job.pools.items():
            total[pool] = total.get(pool, 0) + pods
    return total
