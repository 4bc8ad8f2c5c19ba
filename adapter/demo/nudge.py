"""The ``nodepool`` controller on the simulated cluster: its real plan, called directly.

Forecast, history, boot times and plan are the real ones. This module keeps what the controller
would keep in the cluster (the headroom object, the history), and an order reaches the simulated
node autoscaler as :attr:`Fleet.headroom`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adapter.demo import sight
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.world import World
from adapter.nodepool.learn.boots import BootTimes, watch_claims
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.capacity import Capacity, Headroom
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order
from adapter.nodepool.plan.plan import plan


@dataclass(frozen=True, slots=True)
class Past:
    """What was learned before."""

    histories: Mapping[str, DemandHistory] = field(default_factory=dict)
    """By service."""
    boots: BootTimes = field(default_factory=BootTimes)


class Nudge:
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
        mine = [scaler for scaler in autoscalers if sight.grows(world, scaler.service)]
        self._learn(world, mine, now)
        demand = [
            sight.demand(
                world,
                scaler,
                self.past.histories.get(scaler.service, EMPTY),
                self._known_at.get(scaler.service),
                now,
            )
            for scaler in mine
        ]
        nodes = sight.nodes(world, self._begin)
        pools = {each.name: sight.pool(each, nodes, self.past.boots) for each in world.fleet.pools}
        capacity = Capacity(nodes, pools, self._held)
        self.orders = plan(demand, capacity, self._limits, now).orders
        self._held = tuple(
            Headroom(each.namespace, each.shape, each.replicas, each.reckoned, each.needed_at)
            for each in self.orders
        )
        world.fleet.headroom = {
            pool.resource: sum(each.replicas for each in self.orders if each.pool == pool.name)
            for pool in world.fleet.pools
        }
        self._tell(world)

    def _learn(self, world: World, autoscalers: Sequence[DemoAutoscaler], now: float) -> None:
        histories = dict(self.past.histories)
        for scaler in autoscalers:
            name, pods = scaler.service, sight.asked(scaler)
            if pods is None:
                continue
            histories[name] = learn(histories.get(name, EMPTY), DemandPoint(now, pods))
            self.peaks[name] = max(pods, self.peaks.get(name, 0))
            self._known_at[name] = now
        boots = watch_claims(
            self.past.boots,
            sight.booted(world, self._begin),
            [node.name for node in world.fleet.nodes],
        )
        self.past = Past(histories, boots)

    def _tell(self, world: World) -> None:
        for order in self.orders:
            if order.replicas == order.was:
                continue
            names = ", ".join(each.name for each in order.workloads)
            why = "; ".join(reason.text for reason in order.reasons)
            world.report("nodepool", f"headroom of {names} {order.was} -> {order.replicas}: {why}")
