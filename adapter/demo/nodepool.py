"""The ``nodepool`` controller on the simulated cluster: its real plan, called directly.

Forecast, history, boot times and plan are the real ones. This module writes the simulated cluster
in the types of the plan, and keeps what the controller would keep in the cluster (the headroom
object, the history). An order reaches the simulated node autoscaler as :attr:`Fleet.headroom`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.fleet import Stage
from adapter.demo.hardware import DemoNode, DemoPool
from adapter.demo.manifests import pod_spec
from adapter.demo.world import World
from adapter.nodepool.learn.boots import Boot, BootTimes, watch_claims
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.pace import NEW, replicas_after_next_sync
from adapter.nodepool.model.capacity import Capacity, Headroom, Pool, PoolNode
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.plan.wantedpods import Want, tolerances, wanted_pods
from adapter.nodepool.seen.autoscalers import parse_readable
from adapter.nodepool.seen.podspec import shape_of

_PODS = 110_000
"""Pods per node, in thousandths: the kubelet's default of 110."""


@dataclass(frozen=True, slots=True)
class Past:
    """What was learned before."""

    histories: Mapping[str, DemandHistory] = field(default_factory=dict)
    """By service."""
    boots: BootTimes = field(default_factory=BootTimes)


class DemoNodepool:
    """Runs the controller's rounds for the services whose pools can grow."""

    def __init__(self, limits: Limits, begin: float, past: Past) -> None:
        """``begin`` is the simulation's 0 in epoch seconds, so that it has a time of day."""
        self.past = past
        self.peaks: dict[str, int] = {}
        """Most pods that each service's metric has requested, before any limit."""
        self.orders: Sequence[Order] = ()
        """The orders of the latest plan."""
        self._limits = limits
        self._begin = begin
        self._held: tuple[Headroom, ...] = ()
        self._known_at: dict[str, float] = {}

    def round(self, world: World, autoscalers: Sequence[DemoAutoscaler]) -> None:
        """Observe, learn, plan, order."""
        now = self._begin + world.now
        mine = [scaler for scaler in autoscalers if grows(world, scaler.service)]
        self._learn(world, mine, now)
        demand = [self._demand(world, scaler, now) for scaler in mine]
        nodes = tuple(self._node(node, world.now) for node in world.fleet.nodes)
        pools = {pool.name: self._pool(pool, nodes) for pool in world.fleet.pools}
        self.orders = plan(demand, Capacity(nodes, pools, self._held), self._limits, now).orders
        self._held = tuple(order.headroom for order in self.orders)
        world.fleet.headroom = {
            pool.resource: sum(order.replicas for order in self.orders if order.pool == pool.name)
            for pool in world.fleet.pools
        }
        for order in self.orders:
            if order.replicas != order.was:
                names = ", ".join(workload.name for workload in order.workloads)
                change = f"{order.was} -> {order.replicas}"
                world.report("nodepool", f"headroom of {names} {change}: {order.why}")

    def _learn(self, world: World, autoscalers: Sequence[DemoAutoscaler], now: float) -> None:
        histories = dict(self.past.histories)
        for scaler in autoscalers:
            name, want = scaler.service, _want(scaler)
            if want.pods is None or want.load is None:
                continue
            histories[name] = learn(histories.get(name, EMPTY), DemandPoint(now, want.load))
            self.peaks[name] = max(want.pods, self.peaks.get(name, 0))
            self._known_at[name] = now
        booted = [
            Boot(
                node.pool.name,
                node.name,
                self._begin + node.ordered_at,
                self._begin + node.ready_at,
            )
            for node in world.fleet.nodes
            if node.ready(world.now) and node.ready_at > node.ordered_at
        ]
        names = [node.name for node in world.fleet.nodes]
        self.past = Past(histories, watch_claims(self.past.boots, booted, names))

    def _demand(self, world: World, scaler: DemoAutoscaler, now: float) -> Demand:
        """Return the current demand of one service."""
        name = scaler.service
        pods = world.fleet.of(name)
        on = Counter(pod.node.pool.name for pod in pods if pod.node is not None)
        want = _want(scaler)
        # The replicas that the HPA has set; the pods may not exist yet.
        replicas = len(pods)
        return Demand(
            workload=WorkloadRef(scaler.spec.namespace, "Deployment", name),
            shape=shape_of(pod_spec(world.workloads[name].resource)),
            bound=on.total(),
            pending=sum(pod.stage is Stage.PENDING for pod in pods),
            wanted=want.pods,
            load=want.load,
            tolerance=tolerances(scaler.spec).up,
            max_replicas=scaler.spec.max_replicas,
            history=self.past.histories.get(name, EMPTY),
            known_at=self._known_at.get(name),
            pools=on,
            asked=replicas,
            coming=replicas_after_next_sync(scaler.spec, NEW, replicas, want.pods, now),
        )

    def _pool(self, pool: DemoPool, nodes: Iterable[PoolNode]) -> Pool:
        ready = [node for node in nodes if node.pool == pool.name and node.ready]
        newest = max(ready, key=lambda node: node.created, default=None)
        return Pool(
            name=pool.name,
            high=pool.most,
            boot_seconds=self.past.boots.p90(pool.name),
            example=None if newest is None else replace(newest, used={}),
        )

    def _node(self, node: DemoNode, now: float) -> PoolNode:
        held = sum(device.pod is not None for device in node.devices)
        resource = node.pool.resource
        return PoolNode(
            name=node.name,
            pool=node.pool.name,
            labels={"agentpool": node.pool.name},
            taints=(),
            allocatable={resource: 1000 * len(node.devices), "pods": _PODS},
            used={resource: 1000 * held, "pods": 1000 * held} if held else {},
            ready=node.ready(now),
            created=self._begin + node.ordered_at,
        )


def grows(world: World, service: str) -> bool:
    """Return whether the service's pool can grow; without that, headroom has no effect."""
    resource = world.workloads[service].resource
    return any(pool.most > pool.first for pool in world.fleet.pools if pool.resource == resource)


def _want(scaler: DemoAutoscaler) -> Want:
    """Return what the HPA's metric requested at its latest sync."""
    if scaler.latest is None:
        return Want(None, None)
    return wanted_pods(parse_readable(scaler.manifest), scaler.latest.seen, {})
