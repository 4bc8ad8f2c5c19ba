"""What decides the headroom of a node pool: the plan of ``nodepool``, and what is usual instead."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.capacity import Capacity, Headroom, Pool, PoolNode
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandPoint
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from adapter.tools.replay.nodeworld import NodeMoment

_POOL: Final = "gpu"
_WORKLOAD: Final = WorkloadRef("inference", "Deployment", "service")
_PODS: Final = 110
"""Pods of a node."""


class NoHeadroom:
    """No headroom: the autoscaler starts when a pod is pending."""

    def headroom(self, moment: NodeMoment) -> int:
        """See the port."""
        return 0


class FixedHeadroom:
    """A fixed number of pods, as in a CapacityBuffer that somebody wrote."""

    def __init__(self, pods: int) -> None:
        self._pods = pods

    def headroom(self, moment: NodeMoment) -> int:
        """See the port."""
        return self._pods


class ShareOfPods:
    """A share of the service's pods, rounded up, as in a buffer with a percentage."""

    def __init__(self, share: float) -> None:
        self._share = share

    def headroom(self, moment: NodeMoment) -> int:
        """See the port."""
        return math.ceil(self._share * (moment.bound + moment.pending))


class PlannedHeadroom:
    """The plan of ``nodepool``, fed with what it would see, and what it learned until then.

    Args:
        limits: of the plan.
        most: ``maxReplicas``.
        begin: epoch seconds.
        tolerance: of the HPA, upward.
        gpus: of a pod.
        slots: pods that fit on a node.
    """

    def __init__(
        self,
        limits: Limits,
        most: int,
        begin: float,
        tolerance: float,
        *,
        gpus: int = 1,
        slots: int = 1,
    ) -> None:
        self._limits = limits
        self._most = most
        self._tolerance = tolerance
        self._slots = slots
        self._history = EMPTY
        self._known_at: float | None = None
        self._held: Headroom | None = None
        self._shape = Shape((("nvidia.com/gpu", 1000 * gpus), ("pods", 1000)))
        room = {"nvidia.com/gpu": 1000 * gpus * slots, "pods": 1000 * _PODS}
        self._free = PoolNode("new", _POOL, {}, (), room, {}, True, begin)
        self._boots = replace(self._free, name="booting", ready=False)
        self._pools = {_POOL: Pool(_POOL, example=self._free)}

    def headroom(self, moment: NodeMoment) -> int:
        """See the port."""
        if moment.load is not None:
            self._history = learn(self._history, DemandPoint(moment.now, moment.load))
            self._known_at = moment.now
        demand = Demand(
            _WORKLOAD,
            self._shape,
            moment.bound,
            moment.pending,
            moment.wanted,
            self._most,
            load=moment.load,
            tolerance=self._tolerance,
            history=self._history,
            known_at=self._known_at,
        )
        headroom = (self._held,) if self._held is not None else ()
        capacity = Capacity(self._nodes(moment), self._pools, headroom)
        (order,) = plan((demand,), capacity, self._limits, moment.now).orders
        self._held = Headroom(
            _WORKLOAD.namespace, self._shape, order.replicas, order.pods, order.needed_at
        )
        return order.replicas

    def _nodes(self, moment: NodeMoment) -> tuple[PoolNode, ...]:
        whole, rest = divmod(moment.bound, self._slots)
        used = (self._node_with(self._slots),) * whole + (self._node_with(rest),) * (rest > 0)
        free = (self._free,) * (moment.nodes - len(used))
        return used + free + (self._boots,) * moment.booting

    def _node_with(self, pods: int) -> PoolNode:
        used = {name: milli * pods for name, milli in self._shape.requests}
        return replace(self._free, name=f"with {pods}", used=used)
