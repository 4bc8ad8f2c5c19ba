"""Every policy on every trace, and what each costs beside the reactive autoscaler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.nodepool.plan.limits import Limits
from load.nodepoolpolicies import Oracle, Planned, Reactive, Share, Static
from load.nodepooltraces import STEP, Trace
from load.nodepoolworld import Outcome, Physics, Policy, ceiling, simulate

REACTIVE: Final = "reactive"
ORACLE: Final = "oracle"
PEAK: Final = "always-on peak"
SIZES: Final = (1, 2, 3, 4, 6, 8)
SHARES: Final = (0.1, 0.2, 0.3, 0.5)
QUANTILES: Final = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NO_CAP: Final = 1000
"""Caps are for budgets; here each policy may spend what it likes, and is judged by it."""


class Cost(NamedTuple):
    """What a policy came to."""

    pending: float
    """Pod-seconds."""
    gpu_hours: float

    def beside(self, reactive: Cost) -> Cost:
        """In percent of the reactive autoscaler's."""
        return Cost(
            100 * self.pending / reactive.pending, 100 * self.gpu_hours / reactive.gpu_hours
        )


class Setting(NamedTuple):
    """A policy of a family, with its one parameter."""

    family: str
    value: float

    @property
    def label(self) -> str:
        """As the table has it."""
        return FAMILIES[self.family].label(self.value)


class _Family(NamedTuple):
    values: tuple[float, ...]
    label: Callable[[float], str]
    policy: Callable[[float, Trace], Policy]


def _planned(quantile: float, trace: Trace) -> Policy:
    limits = Limits(quantile=quantile, max_pods=NO_CAP, max_gpus_per_pool=NO_CAP)
    return Planned(limits, ceiling(trace.work), trace.begin)


STATIC: Final = "static"
SHARE: Final = "share"
OURS: Final = "ours"
FAMILIES: Final[Mapping[str, _Family]] = {
    STATIC: _Family(SIZES, lambda size: f"static {size:.0f}", lambda v, _: Static(round(v))),
    SHARE: _Family(SHARES, lambda share: f"static {share:.0%}", lambda v, _: Share(v)),
    OURS: _Family(QUANTILES, lambda quantile: f"ours, quantile {quantile:g}", _planned),
}


class Result(NamedTuple):
    """One trace's costs."""

    trace: str
    tuned_on: bool
    reactive: Cost
    oracle: Cost
    peak: Cost
    swept: Mapping[Setting, Cost]


def sweep(traces: Sequence[Trace], families: Iterable[str] = tuple(FAMILIES)) -> list[Result]:
    """Simulate all, on as many cores as there are; the same traces, the same results."""
    wanted = tuple(families)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            (trace, Setting(family, value))
            for trace in traces
            for family in wanted
            for value in FAMILIES[family].values
        ]
        bounds = pool.map(_bounds, traces)
        costs = dict(zip(jobs, pool.map(_run, *zip(*jobs, strict=True), chunksize=4), strict=True))
        return [
            Result(
                trace.name,
                trace.tuned_on,
                *bound,
                {setting: cost for (of, setting), cost in costs.items() if of is trace},
            )
            for trace, bound in zip(traces, bounds, strict=True)
        ]


def total(results: Sequence[Result], name: str) -> Result:
    """Costs of several traces added up."""
    settings = results[0].swept
    return Result(
        name,
        False,
        _sum(each.reactive for each in results),
        _sum(each.oracle for each in results),
        _sum(each.peak for each in results),
        {setting: _sum(each.swept[setting] for each in results) for setting in settings},
    )


def pending_at(result: Result, family: str, gpu_percent: float) -> float | None:
    """Pending pod-seconds that a family reaches for so many GPU-hours, both in percent.

    Between two settings the line between them; None where no setting is so dear.
    """
    for low, high in pairwise(_best(result, family)):
        if low.gpu_hours <= gpu_percent <= high.gpu_hours:
            share = (gpu_percent - low.gpu_hours) / (high.gpu_hours - low.gpu_hours)
            return low.pending + share * (high.pending - low.pending)
    return None


def gpu_hours_for(result: Result, family: str, pending_percent: float) -> float | None:
    """GPU-hours that a family takes to come down to so many pending pod-seconds, in percent.

    Between two settings the line between them; None where no setting comes down so far.
    """
    for low, high in pairwise(_best(result, family)):
        if high.pending <= pending_percent <= low.pending:
            share = (low.pending - pending_percent) / (low.pending - high.pending)
            return low.gpu_hours + share * (high.gpu_hours - low.gpu_hours)
    return None


def _best(result: Result, family: str) -> list[Cost]:
    """Reactive and the family's settings in percent, cheapest first, without any for which a
    cheaper one lets fewer pods wait."""
    points = [Cost(100.0, 100.0)]
    points += (
        cost.beside(result.reactive)
        for setting, cost in result.swept.items()
        if setting.family == family
    )
    best: list[Cost] = []
    for point in sorted(points, key=lambda each: (each.gpu_hours, each.pending)):
        if not best or point.pending < best[-1].pending:
            best.append(point)
    return best


def _run(trace: Trace, setting: Setting) -> Cost:
    policy = FAMILIES[setting.family].policy(setting.value, trace)
    return _cost(simulate(trace.work, trace.begin, policy))


def _bounds(trace: Trace) -> tuple[Cost, Cost, Cost]:
    """Reactive, oracle and always-on peak."""
    reactive = simulate(trace.work, trace.begin, Reactive())
    ample = simulate(trace.work, trace.begin, Static(ceiling(trace.work)))
    oracle = Oracle(ample.replicas, trace.begin, Physics().boot)
    hours = len(trace.work) * STEP / 3600
    return (
        _cost(reactive),
        _cost(simulate(trace.work, trace.begin, oracle)),
        Cost(0.0, max(ample.replicas) * hours),
    )


def _cost(outcome: Outcome) -> Cost:
    return Cost(outcome.pending_pod_seconds, outcome.gpu_hours)


def _sum(costs: Iterable[Cost]) -> Cost:
    listed = list(costs)
    return Cost(sum(each.pending for each in listed), sum(each.gpu_hours for each in listed))
