"""Cases of several metrics."""

from __future__ import annotations

from tests.adapter.hpa.cases.case import AT_ONCE, GONE, Case, each, external, pods, run

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
