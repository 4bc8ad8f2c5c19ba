"""The table of the HPA's behaviour: what it sees, and the sizes that it sets one after another.

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
    ResourceSample,
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
        values = tuple(shifted_values(each, 1_000_000.0, namespace) for each in phase)
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


PODS_CASES = (
    Case("busy pods scale out", 2, run(2), (pods(),), ((each(2, 95),),), (4,)),
    Case("idle pods scale in", 4, run(4), (pods(),), ((each(4, 10),),), (1,), behavior=AT_ONCE),
    Case("idle pods wait for five minutes", 4, run(4), (pods(),), ((each(4, 10),),), ()),
    Case("a tenth above is tolerated", 2, run(2), (pods(),), ((each(2, 55),),), ()),
    Case("just over a tenth is not", 2, run(2), (pods(),), ((each(2, 55.001),),), (3,)),
    Case(
        "a tenth below is tolerated",
        10,
        run(10),
        (pods(),),
        ((each(10, 45),),),
        (),
        behavior=AT_ONCE,
    ),
    Case(
        "just under it is not",
        10,
        run(10),
        (pods(),),
        ((each(10, 44.999),),),
        (9,),
        behavior=AT_ONCE,
    ),
    Case(
        "half a thousandth of the mean is lost",
        2,
        run(2),
        (pods(),),
        (({"p0": 55000, "p1": 55001},),),
        (),
    ),
    Case("a missing pod counts 0 on the way up", 3, run(3), (pods(),), ((each(2, 100),),), (4,)),
    Case("a missing pod turns the direction", 2, run(2), (pods(),), ((each(1, 60),),), ()),
    Case("a missing pod leaves it in tolerance", 2, run(2), (pods(),), ((each(1, 105),),), ()),
    Case(
        "a missing pod counts its target on the way down",
        3,
        run(3),
        (pods(),),
        ((each(2, 10),),),
        (2,),
        behavior=AT_ONCE,
    ),
    Case(
        "nine missing pods hold one idle",
        10,
        run(10),
        (pods(),),
        ((each(1, 40),),),
        (),
        behavior=AT_ONCE,
    ),
    Case("an empty list has no value", 3, run(3), (pods(),), (({},),), (), behavior=AT_ONCE),
    Case("not found has no value", 3, run(3), (pods(),), ((GONE,),), (), behavior=AT_ONCE),
    Case(
        "a pending pod counts 0 on the way up",
        3,
        (*run(2), PodState("p2", "Pending")),
        (pods(),),
        ((each(2, 100),),),
        (4,),
    ),
    Case(
        "a pending pod does not count on the way down",
        3,
        (*run(2), PodState("p2", "Pending")),
        (pods(),),
        (({**each(2, 10), "p2": 100_000},),),
        (1,),
        behavior=AT_ONCE,
    ),
    Case(
        "a missing and a pending pod",
        4,
        (*run(3), PodState("p3", "Pending")),
        (pods(),),
        ((each(2, 200),),),
        (8,),
    ),
    Case(
        "an unready pod that runs counts",
        2,
        run(2, ready=False),
        (pods(),),
        ((each(2, 100),),),
        (4,),
    ),
    Case(
        "a failed pod does not count",
        3,
        (*run(2), PodState("p2", "Failed")),
        (pods(),),
        (({**each(2, 50), "p2": 900_000},),),
        (),
    ),
    Case(
        "a pod being deleted does not count",
        3,
        (*run(2), PodState("p2", deleting=True)),
        (pods(),),
        (({**each(2, 50), "p2": 900_000},),),
        (),
    ),
    Case(
        "nor does it multiply",
        2,
        (*run(1), PodState("p1", deleting=True)),
        (pods(),),
        ((each(2, 100),),),
        (),
    ),
    Case(
        "a finished pod is a missing one",
        3,
        (*run(2), PodState("p2", "Succeeded")),
        (pods(),),
        ((each(2, 100),),),
        (4,),
    ),
    Case(
        "a stranger is in the mean",
        1,
        run(1),
        (pods(),),
        (({"p0": 50_000, "stranger": 250_000},),),
        (3,),
    ),
    Case("only pending pods", 2, run(2, phase="Pending"), (pods(),), ((each(2, 90),),), ()),
    Case("no pods at all", 2, (), (pods(),), ((each(2, 90),),), ()),
    Case("zero is a value", 3, run(3), (pods(),), ((each(3, 0),),), (1,), behavior=AT_ONCE),
    Case(
        "not below the least", 5, run(5), (pods(),), ((each(5, 0),),), (2,), low=2, behavior=AT_ONCE
    ),
    Case("thousandths", 2, run(2), (pods("500m"),), ((each(2, 0.75),),), (3,)),
    Case("a metric selector", 2, run(2), (pods(**SELECTOR),), ((each(2, 95),),), (4,)),
    Case("huge values", 2, run(2), (pods("1Gi"),), ((each(2, 3 * 2.0**30),),), (4, 6)),
)

LIMIT_CASES = (
    Case("not above the most", 4, run(4), (pods("10"),), ((each(4, 100),),), (5,), high=5),
    Case(
        "at most twice the size",
        3,
        run(3),
        (pods("10"),),
        ((each(3, 100),),),
        (6, 12, 24, 30),
        high=100,
    ),
    Case("or four", 1, run(1), (pods("10"),), ((each(1, 100),),), (4, 8, 10)),
    Case(
        "an empty behavior has periods",
        1,
        run(1),
        (pods("10"),),
        ((each(1, 120),),),
        (5, 10, 12),
        behavior={},
    ),
    Case(
        "pods policy up",
        2,
        run(2),
        (pods("10"),),
        ((each(2, 50),),),
        (4,),
        behavior=up(("Pods", 2, 600)),
    ),
    Case(
        "percent policy up",
        3,
        run(3),
        (pods("10"),),
        ((each(3, 50),),),
        (5,),
        behavior=up(("Percent", 50, 600)),
    ),
    Case(
        "percent up is rounded up",
        1,
        run(1),
        (pods("10"),),
        ((each(1, 100),),),
        (2,),
        behavior=up(("Percent", 10, 600)),
    ),
    Case(
        "the lesser of two up",
        4,
        run(4),
        (pods("10"),),
        ((each(4, 50),),),
        (6,),
        behavior=up(("Pods", 5, 600), ("Percent", 50, 600), selectPolicy="Min"),
    ),
    Case(
        "the greater of two up",
        4,
        run(4),
        (pods("10"),),
        ((each(4, 50),),),
        (9,),
        behavior=up(("Pods", 5, 600), ("Percent", 50, 600), selectPolicy="Max"),
    ),
    Case(
        "never up",
        2,
        run(2),
        (pods(),),
        ((each(2, 100),),),
        (),
        behavior={"scaleUp": {"selectPolicy": "Disabled"}},
    ),
    Case(
        "never down",
        4,
        run(4),
        (pods(),),
        ((each(4, 10),),),
        (),
        behavior={"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}},
    ),
    Case(
        "pods policy down",
        5,
        run(5),
        (pods(),),
        ((each(5, 5),),),
        (4,),
        behavior=down(("Pods", 1, 600)),
    ),
    Case(
        "percent policy down",
        10,
        run(10),
        (pods(),),
        ((each(10, 5),),),
        (7,),
        behavior=down(("Percent", 25, 600)),
    ),
    Case(
        "percent down of a few",
        3,
        run(3),
        (pods(),),
        ((each(3, 5),),),
        (2,),
        behavior=down(("Percent", 10, 600)),
    ),
    Case(
        "the lesser of two down",
        10,
        run(10),
        (pods(),),
        ((each(10, 5),),),
        (9,),
        behavior=down(("Pods", 1, 600), ("Percent", 50, 600), selectPolicy="Min"),
    ),
    Case(
        "the greater of two down",
        10,
        run(10),
        (pods(),),
        ((each(10, 4),),),
        (5,),
        behavior=down(("Pods", 1, 600), ("Percent", 50, 600), selectPolicy="Max"),
    ),
    Case(
        "a window on the way up",
        2,
        run(2),
        (pods(),),
        ((each(2, 100),),),
        (),
        behavior={"scaleUp": {"stabilizationWindowSeconds": 600}},
    ),
    Case(
        "a short window on the way up",
        2,
        run(2),
        (pods(),),
        ((each(2, 100),),),
        (4,),
        behavior={"scaleUp": {"stabilizationWindowSeconds": 4}},
    ),
    Case(
        "a short window on the way down",
        2,
        run(2),
        (pods(),),
        ((each(2, 100),), (each(2, 10),)),
        (4, 1),
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
    ),
    Case(
        "the window's highest holds", 2, run(2), (pods(),), ((each(2, 100),), (each(2, 10),)), (4,)
    ),
    Case(
        "pods added are given back first",
        2,
        run(2),
        (pods(),),
        ((each(2, 150),), (each(2, 10),)),
        (6, 1),
        behavior=up(("Pods", 4, 600)) | down(("Pods", 3, 600)),
    ),
    Case(
        "pods removed are given back first",
        6,
        run(6),
        (pods(),),
        ((each(6, 5),), (each(6, 100),)),
        (4, 9),
        behavior=up(("Pods", 3, 600)) | down(("Pods", 2, 600)),
    ),
    Case(
        "a wider tolerance up",
        2,
        run(2),
        (pods(),),
        ((each(2, 64),),),
        (),
        behavior={"scaleUp": {"tolerance": "0.3"}},
    ),
    Case(
        "no tolerance up",
        2,
        run(2),
        (pods(),),
        ((each(2, 51),),),
        (3,),
        behavior={"scaleUp": {"tolerance": "0"}},
    ),
    Case(
        "a wider tolerance down",
        4,
        run(4),
        (pods(),),
        ((each(4, 26),),),
        (),
        behavior={"scaleDown": {"tolerance": "500m", "stabilizationWindowSeconds": 0}},
    ),
)

SEVERAL_CASES = (
    Case(
        "the highest metric wins",
        2,
        run(2),
        (pods(), pods(name="mem")),
        ((each(2, 60), each(2, 100)),),
        (4,),
    ),
    Case(
        "one invalid, the other up",
        2,
        run(2),
        (pods(), pods(name="mem")),
        ((GONE, each(2, 100)),),
        (4,),
    ),
    Case(
        "one invalid, the other down",
        4,
        run(4),
        (pods(), pods(name="mem")),
        ((GONE, each(4, 5)),),
        (),
        behavior=AT_ONCE,
    ),
    Case(
        "one invalid, the other still",
        2,
        run(2),
        (pods(), pods(name="mem")),
        ((each(2, 50), {}),),
        (),
    ),
    Case("all invalid", 2, run(2), (pods(), pods(name="mem")), (({}, GONE),), ()),
    Case(
        "a pods and an external metric",
        2,
        run(2),
        (pods(), external("AverageValue", "10")),
        ((each(2, 10), [50_000]),),
        (4, 5),
    ),
    Case("a metric that comes back", 2, run(2), (pods(),), ((GONE,), (each(2, 100),)), (4,)),
    Case(
        "a metric that goes away",
        2,
        run(2),
        (pods(),),
        ((each(2, 100),), (GONE,)),
        (4,),
        behavior=AT_ONCE,
    ),
)

OBJECT_CASES = (
    Case("object value", 3, run(3), (obj("Value", "100"),), ((200_000,),), (6,)),
    Case(
        "object value of ready pods",
        3,
        (*run(2), PodState("p2", ready=False)),
        (obj("Value", "100"),),
        ((200_000,),),
        (4,),
    ),
    Case(
        "a pod being deleted is ready",
        3,
        (*run(2), PodState("p2", deleting=True)),
        (obj("Value", "100"),),
        ((200_000,),),
        (6,),
    ),
    Case(
        "a pending pod is not",
        3,
        (*run(2), PodState("p2", "Pending")),
        (obj("Value", "100"),),
        ((200_000,),),
        (4,),
    ),
    Case(
        "object value within tolerance",
        3,
        run(3),
        (obj("Value", "100"),),
        ((91_000,),),
        (),
        behavior=AT_ONCE,
    ),
    Case("object average", 3, run(3), (obj("AverageValue", "50"),), ((300_000,),), (6,)),
    Case(
        "object average goes by the status",
        4,
        run(4),
        (obj("AverageValue", "50"),),
        ((100_000,),),
        (2,),
        behavior=AT_ONCE,
        status_replicas=2,
    ),
    Case(
        "object average of no replicas",
        2,
        run(2),
        (obj("AverageValue", "50"),),
        ((100_000,),),
        (),
        status_replicas=0,
    ),
    Case("about the namespace", 2, run(2), (obj("Value", "10", "Namespace"),), ((20_000,),), (4,)),
    Case("object not found", 3, run(3), (obj("Value", "100"),), ((GONE,),), ()),
    Case("object average not found", 3, run(3), (obj("AverageValue", "100"),), ((GONE,),), ()),
    Case("object value without pods", 3, (), (obj("Value", "100"),), ((200_000,),), ()),
    Case(
        "object average with a selector",
        2,
        run(2),
        (obj("AverageValue", "50", **SELECTOR),),
        ((200_000,),),
        (4,),
    ),
)

EXTERNAL_CASES = (
    Case(
        "series are summed", 2, run(2), (external("Value", "100"),), (([100_000, 100_000],),), (4,)
    ),
    Case(
        "external average",
        2,
        run(2),
        (external("AverageValue", "100"),),
        (([250_000, 250_000],),),
        (4, 5),
    ),
    Case(
        "external average within tolerance",
        2,
        run(2),
        (external("AverageValue", "100"),),
        (([210_000],),),
        (),
    ),
    Case("external empty", 2, run(2), (external("AverageValue", "100"),), (([],),), ()),
    Case("external not found", 2, run(2), (external("Value", "100"),), ((GONE,),), ()),
    Case(
        "a negative average is an overflow",
        2,
        run(2),
        (external("AverageValue", "100"),),
        (([-5_000],),),
        (4, 6),
        high=6,
    ),
    Case(
        "so is one that is negative on the way",
        2,
        run(2),
        (external("AverageValue", "100"),),
        (([-5_000, 200_000],),),
        (4, 6),
        high=6,
    ),
    Case(
        "a negative value is not",
        3,
        run(3),
        (external("Value", "100"),),
        (([-5_000],),),
        (1,),
        behavior=AT_ONCE,
    ),
    Case(
        "external with labels",
        2,
        run(2),
        (external("AverageValue", "100", **SELECTOR),),
        (([400_000],),),
        (4,),
    ),
    Case(
        "external with expressions",
        2,
        run(2),
        (external("AverageValue", "100", **EXPRESSION),),
        (([400_000],),),
        (4,),
    ),
)

_WINDOW = 600.0
"""Seconds of a sample: longer than it takes to build a case."""
OLD: dict[str, Any] = {"started": -3600.0, "ready_since": -3500.0}
"""A pod that has run for long."""
NEW: dict[str, Any] = {"started": -1.0, "ready_since": -1.0}
"""A pod whose CPU counts once a window has passed since it was ready."""
NEVER: dict[str, Any] = {"ready": False, "started": -3600.0, "ready_since": -3590.0}
"""A pod that was never ready."""


def resource(target: int | str, name: str = "cpu", container: str = "") -> Manifest:
    """Return a Resource metric in percent (int) or a quantity; or one of a container."""
    goal: Manifest = {"type": "AverageValue", "averageValue": target}
    if isinstance(target, int):
        goal = {"type": "Utilization", "averageUtilization": target}
    source: Manifest = {"name": name, "target": goal}
    if container:
        return {"type": "ContainerResource", "containerResource": source | {"container": container}}
    return {"type": "Resource", "resource": source}


def usage(
    count: int, milli: int, requested: int = 100, pods: int = 0, problem: str = ""
) -> ResourceUsage:
    """Return the same usage for p0, p1, …, and the same request of ``pods`` of them."""
    samples = {f"p{i}": ResourceSample(milli, 0.0, _WINDOW) for i in range(count)}
    requests = {f"p{i}": requested for i in range(pods or count)}
    return ResourceUsage(samples, {} if problem else requests, problem)


UNREQUESTED = "missing request for cpu in container main of Pod p0"

RESOURCE_CASES = (
    Case("busy cpus scale out", 2, run(2, **OLD), (resource(50),), ((usage(2, 90),),), (4,)),
    Case(
        "idle cpus scale in",
        4,
        run(4, **OLD),
        (resource(50),),
        ((usage(4, 10),),),
        (1,),
        behavior=AT_ONCE,
    ),
    Case("cpu in tolerance", 2, run(2, **OLD), (resource(50),), ((usage(2, 55),),), ()),
    Case(
        "a percent is truncated", 2, run(2, **OLD), (resource(50),), ((usage(2, 1118, 2000),),), ()
    ),
    Case(
        "a missing cpu counts 0 on the way up",
        3,
        run(3, **OLD),
        (resource(50),),
        ((usage(2, 100, pods=3),),),
        (4,),
    ),
    Case(
        "a missing cpu counts its request on the way down",
        4,
        run(4, **OLD),
        (resource(50),),
        ((usage(3, 20, pods=4),),),
        (),
        behavior=AT_ONCE,
    ),
    Case(
        "a missing cpu counts the target above 100 percent",
        4,
        run(4, **OLD),
        (resource(200),),
        ((usage(3, 20, pods=4),),),
        (2,),
        behavior=AT_ONCE,
    ),
    Case(
        "a new pod counts 0 on the way up",
        3,
        (*run(2, **OLD), PodState("p2", **NEW)),
        (resource(50),),
        ((usage(3, 100),),),
        (4,),
    ),
    Case(
        "a new pod does not count on the way down",
        3,
        (*run(2, **OLD), PodState("p2", **NEW)),
        (resource(50),),
        ((usage(3, 10),),),
        (1,),
        behavior=AT_ONCE,
    ),
    Case(
        "a pod that was never ready counts 0 on the way up",
        3,
        (*run(2, **OLD), PodState("p2", **NEVER)),
        (resource(50),),
        ((usage(3, 100),),),
        (4,),
    ),
    Case(
        "a pod that is no longer ready counts",
        3,
        (*run(2, **OLD), PodState("p2", ready=False, started=-3600.0, ready_since=-400.0)),
        (resource(50),),
        ((usage(3, 100),),),
        (6,),
    ),
    Case(
        "a pending pod counts no cpu",
        3,
        (*run(2, **OLD), PodState("p2", "Pending", ready=False)),
        (resource(50),),
        ((usage(2, 100, pods=3),),),
        (4,),
    ),
    Case("cpus of new pods only", 2, run(2, **NEW), (resource(50),), ((usage(2, 90),),), ()),
    Case(
        "a container without a request",
        1,
        run(1, **OLD),
        (resource(50),),
        ((usage(1, 90, problem=UNREQUESTED),),),
        (),
    ),
    Case("no resource metrics", 2, run(2, **OLD), (resource(50),), ((GONE,),), ()),
    Case(
        "resource metrics of nobody",
        2,
        run(2, **OLD),
        (resource(50),),
        ((Missing("no metrics returned from resource metrics API", answered=True),),),
        (),
    ),
    Case("cpu as a quantity", 2, run(2, **OLD), (resource("50m"),), ((usage(2, 90),),), (4,)),
    Case(
        "memory of a new pod counts",
        2,
        run(2, **NEW),
        (resource("50m", "memory"),),
        ((usage(2, 90),),),
        (4,),
    ),
    Case(
        "memory in percent",
        2,
        run(2, **NEW),
        (resource(50, "memory"),),
        ((usage(2, 90),),),
        (4,),
    ),
    Case(
        "the cpu of a container",
        2,
        run(2, **OLD),
        (resource(50, container="main"),),
        ((usage(2, 90),),),
        (4,),
    ),
    Case(
        "a container that is not there",
        1,
        run(1, **OLD),
        (resource(50, container="side"),),
        ((usage(0, 0, pods=1),),),
        (),
    ),
    Case(
        "cpu beside gpu",
        2,
        run(2, **OLD),
        (pods(), resource(50)),
        ((each(2, 60), usage(2, 100)),),
        (4,),
    ),
    Case(
        "gpu beside cpu that is missing",
        4,
        run(4, **OLD),
        (pods(), resource(50)),
        ((each(4, 5), GONE),),
        (),
        behavior=AT_ONCE,
    ),
)

BOUND_CASES = (
    Case("zero replicas turn it off", 0, (), (pods(),), ((each(2, 90),),), ()),
    Case("above the most", 8, run(8), (pods(),), ((each(8, 50),),), (5,), high=5),
    Case("below the least", 1, run(1), (pods(),), ((each(1, 50),),), (3,), low=3),
    Case("below the least and no value", 1, run(1), (pods(),), ((GONE,),), (3,), low=3),
    Case(
        "to zero and back",
        2,
        run(2),
        (external("Value", "100"),),
        (([0],), ([300_000],)),
        (0, 3, 6),
        low=0,
        behavior=AT_ONCE | up(("Pods", 20, 600)),
    ),
    Case(
        "to zero on an average and back",
        2,
        run(2),
        (external("AverageValue", "100"),),
        (([0],), ([300_000],)),
        (0, 3),
        low=0,
        behavior=AT_ONCE,
    ),
)

CASES = (
    *PODS_CASES,
    *LIMIT_CASES,
    *SEVERAL_CASES,
    *OBJECT_CASES,
    *EXTERNAL_CASES,
    *RESOURCE_CASES,
    *BOUND_CASES,
)
