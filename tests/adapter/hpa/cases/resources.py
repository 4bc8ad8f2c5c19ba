"""Cases of CPU and memory."""

from __future__ import annotations

from typing import Any

from adapter.hpa import Missing, PodState, ResourceSample, ResourceUsage
from tests.adapter.hpa.cases.case import AT_ONCE, GONE, Case, Manifest, each, pods, run

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
