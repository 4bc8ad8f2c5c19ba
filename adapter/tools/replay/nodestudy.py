"""What a service's pods would have waited for nodes, and what the nodes would have cost.

The nodes are simulated (:mod:`adapter.tools.replay.nodeworld`), with the HPA's own settings and the
demand of the recording. What the recording shows of pods without a node stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from adapter.hpa import HpaSpec, HpaState, Observation, decide
from adapter.hpa.podreplicas import InvalidMetricError, MetricRules, Tolerances
from adapter.hpa.replicas import propose_by
from adapter.nodepool.plan.limits import Limits
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.headroompolicies import (
    FixedHeadroom,
    NoHeadroom,
    PlannedHeadroom,
    ShareOfPods,
)
from adapter.tools.replay.nodeworld import HeadroomPolicy, NodePhysics, NodeWorld
from adapter.tools.replay.options import FORECAST, PODS, SHARE, TriedHeadroom
from adapter.tools.replay.outcome import GAP
from adapter.tools.replay.simulation import (
    SimulatedWorld,
    check_replicas,
    pod_states,
    shown_value,
    values_of,
)
from adapter.tools.replay.syncs import RecordedSync

_MINUTE: Final = 60
_NO_CAP: Final = 1_000_000
"""GPUs. The limits of ``nodepool`` are for budgets, and no other policy has any."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The headroom to try, and the nodes."""

    tried: Sequence[TriedHeadroom] = ()
    physics: NodePhysics = field(default_factory=NodePhysics)


@dataclass(frozen=True, slots=True)
class PodWaits:
    """How long pods were without a node."""

    seconds: float = 0.0
    """Of all pods together."""
    longest: float = 0.0
    pods: int = 0
    """That waited."""


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What one headroom comes to."""

    tried: TriedHeadroom
    waits: PodWaits
    gpu_seconds: float
    """From the order of each node to its removal."""
    lowest: int
    """Nodes, booting ones included."""
    highest: int


@dataclass(frozen=True, slots=True)
class NodeStudy:
    """The node pool of a replay."""

    runs: Sequence[NodeRun]
    recorded: PodWaits | None
    """None if the recording shows no node of a pod."""
    physics: NodePhysics
    gpus: int
    """Of one pod."""
    unknown: float = 0.0
    """Seconds in which the demand is unknown."""


def study_nodes(
    spec: HpaSpec,
    work: Sequence[RecordedDemand],
    syncs: Sequence[RecordedSync],
    options: NodeOptions,
    world: SimulatedWorld,
    gpus: float,
) -> NodeStudy:
    """Try each headroom.

    Args:
        spec: with one metric of type Pods.
        work: the demand at each sync.
        syncs: of the recording.
        options: what to try.
        world: what the HPA's settings do not change.
        gpus: of one pod.

    Raises:
        ClientError: the pods request no GPU, or the HPA comes to too many replicas.
    """
    if not gpus:
        raise ClientError(
            "--headroom needs pods that request GPUs as a resource, such as nvidia.com/gpu, and no "
            "pod of the recording does: leave it out"
        )
    whole = round(gpus)
    runs = [
        _run(spec, work, syncs[0].seen.replicas, tried, options.physics, world, whole)
        for tried in options.tried
    ]
    period = world.controller.sync_period
    unknown = sum(span or 0.0 for demand, span in _spans(work, period) if demand.total is None)
    return NodeStudy(runs, _recorded_waits(syncs, period), options.physics, whole, unknown)


class _ReplayedHpa:
    """Implements :class:`adapter.tools.replay.nodeworld.ServiceHpa`."""

    def __init__(self, spec: HpaSpec, world: SimulatedWorld) -> None:
        self._spec = spec
        self._world = world
        self._rules = MetricRules(
            Tolerances.of(spec.behavior, world.controller.tolerance), world.controller, 0.0
        )
        self._state = HpaState()

    @property
    def tolerance(self) -> float:
        """Upward."""
        return self._rules.tolerances.up

    def forget(self) -> None:
        """Begin again after a gap."""
        self._state = HpaState()

    def sync(self, bound: int, pending: int, load: float | None, now: float) -> int:
        """See the port."""
        observation = self._observe_pods(bound, pending, load)
        decision, self._state = decide(
            self._spec, self._state, observation, now, self._world.controller
        )
        return check_replicas(decision.desired, self._spec)

    def propose_replicas(
        self, bound: int, pending: int, load: float | None
    ) -> tuple[int, float] | None:
        """See the port."""
        observation = self._observe_pods(bound, pending, load)
        metric, values = self._spec.metrics[0], observation.values[0]
        try:
            proposed = propose_by(metric, values, observation, self._spec.namespace, self._rules)
        except InvalidMetricError:
            return None
        return max(proposed.replicas, self._spec.min_replicas), proposed.exact

    def _observe_pods(self, bound: int, pending: int, load: float | None) -> Observation:
        per_pod = round(load) // bound if load is not None and bound else None
        shown = shown_value(per_pod, self._world)
        states = pod_states(bound, bound + pending)
        return Observation(bound + pending, states, (values_of(shown, bound),))


def _run(
    spec: HpaSpec,
    work: Sequence[RecordedDemand],
    start: int,
    tried: TriedHeadroom,
    physics: NodePhysics,
    world: SimulatedWorld,
    gpus: int,
) -> NodeRun:
    hpa = _ReplayedHpa(spec, world)
    nodes = NodeWorld(physics, hpa, start)
    policy = _policy(tried, spec, physics, hpa.tolerance, gpus, work[0].time)
    waited = bill = 0.0
    sizes: list[int] = []
    last: float | None = None
    for demand, span in _spans(work, world.controller.sync_period):
        if demand.first:
            hpa.forget()
        load = None if demand.total is None else float(demand.total)
        due = last is None or demand.time // _MINUTE > last // _MINUTE
        nodes.step(load, demand.time, policy, due=due)
        last = demand.time
        sizes.append(nodes.nodes)
        if span is None:
            nodes.settle(demand.time)
            continue
        waited += span * len(nodes.waiting)
        bill += span * nodes.nodes * physics.slots * gpus
    waits = [wait for wait in nodes.waits if wait > 0]
    return NodeRun(
        tried,
        PodWaits(waited, max(waits, default=0.0), len(waits)),
        bill,
        min(sizes),
        max(sizes),
    )


def _spans(
    work: Sequence[RecordedDemand], period: float
) -> Iterator[tuple[RecordedDemand, float | None]]:
    """Yield each sync with the seconds until the next; None before a gap, and for the last."""
    for demand, after in pairwise(work):
        span = after.time - demand.time
        yield demand, span if span <= GAP * period else None
    yield work[-1], None


def _policy(
    tried: TriedHeadroom,
    spec: HpaSpec,
    physics: NodePhysics,
    tolerance: float,
    gpus: int,
    begin: float,
) -> HeadroomPolicy:
    if tried.kind == SHARE:
        return ShareOfPods((tried.value or 0.0) / 100)
    if tried.kind == PODS:
        return FixedHeadroom(round(tried.value or 0.0))
    if tried.kind != FORECAST:
        return NoHeadroom()
    limits = Limits(
        quantile=tried.value,
        boot_seconds=physics.boot,
        max_pods=_NO_CAP,
        max_gpus_per_pool=_NO_CAP,
    )
    most = spec.max_replicas
    return PlannedHeadroom(limits, most, begin, tolerance, gpus=gpus, slots=physics.slots)


def _recorded_waits(syncs: Sequence[RecordedSync], period: float) -> PodWaits | None:
    """Return how long the pods of the recording had no node."""
    if not any(pod.node for sync in syncs for pod in sync.pods):
        return None
    waited: dict[str, float] = {}
    for sync, after in pairwise(syncs):
        span = after.time - sync.time
        if span > GAP * period:
            continue
        for pod in sync.pods:
            if not pod.node and not pod.deleting and not pod.finished:
                waited[pod.uid] = waited.get(pod.uid, 0.0) + span
    return PodWaits(sum(waited.values()), max(waited.values(), default=0.0), len(waited))
