"""The simulated cluster in the types of the ``nodepool`` controller's plan. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.fleet import Stage
from adapter.demo.hardware import DemoNode, DemoPool
from adapter.demo.manifests import pod_spec
from adapter.demo.world import World
from adapter.nodepool.learn.boots import Boot, BootTimes
from adapter.nodepool.learn.pace import NEW, after_next_sync
from adapter.nodepool.model import capacity
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import DemandHistory
from adapter.nodepool.plan.want import wanted
from adapter.nodepool.seen.autoscalers import readable
from adapter.nodepool.seen.podspec import shape_of

_PODS = 110_000
"""Pods per node, in thousandths: the kubelet's default of 110."""


def grows(world: World, service: str) -> bool:
    """Return whether the service's pool can grow; without that, headroom has no effect."""
    resource = world.workloads[service].resource
    return any(pool.most > pool.first for pool in world.fleet.pools if pool.resource == resource)


def workload(scaler: DemoAutoscaler) -> WorkloadRef:
    """Return the workload that the HPA scales."""
    return WorkloadRef(scaler.spec.namespace, "Deployment", scaler.service)


def asked(scaler: DemoAutoscaler) -> int | None:
    """Return the pods that the HPA's metric requested at its latest sync; None if unknown."""
    if scaler.latest is None:
        return None
    return wanted(readable(scaler.manifest), scaler.latest.seen, {}).pods


def demand(
    world: World, scaler: DemoAutoscaler, history: DemandHistory, known_at: float | None, now: float
) -> Demand:
    """Return the current demand of one service.

    Args:
        history: the history of the service.
        known_at: epoch seconds when its demand was last known.
        now: epoch seconds.
    """
    pods = world.fleet.of(scaler.service)
    on = Counter(pod.node.pool.name for pod in pods if pod.node is not None)
    pods_wanted = asked(scaler)
    # The replicas that the HPA has set; the pods may not exist yet.
    replicas = len(pods)
    return Demand(
        workload=workload(scaler),
        shape=shape_of(pod_spec(world.workloads[scaler.service].resource)),
        bound=on.total(),
        pending=sum(pod.stage is Stage.PENDING for pod in pods),
        wanted=pods_wanted,
        max_replicas=scaler.spec.max_replicas,
        history=history,
        known_at=known_at if pods_wanted is None else now,
        pools=on,
        asked=replicas,
        coming=after_next_sync(scaler.spec, NEW, replicas, pods_wanted, now),
    )


def nodes(world: World, begin: float) -> tuple[capacity.PoolNode, ...]:
    """All nodes, booting ones included. ``begin``: epoch seconds of the simulation's 0."""
    return tuple(_node(node, world, begin) for node in world.fleet.nodes)


def pool(pool: DemoPool, every: Iterable[capacity.PoolNode], boots: BootTimes) -> capacity.Pool:
    """One pool, with what was learned of its boots."""
    ready = [node for node in every if node.pool == pool.name and node.ready]
    newest = max(ready, key=lambda node: node.created, default=None)
    return capacity.Pool(
        name=pool.name,
        high=pool.most,
        boot_seconds=boots.p90(pool.name),
        example=None if newest is None else _empty(newest),
    )


def booted(world: World, begin: float) -> Iterable[Boot]:
    """Yield the nodes that were ordered in the simulation and have booted."""
    return [
        Boot(node.pool.name, node.name, begin + node.ordered_at, begin + node.ready_at)
        for node in world.fleet.nodes
        if node.ready(world.now) and node.ready_at > node.ordered_at
    ]


def _node(node: DemoNode, world: World, begin: float) -> capacity.PoolNode:
    held = sum(device.pod is not None for device in node.devices)
    resource = node.pool.resource
    return capacity.PoolNode(
        name=node.name,
        pool=node.pool.name,
        labels={"agentpool": node.pool.name},
        taints=(),
        allocatable={resource: 1000 * len(node.devices), "pods": _PODS},
        used={resource: 1000 * held, "pods": 1000 * held} if held else {},
        ready=node.ready(world.now),
        created=begin + node.ordered_at,
    )


def _empty(node: capacity.PoolNode) -> capacity.PoolNode:
    return capacity.PoolNode(
        node.name, node.pool, node.labels, node.taints, node.allocatable, {}, True, node.created
    )
