"""Small worlds for tests of the plan: one GPU pool, one shape, one workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.capacity import Capacity, Headroom, Pool, PoolNode
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order, Plan
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.taints import Taint

NOW = 1_700_000_000.0
GIB = 1000 << 30
TAINT = Taint("sku", "gpu", "NoSchedule")
NODE: Mapping[str, int] = {
    "cpu": 4000,
    "memory": 16 * GIB,
    "nvidia.com/gpu": 1000,
    "pods": 110_000,
}
"""Allocatable of a 1-GPU node."""
LIMITS = Limits(share=0, hold_seconds=600, decay_seconds=300)
"""The hold of most tests."""


def past(loads: Sequence[float], apart: float = 60) -> DemandHistory:
    """Observations that end so many seconds before :data:`NOW` as they are apart."""
    history = EMPTY
    for number, load in enumerate(loads):
        history = learn(history, DemandPoint(NOW - (len(loads) - number) * apart, load))
    return history


def pod(gpus: int = 1, cpu: str = "3", pool: str = "gpu", **spec: Any) -> Shape:
    """The shape of a pod with GPUs for a pool."""
    resources = {"requests": {"cpu": cpu, "memory": "12Gi"}, "limits": {"nvidia.com/gpu": gpus}}
    return shape_of(
        {
            "containers": [{"name": "c", "resources": resources}],
            "nodeSelector": {"pool": pool},
            "tolerations": [{"key": "sku", "operator": "Exists"}],
            **spec,
        }
    )


def node(name: str = "n", used: Shape | None = None, *, gpus: int = 1, **fields: Any) -> PoolNode:
    """A node of pool ``gpu``; full if pods of a shape use it."""
    whole = {key: amount * (gpus if key != "pods" else 1) for key, amount in NODE.items()}
    made = PoolNode(
        name=name,
        pool="gpu",
        labels={"pool": "gpu"},
        taints=(TAINT,),
        allocatable=whole,
        used=dict(used.requests) if used else {},
        ready=True,
        created=NOW - 3600,
    )
    return replace(made, **fields)


GPU = pod()


def demand(
    wanted: int | None,
    bound: int = 0,
    pending: int = 0,
    *,
    name: str = "inference",
    namespace: str = "ml",
    shape: Shape = GPU,
    most: int | None = 100,
    history: DemandHistory = EMPTY,
    known: float | None = NOW,
    floor: int = 0,
    parked: bool = False,
    pools: Mapping[str, int] | None = None,
    asked: int = 0,
    coming: int = 0,
) -> Demand:
    """A workload that wants ``wanted`` pods."""
    return Demand(
        workload=WorkloadRef(namespace, "Deployment", name),
        shape=shape,
        bound=bound,
        pending=pending,
        wanted=wanted,
        max_replicas=most,
        history=history,
        known_at=known,
        floor=floor,
        parked=parked,
        pools=pools or {},
        asked=asked,
        coming=coming,
    )


def headroom(
    replicas: int,
    pods: int = 0,
    needed: float = NOW,
    *,
    shape: Shape = GPU,
    namespace: str = "ml",
) -> Headroom:
    """Existing headroom."""
    return Headroom(namespace, shape, replicas, pods, needed)


def pool(name: str = "gpu", **fields: Any) -> Pool:
    """A pool of 1-GPU nodes without limits."""
    example = node("example", labels={"pool": name})
    return replace(Pool(name, example=replace(example, pool=name)), **fields)


def capacity(
    *held: Headroom,
    nodes: tuple[PoolNode, ...] = (),
    pools: tuple[Pool, ...] | None = None,
    spent: Mapping[str, float] | None = None,
) -> Capacity:
    """The cluster, with one pool ``gpu`` by default."""
    all_pools = (pool(),) if pools is None else pools
    return Capacity(nodes, {gpu_pool.name: gpu_pool for gpu_pool in all_pools}, held, spent or {})


def order(
    *demands: Demand, at: Capacity | None = None, limits: Limits | None = None, now: float = NOW
) -> Order:
    """The only order of the plan."""
    (only,) = plan(demands, at or capacity(), limits or LIMITS, now).orders
    return only


def codes(made: Order) -> list[str]:
    """The codes of its reasons."""
    return [reason.code for reason in made.reasons]


def applied(made: Plan, before: Capacity) -> Capacity:
    """The cluster after every order has been written."""
    held = tuple(
        Headroom(row.namespace, row.shape, row.replicas, row.reckoned, row.needed_at)
        for row in made.orders
        if row.replicas or row.was
    )
    return replace(before, headroom=held)
