"""One HPA of the demo: reads the metrics API, decides as the controller does, and scales.

Each decision is also explained in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.demo.client import Answer, MetricsReader
from adapter.demo.manifests import pod_state
from adapter.demo.world import World
from adapter.figures import decimal
from adapter.hpa import (
    Condition,
    ControllerOptions,
    Decision,
    HpaSpec,
    HpaState,
    Missing,
    Observation,
    decide,
    from_manifest,
)
from adapter.hpa.podreplicas import Tolerances

_COARSE = 10_000
"""Thousandths from which a target is compared with one decimal."""
PERIOD = 15.0
"""Seconds of the simulation between two syncs (the controller's default)."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The observation and the result of one sync."""

    at: float
    """Seconds of the simulation."""
    decision: Decision
    why: str
    """The decision in words."""
    queue: int
    """Requests of the service that wait in the queue."""
    seen: Observation
    """The values that the decision used."""
    lowest: int
    """The HPA's minimum, to which values of 0 would scale it in."""

    @property
    def value(self) -> float | None:
        """The value that the first metric has; None without a valid value."""
        usage = next((proposal.usage for proposal in self.decision.proposals), None)
        return None if usage is None else usage / 1000

    @property
    def active(self) -> bool:
        """The condition ScalingActive."""
        rows = self.decision.conditions
        return next((row.status for row in rows if row.type == "ScalingActive"), False)


class DemoAutoscaler:
    """An autoscaling/v2 HPA with Pods metrics, on the service of the same name."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.spec: HpaSpec = from_manifest(manifest)
        self.syncs: list[Sync] = []
        self._state = HpaState()

    @property
    def service(self) -> str:
        """The Deployment that it scales."""
        return self.spec.target.name if self.spec.target else self.spec.name

    @property
    def metric(self) -> str:
        """The first metric's name."""
        return self.spec.metrics[0].name

    @property
    def target(self) -> float:
        """The first metric's target: an average value, in the metric's unit."""
        return self.spec.metrics[0].target.milli / 1000

    @property
    def latest(self) -> Sync | None:
        """The last sync."""
        return self.syncs[-1] if self.syncs else None

    async def sync(self, world: World, client: MetricsReader) -> Sync:
        """Read, decide, scale."""
        namespace, selector = self.spec.namespace, f"app={self.service}"
        names = [metric.name for metric in self.spec.metrics]
        values = [await client.pods(namespace, name, selector) for name in names]
        sync = self._decide(world, tuple(values))
        self.syncs.append(sync)
        if sync.decision.rescale:
            world.scale(self.service, sync.decision.desired)
        return sync

    def _decide(self, world: World, values: tuple[Answer, ...]) -> Sync:
        pods = [pod_state(pod) for pod in world.fleet.pods.values() if pod.service == self.service]
        observation = Observation(world.wanted[self.service], pods, values)
        decision, self._state = decide(self.spec, self._state, observation, world.now)
        answers = [{} if isinstance(answer, Missing) else answer for answer in values]
        missing = sum(
            pod.phase == "Running"
            and not pod.deleting
            and any(pod.name not in answer for answer in answers)
            for pod in pods
        )
        return Sync(
            at=world.now,
            decision=decision,
            why=explain(self.spec, decision, missing),
            queue=world.services[self.service].queue,
            seen=observation,
            lowest=self.spec.min_replicas,
        )


def explain(spec: HpaSpec, decision: Decision, missing: int) -> str:
    """Return why the number of replicas changes, or does not, by the metric that asks for most.

    Args:
        spec: the HPA.
        decision: the decision of this sync.
        missing: running pods without a value.
    """
    rows = {row.type: row for row in decision.conditions}
    active = rows.get("ScalingActive")
    if active and not active.status:
        return f"no value: keeps {decision.current} (ScalingActive=False, {active.reason})"
    valid = [
        (proposal.replicas, proposal.usage, metric)
        for metric, proposal in zip(spec.metrics, decision.proposals, strict=False)
        if proposal.usage is not None and proposal.replicas is not None
    ]
    if not valid:
        return decision.reason or "nothing to decide"
    replicas, usage, metric = max(valid, key=lambda row: row[0])
    goal = metric.target.milli
    tolerances = Tolerances.of(spec.behavior, ControllerOptions().tolerance)
    words = _compare(usage, goal)
    if len(spec.metrics) > 1:
        words = f"{metric.name} {words}"
    if missing:
        words += f" ({missing} without a value)"
    elif usage != goal and tolerances.within(usage / goal):
        words += " within the tolerance"
    if replicas == decision.current == decision.desired:
        return f"{words}: stays at {replicas}"
    words += f": wants {replicas}"
    if replicas != decision.desired:
        words += _describe_limit(decision, replicas, rows)
    return words


def _compare(usage: int, goal: int) -> str:
    digits = 1 if goal >= _COARSE else 2
    value, target = decimal(usage / 1000, digits), decimal(goal / 1000, digits)
    if usage > goal:
        return f"{value} is over the target of {target}"
    if usage < goal:
        return f"{value} is under the target of {target}"
    return f"{value} is the target"


def _describe_limit(decision: Decision, proposed: int, rows: dict[str, Condition]) -> str:
    limited = rows.get("ScalingLimited")
    if limited and limited.status:
        return f", gets {decision.desired} ({limited.reason})"
    if proposed < decision.desired:
        return f", the scale-down window allows {decision.desired}"
    return f", gets {decision.desired}"
