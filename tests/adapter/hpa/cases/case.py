"""A case of the HPA's behaviour: what it sees, and the sizes that it sets one after another.

The sizes are kube-controller-manager's: ``tests/e2e/test_hpa_table.py`` puts every case
before the real one. The pods of a case stay the same for every decision of the HPA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from adapter.hpa import (
    ControllerOptions,
    Decision,
    HpaState,
    Missing,
    Observation,
    PodState,
    ResourceUsage,
    Values,
    decide,
    from_manifest,
)

Manifest = dict[str, Any]

TICKS = 60
"""Simulated seconds that a phase lasts, one sync a second: past every short window and
period of the table (15 s), far from every long one (300 s and more)."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scale target, an HPA, and one or several phases of metric values."""

    name: str
    replicas: int
    pods: tuple[PodState, ...]
    metrics: tuple[Manifest, ...]
    phases: tuple[tuple[Values, ...], ...]
    """For each phase one entry per metric."""
    sizes: tuple[int, ...]
    """Every size that the HPA sets, in order, over all phases."""
    low: int = 1
    high: int = 20
    behavior: Manifest | None = None
    status_replicas: int | None = None

    def manifest(self, namespace: str) -> Manifest:
        """Return the HPA, for a Deployment called ``target``."""
        spec: Manifest = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "target"},
            "minReplicas": self.low,
            "maxReplicas": self.high,
            "metrics": list(self.metrics),
        }
        if self.behavior is not None:
            spec["behavior"] = self.behavior
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "hpa", "namespace": namespace},
            "spec": spec,
        }


def play(
    case: Case, namespace: str = "default"
) -> Iterator[tuple[list[tuple[int, str]], Decision]]:
    """Yield, for each phase, the (size, reason) pairs set in it and the last decision."""
    spec = from_manifest(case.manifest(namespace))
    controller = ControllerOptions(scale_to_zero=True)
    state, replicas, now = HpaState(), case.replicas, 1_000_000.0
    pods = tuple(shifted(pod, now) for pod in case.pods)
    status = case.replicas if case.status_replicas is None else case.status_replicas
    for phase in case.phases:
        values = tuple(shifted_values(of_metric, 1_000_000.0, namespace) for of_metric in phase)
        steps: list[tuple[int, str]] = []
        for _ in range(TICKS):
            seen = Observation(replicas, pods, values, status)
            decision, state = decide(spec, state, seen, now, controller)
            if decision.rescale:
                steps.append((decision.desired, decision.reason))
            replicas, now = decision.desired, now + 1
        yield steps, decision


def shifted(pod: PodState, now: float) -> PodState:
    """Return a pod whose times are epoch seconds; a case's are relative to its start."""
    return pod._replace(
        started=None if pod.started is None else now + pod.started,
        ready_since=None if pod.ready_since is None else now + pod.ready_since,
    )


def shifted_values(values: Values, now: float, namespace: str) -> Values:
    """Return values whose times are epoch seconds, and whose message names the namespace."""
    if isinstance(values, Missing):
        return replace(values, message=values.message.replace("{namespace}", namespace))
    if not isinstance(values, ResourceUsage):
        return values
    samples = {
        name: sample._replace(time=now + sample.time) for name, sample in values.samples.items()
    }
    return ResourceUsage(samples, values.requests, values.problem)


def run(count: int, **state: Any) -> tuple[PodState, ...]:
    """Return p0, p1, …: running and ready unless said otherwise."""
    return tuple(PodState(f"p{i}", **state) for i in range(count))


def each(count: int, value: float) -> dict[str, int]:
    """Return the same value for p0, p1, …"""
    return {f"p{i}": round(value * 1000) for i in range(count)}


def pods(target: str = "50", name: str = "gpu", **metric: Any) -> Manifest:
    """Return a Pods metric."""
    return {
        "type": "Pods",
        "pods": {
            "metric": {"name": name, **metric},
            "target": {"type": "AverageValue", "averageValue": target},
        },
    }


def obj(kind: str, target: str, described: str = "Service", **metric: Any) -> Manifest:
    """Return an Object metric; the object is called like the kind, in lower case."""
    key = "value" if kind == "Value" else "averageValue"
    return {
        "type": "Object",
        "object": {
            "metric": {"name": "depth", **metric},
            "describedObject": {"apiVersion": "v1", "kind": described, "name": described.lower()},
            "target": {"type": kind, key: target},
        },
    }


def external(kind: str, target: str, **metric: Any) -> Manifest:
    """Return an External metric."""
    key = "value" if kind == "Value" else "averageValue"
    return {
        "type": "External",
        "external": {
            "metric": {"name": "queue", **metric},
            "target": {"type": kind, key: target},
        },
    }


def policies(*rows: tuple[str, int, int], **rest: Any) -> Manifest:
    """Return scaling rules of (type, value, periodSeconds) rows."""
    listed = [{"type": t, "value": v, "periodSeconds": p} for t, v, p in rows]
    return {"policies": listed, **rest}


AT_ONCE: Manifest = {"scaleDown": {"stabilizationWindowSeconds": 0}}
GONE = Missing("the server could not find the metric")
SELECTOR: Manifest = {"selector": {"matchLabels": {"model": "a", "car": "b"}}}
EXPRESSION: Manifest = {
    "selector": {
        "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["x", "y"]},
            {"key": "l", "operator": "Exists"},
        ]
    }
}


def down(*rows: tuple[str, int, int], **rest: Any) -> Manifest:
    """Return a behaviour that scales down by policies, with no window."""
    return {"scaleDown": policies(*rows, stabilizationWindowSeconds=0, **rest)}


def up(*rows: tuple[str, int, int], **rest: Any) -> Manifest:
    """Return a behaviour that scales up by policies."""
    return {"scaleUp": policies(*rows, **rest)}
