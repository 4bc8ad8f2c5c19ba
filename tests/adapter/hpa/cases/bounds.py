"""Cases of the bounds, and of zero replicas."""

from __future__ import annotations

from tests.adapter.hpa.cases.case import AT_ONCE, GONE, Case, each, external, pods, run, up

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
