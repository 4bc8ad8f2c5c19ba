"""Cases of external metrics."""

from __future__ import annotations

from tests.adapter.hpa.cases.case import AT_ONCE, EXPRESSION, GONE, SELECTOR, Case, external, run

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
