"""Every policy on every trace, and what each costs beside the reactive autoscaler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from adapter.nodepool.plan.limits import Limits
from adapter.tools.replay.headroompolicies import (
    FixedHeadroom,
    NoHeadroom,
    PlannedHeadroom,
    ShareOfPods,
)
from adapter.tools.replay.nodeworld import HeadroomPolicy
from research.hpa import TOLERANCES
from research.policies import Oracle
from research.traces import STEP, Part, Trace
from research.world import TICK, Outcome, ceiling, simulate

REACTIVE: Final = "reactive"
PEAK: Final = "always-on peak"
SIZES: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30)
SHARES: Final = (
    *(0.02, 0.05, 0.07, 0.1, 0.12, 0.15, 0.17, 0.2, 0.23, 0.26, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8),
)
QUANTILES: Final = (0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 0.88, 0.94, 0.98)
CALIBRATED: Final = 0.8
"""The quantile at which forecasts are checked."""
NO_CAP: Final = 1000
"""Caps are for budgets; here each policy may spend what it likes, and is judged by it."""


class Cost(NamedTuple):
    """What a policy came to."""

    pending: float
    """Pod-seconds."""
    gpu_hours: float
    covered: float | None = None
    """Fraction of the minutes after which the HPA asked, within a boot time, for no more than its
    pods and the headroom; None for a part that is shorter."""

    def percent_of(self, reactive: Cost) -> Cost:
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
    policy: Callable[[float, Trace], HeadroomPolicy]


def planned_policy(quantile: float, trace: Trace) -> HeadroomPolicy:
    """Return the controller's plan at a quantile, without caps. It knows the boot time."""
    limits = Limits(
        quantile=quantile,
        max_pods=NO_CAP,
        max_gpus_per_pool=NO_CAP,
        boot_seconds=trace.physics.boot,
    )
    return PlannedHeadroom(limits, ceiling(trace.work), trace.begin, TOLERANCES.up)


STATIC: Final = "static"
SHARE: Final = "share"
OURS: Final = "ours"
FAMILIES: Final[Mapping[str, _Family]] = {
    STATIC: _Family(SIZES, lambda size: f"static {size:.0f}", lambda v, _: FixedHeadroom(round(v))),
    SHARE: _Family(SHARES, lambda share: f"static {share:.0%}", lambda v, _: ShareOfPods(v)),
    OURS: _Family(QUANTILES, lambda quantile: f"ours, quantile {quantile:g}", planned_policy),
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
    """Simulate all, on as many cores as there are; the same traces, the same results.

    Each part of a trace has a result of its own.
    """
    jobs = [
        (trace, Setting(family, value))
        for trace in sorted(traces, key=lambda trace: -len(trace.work))
        for family in sorted(families, key=lambda family: family != OURS)
        for value in FAMILIES[family].values
    ]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        limits = pool.map(bounds, traces)
        swept = list(zip(jobs, pool.map(_run, *zip(*jobs, strict=True), chunksize=1), strict=True))
        return [
            Result(
                part.name,
                part.tuned_on,
                reactive[index],
                oracle[index],
                peak[index],
                {setting: costs_of[index] for (of, setting), costs_of in swept if of is trace},
            )
            for trace, (reactive, oracle, peak) in zip(traces, limits, strict=True)
            for index, part in enumerate(trace.parts)
        ]


def pending_at(result: Result, family: str, gpu_percent: float) -> float | None:
    """Pending pod-seconds that a family reaches for so many GPU-hours, both in percent.

    Between two settings the line between them; None where no setting is so dear, or
    none so dear is better than a cheaper one.
    """
    for low, high in pairwise(_best_settings(result, family)):
        if low.gpu_hours <= gpu_percent <= high.gpu_hours:
            share = (gpu_percent - low.gpu_hours) / (high.gpu_hours - low.gpu_hours)
            return low.pending + share * (high.pending - low.pending)
    return None


def _best_settings(result: Result, family: str) -> list[Cost]:
    """Reactive and the family's settings in percent, cheapest first, without any for which a
    cheaper one lets fewer pods wait."""
    points = [Cost(100.0, 100.0)]
    points += (
        cost.percent_of(result.reactive)
        for setting, cost in result.swept.items()
        if setting.family == family
    )
    best: list[Cost] = []
    for point in sorted(points, key=lambda cost: (cost.gpu_hours, cost.pending)):
        if not best or point.pending < best[-1].pending:
            best.append(point)
    return best


def _run(trace: Trace, setting: Setting) -> list[Cost]:
    """One cost for each part."""
    policy = FAMILIES[setting.family].policy(setting.value, trace)
    return costs(simulate(trace.work, trace.begin, policy, trace.physics), trace)


def bounds(trace: Trace) -> tuple[list[Cost], list[Cost], list[Cost]]:
    """Return the costs of reactive, oracle and always-on peak, by part."""

    def simulate_policy(policy: HeadroomPolicy) -> Outcome:
        return simulate(trace.work, trace.begin, policy, trace.physics)

    reactive, ample = (
        simulate_policy(NoHeadroom()),
        simulate_policy(FixedHeadroom(ceiling(trace.work))),
    )
    oracle = Oracle(ample.replicas, trace.begin, trace.physics.boot)
    peak = max(ample.replicas) * STEP / 3600
    return (
        costs(reactive, trace),
        costs(simulate_policy(oracle), trace),
        [Cost(0.0, peak * (part.end - part.first)) for part in trace.parts],
    )


def costs(outcome: Outcome, trace: Trace) -> list[Cost]:
    """Return one cost for each part."""
    return [_cost(outcome, part, trace.physics.boot) for part in trace.parts]


def _cost(outcome: Outcome, part: Part, boot: float) -> Cost:
    minutes = slice(part.first, part.end)
    return Cost(
        sum(outcome.waits[minutes]),
        sum(outcome.bills[minutes]) / 3600,
        _covered_share(outcome, range(part.first, part.end), boot),
    )


def _covered_share(outcome: Outcome, minutes: range, boot: float) -> float | None:
    ticks, ahead = STEP // TICK, int(boot // TICK) + STEP // TICK
    desired = outcome.replicas
    covered = [
        max(desired[minute * ticks : minute * ticks + ahead])
        <= desired[minute * ticks] + outcome.headroom[minute]
        for minute in minutes
        if minute * ticks + ahead <= len(desired)
    ]
    return fmean(covered) if covered else None
