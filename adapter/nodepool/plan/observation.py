"""Convert objects and values to demand and capacity. Pure.

Objects that cannot be planned for are left out and counted by reason. A missing value makes
``wanted`` None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.hpa import Observation, Values
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.learn.pace import NEW, ceiling, follow, replicas_after_next_sync
from adapter.nodepool.model.capacity import Capacity, Headroom
from adapter.nodepool.model.demand import JOB_QUEUE, Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandHistory
from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.plan.pools import pools, with_pods
from adapter.nodepool.plan.wantedpods import tolerances, wanted_pods
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.pods import PodInfo
from adapter.nodepool.seen.targets import (
    PodsOf,
    ScaleTarget,
    priorities,
    with_claims,
    with_priority,
)
from adapter.pipeline.cluster.workload import JOBS, Workload


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


class PlanInput(NamedTuple):
    """The input of a plan."""

    demand: tuple[Demand, ...]
    capacity: Capacity
    left_out: Counter[str]
    """Reason -> number of Jobs and headroom objects that are not planned for."""


def observe(
    cluster: ClusterTables,
    targets: Sequence[ScaleTarget],
    values: Mapping[WorkloadRef, tuple[Values, ...]],
    pods_of: PodsOf,
    ledger: Ledger,
    pool_labels: Sequence[str],
    now: float,
    *,
    jobs: bool = True,
    within: Collection[str] = (),
) -> PlanInput:
    """Return the current demand and capacity of the cluster.

    Args:
        targets: the workloads of HPAs.
        values: workload -> values from the metrics APIs.
        pool_labels: node labels that name a pool. They precede the clouds' own labels.
        jobs: whether to include Jobs.
        within: namespaces whose Jobs are included; empty for all.
    """
    pool_of = {node.name: node.pool(pool_labels) for node in cluster.nodes}
    demand = [
        row
        for target in targets
        for row in _workload_demand(target, values.get(target.workload), pool_of, ledger, now)
    ]
    left_out: Counter[str] = Counter()
    if jobs:
        demand += _queues(cluster, pods_of, pool_of, ledger, left_out, within, now)
    objects = (*cluster.buffers, *cluster.placeholders)
    left_out["headroom_foreign"] = sum(bool(row.problem) for row in objects)
    nodes = with_pods(cluster.nodes, cluster.pods, pool_labels, now)
    capacity = Capacity(
        nodes=nodes,
        pools=pools(
            cluster.nodes,
            nodes,
            cluster.autoscaler.groups if cluster.autoscaler else (),
            cluster.node_pools,
            ledger.boots,
            pool_labels,
            now,
        ),
        headroom=headroom(objects),
        gpu_hours_spent=ledger.gpu_hours,
    )
    return PlanInput(tuple(demand), capacity, +left_out)


def headroom(objects: Iterable[HeadroomObject]) -> tuple[Headroom, ...]:
    """Return the existing headroom. While the method changes, two objects are one headroom."""
    most: dict[tuple[str, str], HeadroomObject] = {}
    for row in objects:
        if row.shape is None:
            continue
        place = (row.serves, key(row.shape))
        if place not in most or row.replicas > most[place].replicas:
            most[place] = row
    return tuple(
        Headroom(row.serves, row.shape, row.replicas, row.pods, row.needed_at)
        for row in most.values()
        if row.shape is not None
    )


def _workload_demand(
    target: ScaleTarget,
    values: tuple[Values, ...] | None,
    pool_of: Mapping[str, str],
    ledger: Ledger,
    now: float,
) -> Iterator[Demand]:
    """Yield the demand of a workload, of one that groups pods for each shape of a group."""
    count, load, parked = None, None, False
    if values is not None:
        observation = Observation(
            replicas=target.replicas,
            pods=target.states(),
            values=values,
            status_replicas=target.status_replicas,
        )
        scaler = target.autoscaler
        want = wanted_pods(target.readable, observation, scaler.status, from_zero=scaler.from_zero)
        count, load, parked = want
    spec = target.readable.spec
    pace = follow(ledger.paces.get(target.workload, NEW), target.replicas, count, now)
    whole = Demand(
        workload=target.workload,
        shape=target.shape,
        bound=0,
        pending=0,
        wanted=count,
        load=load,
        tolerance=tolerances(spec).up,
        max_replicas=ceiling(spec, target.replicas),
        floor=target.autoscaler.floor or 0,
        parked=parked,
        asked=target.replicas,
        coming=replicas_after_next_sync(spec, pace, target.replicas, count, now),
    )
    for place, (shape, number) in enumerate(target.group or ((target.shape, 1),)):
        part = _multiply_demand(whole, shape, number)
        pods = target.pods
        if target.group:
            pods = tuple(pod for pod in pods if key(pod.shape) == key(shape))
        if place:
            # Each shape has a history of its own, in its pods.
            name = f"{target.workload.name}/{key(shape)}"
            part = replace(
                part,
                workload=target.workload._replace(name=name),
                about=f"{whole.name} ({number} more pods of a group)",
            )
        counts = _count_pods(pods, pool_of)
        yield replace(
            part,
            bound=counts.bound,
            pending=counts.pending,
            pools=counts.pools,
            history=ledger.histories.get(part.workload, EMPTY),
            known_at=ledger.known_at.get(part.workload) if count is None else now,
        )


def _multiply_demand(whole: Demand, shape: Shape, number: int) -> Demand:
    """Return a demand in replicas as one in pods, ``number`` of a shape in each replica."""

    def pods(replicas: int | None) -> int | None:
        return None if replicas is None else replicas * number

    return replace(
        whole,
        shape=shape,
        wanted=pods(whole.wanted),
        load=None if whole.load is None else whole.load * number,
        max_replicas=pods(whole.max_replicas),
        floor=whole.floor * number,
        asked=whole.asked * number,
        coming=whole.coming * number,
        unit=number,
    )


def _queues(
    cluster: ClusterTables,
    pods_of: PodsOf,
    pool_of: Mapping[str, str],
    ledger: Ledger,
    left_out: Counter[str],
    within: Collection[str],
    now: float,
) -> Iterable[Demand]:
    """Return the queues of Jobs, with empty queues of earlier rounds, which may fill again."""
    classes = priorities(cluster)
    rows = [JobPods(space, shape, 0, 0, 0) for (space, _), shape in ledger.queues.items()]
    for job in cluster.jobs:
        if gpus(with_claims(job.shape, job.namespace, cluster)) == 0 or (
            within and job.namespace not in within
        ):
            continue
        left_out["job_suspended"] += job.suspended
        pods = pods_of(job.namespace, Workload(JOBS, job.name))
        shape = pods[0].shape if pods else with_priority(job.shape, job.priority_class, classes)
        shape = with_claims(shape, job.namespace, cluster)
        counts = _count_pods(pods, pool_of)
        if not job.left and not counts.bound + counts.pending:
            # It has ended or is suspended: only active Jobs define a queue.
            continue
        rows.append(JobPods(job.namespace, shape, job.left, *counts, name=job.name))
    return queues(rows, ledger.histories, now)


class _PodCounts(NamedTuple):
    bound: int
    pending: int
    pools: Mapping[str, int]


def _count_pods(pods: Sequence[PodInfo], pool_of: Mapping[str, str]) -> _PodCounts:
    living = [pod for pod in pods if not pod.deleting]
    bound = [pod.node for pod in living if pod.node]
    on = Counter(pool_of[node] for node in bound if node in pool_of)
    return _PodCounts(len(bound), len(living) - len(bound), on)
