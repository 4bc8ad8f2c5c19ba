"""What decides the headroom in the simulator: the real plan, and what it is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.capacity import Capacity, Headroom, Pool, PoolNode
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.history import EMPTY, DemandPoint
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from load.nodepoolhpa import TOLERANCES
from load.nodepoolworld import TICK, Moment

_POOL: Final = "gpu"
_GPU: Final = {"nvidia.com/gpu": 1000, "pods": 110000}
_SHAPE: Final = Shape((("nvidia.com/gpu", 1000), ("pods", 1000)))
_FULL: Final = {"nvidia.com/gpu": 1000, "pods": 1000}
_WORKLOAD: Final = WorkloadRef("inference", "Deployment", "service")


class Reactive:
    """No headroom: the autoscaler starts when a pod is pending."""

    def headroom(self, seen: Moment) -> int:
        return 0


class Static:
    """A headroom of so many GPUs, always: a CapacityBuffer that somebody wrote."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus

    def headroom(self, seen: Moment) -> int:
        return self._gpus


class Share:
    """A headroom of a share of the service's pods, rounded up: a buffer with a percentage."""

    def __init__(self, share: float) -> None:
        self._share = share

    def headroom(self, seen: Moment) -> int:
        return math.ceil(self._share * (seen.bound + seen.pending))


class Oracle:
    """Knows what the HPA will ask for within a boot time: what no forecast can beat."""

    def __init__(self, replicas: Sequence[int], begin: float, lead: float) -> None:
        """Take the HPA's replicas by tick, as they are where nothing is ever pending."""
        self._replicas = replicas
        self._begin = begin
        self._ticks = int(lead // TICK) + 5  # until the next decision's nodes are up

    def headroom(self, seen: Moment) -> int:
        tick = int(seen.now - self._begin) // TICK
        ahead = max(self._replicas[tick : tick + self._ticks])
        return max(0, ahead - seen.bound - seen.pending)


class Planned:
    """The controller's own plan, fed with what it would see, and what it learned until then."""

    def __init__(self, limits: Limits, ceiling: int, begin: float) -> None:
        self._limits = limits
        self._ceiling = ceiling
        self._history = EMPTY
        self._held: Headroom | None = None
        free = PoolNode("new", _POOL, {}, (), _GPU, {}, True, begin)
        full = replace(free, name="full", used=_FULL)
        boots = replace(free, name="booting", ready=False)
        self._full, self._free, self._boots = full, free, boots
        self._pools = {_POOL: Pool(_POOL, example=free)}

    def headroom(self, seen: Moment) -> int:
        self._history = learn(self._history, DemandPoint(seen.now, seen.load))
        demand = Demand(
            _WORKLOAD,
            _SHAPE,
            seen.bound,
            seen.pending,
            seen.wanted,
            self._ceiling,
            load=seen.load,
            tolerance=TOLERANCES.up,
            history=self._history,
            known_at=seen.now,
        )
        nodes = (
            (self._full,) * seen.bound
            + (self._free,) * (seen.nodes - seen.bound)
            + (self._boots,) * seen.booting
        )
        held = (self._held,) if self._held is not None else ()
        capacity = Capacity(nodes, self._pools, held)
        (order,) = plan((demand,), capacity, self._limits, seen.now).orders
        self._held = Headroom(
            _WORKLOAD.namespace, _SHAPE, order.replicas, order.pods, order.needed_at
        )
        return order.replicas
