"""Requests that miss their promise against GPU-hours: signals for an HPA beside each other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from load.promiseplays import LIMITS, plays
from load.promisepolicies import FAMILIES, ORACLE, OURS, RECIPE
from load.promisepool import UNCOUNTED, Play, play
from load.table import Goal, Run, Table
from research.traces import TracesMissingError, folder

PICTURE: Final = Path(__file__).with_name("promises.png")
MISSED: Final = 5.0
"""Percent of the requests that today's recipe misses where signals are compared."""
GOAL: Final = 2.0
"""Percent that ours may miss there."""
ONE: Final = 0.5
"""The target of ``inference_slo_ratio`` that is the same for all."""
ONE_RECIPE: Final = 16.0
"""The running requests of the recipe that are the same for all: llm-d's default too."""


class Cost(NamedTuple):
    """What a setting came to."""

    gpu_hours: float
    missed: float


Swept = Mapping[str, Mapping[float, Cost]]
"""Signal -> setting -> cost."""


class Result(NamedTuple):
    """One play's costs."""

    name: str
    held_out: bool
    swept: Swept


def promises(run: Run) -> Table:
    """Play every signal at each of its settings; without recorded traces, the synthetic plays."""
    results = sweep(quick=run.quick)
    from load.promiseplot import draw  # noqa: PLC0415 - Matplotlib's import takes half a second

    draw(results, run.folder / PICTURE.name if run.quick else PICTURE)
    return Table(
        ("signal", *(f"{result.name}{' (held out)' * result.held_out}" for result in results)),
        (
            ("GPU-hours", *(f"{reference(result):.1f}" for result in results)),
            *((name, *(_missed_text(result, name) for result in results)) for name in FAMILIES),
            _one_setting(OURS, ONE, results),
            _one_setting(RECIPE, ONE_RECIPE, results),
        ),
        tuple(_goals(results)),
        (
            (
                "GPU-hours are those at which *running and waiting* misses "
                f"{MISSED:.0f} %, or where it misses least, or where it is cheapest. The other "
                "cells are percent of requests that miss the promise at these GPU-hours, by the "
                "signal's best settings, and - where each of its settings is dearer. The last two "
                "rows have one setting for all: percent missed / GPU-hours. The first "
                f"{UNCOUNTED / 60:.0f} minutes do not count."
            ),
        ),
    )


@cache
def _plays(quick: bool) -> Sequence[Play]:
    try:
        traces = folder()
    except TracesMissingError:
        return plays(None, quick=quick)
    return plays(traces, quick=quick)


def sweep(*, quick: bool) -> list[Result]:
    """Play all, on as many cores as there are; the same plays, the same results."""
    all_plays = _plays(quick)
    jobs = [
        (quick, index, name, value)
        for index in range(len(all_plays))
        for name, family in FAMILIES.items()
        for value in (family.values[:2] if quick else family.values)
    ]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        costs = dict(zip(jobs, pool.map(_run, *zip(*jobs, strict=True)), strict=True))
    return [
        Result(
            played.name,
            played.held_out,
            {
                name: {
                    value: cost
                    for (_, place, of, value), cost in costs.items()
                    if (place, of) == (index, name)
                }
                for name in FAMILIES
            },
        )
        for index, played in enumerate(all_plays)
    ]


def _run(quick: bool, index: int, name: str, value: float) -> Cost:
    what = _plays(quick)[index]
    outcome = play(what, FAMILIES[name].policy(value, what), LIMITS)
    return Cost(outcome.gpu_hours, outcome.missed)


def best_settings(costs: Mapping[float, Cost]) -> list[Cost]:
    """Return the settings that no cheaper one is better than, cheapest first."""
    best_costs: list[Cost] = []
    for cost in sorted(costs.values()):
        if not best_costs or cost.missed < best_costs[-1].missed:
            best_costs.append(cost)
    return best_costs


def missed_at(costs: Mapping[float, Cost], hours: float) -> float | None:
    """Return percent missed for so many GPU-hours; None if each setting is dearer."""
    points = best_settings(costs)
    if hours < points[0].gpu_hours:
        return None
    for low, high in pairwise(points):
        if low.gpu_hours <= hours < high.gpu_hours:
            part = (hours - low.gpu_hours) / (high.gpu_hours - low.gpu_hours)
            return low.missed + part * (high.missed - low.missed)
    return points[-1].missed


def reference(result: Result) -> float:
    """Return the GPU-hours at which signals are compared."""
    points = best_settings(result.swept[RECIPE])
    for low, high in pairwise(points):
        if low.missed >= MISSED >= high.missed:
            part = (low.missed - MISSED) / (low.missed - high.missed)
            return low.gpu_hours + part * (high.gpu_hours - low.gpu_hours)
    return points[0].gpu_hours if points[0].missed <= MISSED else points[-1].gpu_hours


def _missed_text(result: Result, name: str) -> str:
    missed = missed_at(result.swept[name], reference(result))
    return "-" if missed is None else f"{missed:.1f}"


def _one_setting(name: str, value: float, results: Sequence[Result]) -> tuple[str, ...]:
    costs = [result.swept[name].get(value) for result in results]
    return (
        f"{name}, {value:g} for all",
        *("-" if cost is None else f"{cost.missed:.1f} / {cost.gpu_hours:.1f}" for cost in costs),
    )


def _goals(results: Sequence[Result]) -> list[Goal]:
    near = [result for result in results if _missed_at_reference(result, OURS) <= GOAL]
    never = [result for result in results if _never_worse(result)]
    within = [result for result in results if _missed_at_one(result) <= GOAL]
    text = f"where the recipe misses {MISSED:.0f} %, ours misses at most {GOAL:.0f} %"
    return [
        _goal(text, near, results),
        _goal("never worse than the recipe at the same GPU-hours", never, results),
        _goal(f"one target ({ONE:g}) for all: at most {GOAL:.0f} % missed", within, results),
    ]


def _missed_at_reference(result: Result, name: str) -> float:
    missed = missed_at(result.swept[name], reference(result))
    return 100.0 if missed is None else missed


def _missed_at_one(result: Result) -> float:
    cost = result.swept[OURS].get(ONE)
    return 100.0 if cost is None else cost.missed


def _never_worse(result: Result) -> bool:
    """Whether ours misses no more at each of the recipe's best settings; a tenth of a percent is
    within the noise of the arrivals."""
    ours = (
        missed_at(result.swept[OURS], cost.gpu_hours)
        for cost in best_settings(result.swept[RECIPE])
    )
    pairs = zip(ours, best_settings(result.swept[RECIPE]), strict=True)
    return all(missed is not None and missed <= cost.missed + 0.1 for missed, cost in pairs)


def _goal(text: str, met: Sequence[Result], results: Sequence[Result]) -> Goal:
    names = ", ".join(result.name for result in met) or "none"
    return Goal(text, f"on {len(met)} of {len(results)}: {names}", len(met) == len(results))


__all__ = [
    "ORACLE",
    "Cost",
    "Result",
    "best_settings",
    "missed_at",
    "promises",
    "reference",
    "sweep",
]
