"""What an HPA with other settings would have done with the same demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.figures import number
from adapter.hpa import ControllerOptions, HpaSpec, HpaState, Observation, PodState, Values, decide
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.failures import BlindTime

MOST_REPLICAS: Final = 10_000
"""Of one HPA in a replay."""
_NAMES: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """What the settings of the HPA do not change."""

    boot: float
    """Seconds from the decision until a new pod has a value."""
    highest: int | None
    """The highest value that a pod can have, in thousandths; None if there is none."""
    controller: ControllerOptions = field(default_factory=ControllerOptions)


class Moment(NamedTuple):
    """The state after one sync."""

    time: float
    """Epoch seconds."""
    replicas: int
    ready: int
    """Pods that have a value."""
    load: int | None
    """Demand per ready pod in thousandths, not limited by what a pod can do; None if the demand
    is not known."""
    saturated: bool
    """The demand was at least this."""


def simulate(
    spec: HpaSpec,
    demands: Iterable[RecordedDemand],
    world: SimulatedWorld,
    start: int,
    outage: BlindTime | None = None,
) -> Iterator[Moment]:
    """Yield the state after each sync.

    Args:
        spec: an HPA with one metric of type Pods.
        demands: by time.
        world: what the settings do not change.
        start: replicas at the beginning.
        outage: when the HPA does not see the demand.

    Raises:
        ClientError: there are more replicas than :data:`MOST_REPLICAS`.
    """
    state = HpaState()
    shown: int | None = None
    among = 0
    """Pods that have this value for the HPA."""
    pods = [float("-inf")] * check_replicas(start, spec)
    """When each pod was asked for, the oldest first."""
    for demand in demands:
        now = demand.time
        if demand.first:
            state = HpaState()
        ready = sum(asked + world.boot <= now for asked in pods)
        load = demand.total // ready if demand.total is not None and ready else None
        if outage is None or not outage.start <= now < outage.end:
            shown, among = shown_value(load, world), ready
        elif now >= outage.blind:
            shown = None
        among = min(among, ready)  # old values are of pods that had one before
        observation = Observation(
            len(pods), pod_states(ready, len(pods)), (values_of(shown, among),)
        )
        decision, state = decide(spec, state, observation, now, world.controller)
        change = check_replicas(decision.desired, spec) - len(pods)
        if change >= 0:
            pods += [now] * change
        else:
            del pods[change:]  # the youngest, as the ReplicaSet controller prefers
        ready = min(ready, len(pods))
        yield Moment(now, len(pods), ready, load, demand.saturated)


def check_replicas(replicas: int, spec: HpaSpec) -> int:
    """Return the replicas; raises ClientError if they are more than a replay can have."""
    if replicas > MOST_REPLICAS:
        target = number(spec.metrics[0].target.milli / 1000)
        raise ClientError(
            f"with target {target} and {spec.min_replicas} to {spec.max_replicas} replicas, HPA "
            f"{spec.namespace}/{spec.name} has {replicas} replicas, and a replay has at most "
            f"{MOST_REPLICAS}: give another target, minReplicas or maxReplicas"
        )
    return replicas


def shown_value(load: int | None, world: SimulatedWorld) -> int | None:
    """Return the value of each pod."""
    return load if load is None or world.highest is None else min(load, world.highest)


def values_of(value: int | None, count: int) -> Values:
    """Return the same value for the first pods."""
    return {} if value is None else dict.fromkeys(_names(count), value)


@lru_cache(_NAMES)
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"pod-{index}" for index in range(count))


@lru_cache(_NAMES)
def pod_states(ready: int, replicas: int) -> tuple[PodState, ...]:
    """Return so many pods, the first of them ready."""
    names = _names(replicas)
    running = (PodState(name) for name in names[:ready])
    booting = (PodState(name, "Pending", ready=False) for name in names[ready:])
    return (*running, *booting)
