"""Cases of metrics of objects."""

from __future__ import annotations

from adapter.hpa import PodState
from tests.adapter.hpa.cases.case import AT_ONCE, GONE, SELECTOR, Case, obj, run

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
