"""What the forecast knows: calibration, the worth of each input, and its first hours.

Every variant forecasts the demand as it is without waiting, and the headroom is what the forecast
exceeds the pods by. A variant without an input has tables of its own, fitted without it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from adapter.nodepool.learn.checks import pods_of
from adapter.nodepool.learn.forecast import PROMPT, keep_quantile, prompt_quantile
from adapter.nodepool.learn.quantiles import FittedTables, fitted_tables
from adapter.tools.replay.headroompolicies import NoHeadroom, ShareOfPods
from adapter.tools.replay.nodeworld import HeadroomPolicy, NodeMoment
from load.nodepool import BUDGETS
from load.table import Goal, Run, Table
from research import fit as fitting
from research.bound import KNOWN, loads, quantile_of_draws
from research.bound import QUANTILES as BOUND_QUANTILES
from research.forecasts import Minutes, minutes, quantiles
from research.hpa import TOLERANCES
from research.sweep import (
    CALIBRATED,
    OURS,
    QUANTILES,
    SHARE,
    Cost,
    Result,
    Setting,
    bounds,
    costs,
    pending_at,
    planned_policy,
)
from research.traces import DAYS, STEP, Part, Trace, folder, load_traces
from research.world import simulate

CALIBRATION: Final = Path(__file__).parents[1] / "load" / "calibration.png"
COLD_START: Final = Path(__file__).parents[1] / "load" / "coldstart.png"
NOMINAL: Final = (0.05, *(tenth / 10 for tenth in range(1, 10)), 0.95, 0.98)
NEAR: Final = 5
"""Points by which forecasts may hold more or less often than stated."""
INPUTS: Final = {
    "the newest minute": 1,
    "the mean of 3 minutes": 2,
    "the mean of 30 minutes": 3,
    "the mean of 60 minutes": 4,
    "the standard deviation": 5,
    "earlier days": 6,
}
"""What is left out -> its index in a situation; the level is the unit of all."""
WHOLE_FORECAST: Final = "nothing"
SLOPE: Final = "all means (the slope)"
ALONE: Final = ("the table of short traces", "the table of several days")
"""Which of the two tables is left out."""
BOUND: Final = "the bound by the largest rise"
_SLOPE: Final = (1, 2, 3, 4)
_COLD: Final = 180
"""Minutes of a start without history."""
_EVERY: Final = 240
"""Minutes between two starts."""
SLOT: Final = 15
"""Minutes that a point of the plot adds up."""
COLD_SHARE: Final = 0.2


class Variant(NamedTuple):
    """A forecast, with or without a part."""

    fitted: FittedTables
    bounded: bool = True
    """By the largest rise."""
    tolerance: float = TOLERANCES.up
    keeps: bool = True
    """Whether free nodes are kept."""
    prompts: bool = True
    """Whether pods without a node get headroom."""


class Targets:
    """A policy for the load that a forecast expects, minute by minute."""

    def __init__(
        self,
        begin: float,
        loads: Sequence[float],
        kept_loads: Sequence[float],
        tolerance: float,
        prompt: Sequence[Sequence[float]] = (),
    ) -> None:
        """Take the loads that nodes are ordered for, and those that free nodes are kept for.

        Args:
            begin: epoch seconds of the first minute.
            prompt: loads for which one pod of headroom is ordered beside one, two and more pods
                without a node, up to one less than :data:`PROMPT`; empty for never.
        """
        self._begin = begin
        self._loads = list(zip(loads, kept_loads, strict=True))
        self._prompt = list(zip(*prompt, strict=True))
        self._tolerance = tolerance

    def headroom(self, moment: NodeMoment) -> int:
        minute = int(moment.now - self._begin) // STEP
        present = moment.bound + moment.pending
        ordered, kept = (self._pods_beyond(load, present) for load in self._loads[minute])
        free = moment.nodes + moment.booting - present
        if self._prompt:
            ordered = max(ordered, self._prompted_pods(self._prompt[minute], moment))
        return max(ordered, min(kept, free))

    def _prompted_pods(self, loads: Sequence[float], moment: NodeMoment) -> int:
        present = moment.bound + moment.pending
        without = moment.pending - moment.booting
        if without <= 0:
            return 0
        if without > len(loads):
            return 1
        return min(1, self._pods_beyond(loads[without - 1], present))

    def _pods_beyond(self, load: float, present: int) -> int:
        return max(0, pods_of(load, present, self._tolerance) - present)


class Known(NamedTuple):
    """A trace with what the variants share."""

    minutes: Minutes
    results: tuple[Result, ...]
    """Of each part, with nothing swept."""


class ColdStart(NamedTuple):
    """What starts without history add up to, by slots of :data:`SLOT` minutes."""

    waits: Mapping[str, Sequence[float]]
    """HeadroomPolicy -> pending pod-seconds in percent of reactive's."""
    bills: Mapping[str, Sequence[float]]
    """HeadroomPolicy -> GPU-hours in percent of reactive's."""
    starts: int


def forecast(run: Run) -> Table:
    """Draw the calibration and the first hours, and leave out each input once.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    source = folder()
    traces = [trace for trace in load_traces(source) if not run.quick or len(trace.work) < 100]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        cases = list(pool.map(_prepare_case, traces))
        cold = _sum_cold_starts(
            list(pool.map(_simulate_start, *zip(*_starts(traces), strict=True), chunksize=4))
        )
        tables = _tables(source, quick=run.quick)
        variants = {name: Variant(without) for name, without in tables.items()}
        variants |= {
            BOUND: Variant(fitted_tables(), bounded=False),
            "the HPA's tolerance": Variant(fitted_tables(), tolerance=0.0),
            "keeping free nodes": Variant(fitted_tables(), keeps=False),
            "headroom for pods without a node": Variant(fitted_tables(), prompts=False),
        }
        jobs = [(name, case) for name in variants for case in cases]
        swept = pool.map(
            _sweep_variant,
            [case.minutes for _, case in jobs],
            [variants[name] for name, _ in jobs],
        )
        rows: dict[str, list[str]] = {name: [] for name in variants}
        for (name, case), by_quantile in zip(jobs, swept, strict=True):
            rows[name] += [
                _figures(part, {quantile: row[index] for quantile, row in by_quantile.items()})
                for index, part in enumerate(case.results)
            ]
        reachable = [
            text
            for case in cases
            if case.minutes.trace.name == DAYS
            for text in pool.map(_bound_text, [case] * len(KNOWN), KNOWN)
        ]
    parts = [(case.minutes, part) for case in cases for part in case.minutes.trace.parts]
    held = {part.name: holding_rates(trace_minutes, part) for trace_minutes, part in parts}
    loaded = [holding_rates(trace_minutes, part, loaded=True) for trace_minutes, part in parts]
    from research.plot import draw_calibration, draw_cold_start  # noqa: PLC0415 - slow import

    tuned = {part.name for _, part in parts if part.tuned_on}
    draw_calibration(NOMINAL, held, tuned, _place(run, CALIBRATION))
    draw_cold_start(cold, _place(run, COLD_START))
    return Table(
        ("without", *held),
        (
            *((name, *cells) for name, cells in rows.items()),
            (
                f"forecasts at {CALIBRATED} that held, %",
                *(f"{100 * rates[NOMINAL.index(CALIBRATED)]:.0f}" for rates in held.values()),
            ),
            (
                "the same while there was load, %",
                *(f"{100 * rates[NOMINAL.index(CALIBRATED)]:.0f}" for rates in loaded),
            ),
        ),
        tuple(_goals(held, tuned)),
        (
            (
                "Pending pod-seconds in percent of reactive's, at 105, 110, 120 and 130 % of its "
                "GPU-hours, with - as in the table of nodepool. Each row leaves out one part. "
                "Without an input, the tables are fitted without it. Headroom has no hold, and "
                "there is no share, so the first row differs from the table of nodepool."
            ),
            (
                "The last rows count whether the load within a boot time and a minute was at "
                f"most the forecast at {CALIBRATED}, not rounded. Whole pods hold more often. The "
                "very last leaves out the minutes after ten without any load: most often none "
                "follows, so there every forecast holds more often than stated."
            ),
            (
                f"Starts without history: {cold.starts}, one every {_EVERY // 60} hours of each "
                f"trace, each {_COLD // 60} hours long."
            ),
            *reachable,
        ),
    )


def _bound_text(case: Known, what: str) -> str:
    """Return what a forecast would reach on several days that knows how they were drawn."""
    trace = case.minutes.trace
    drawn = loads(folder(), what)
    swept = {}
    for quantile in BOUND_QUANTILES:
        ordered, kept, *prompt = (
            quantile_of_draws(drawn, probability)
            for probability in (quantile, keep_quantile(quantile), *_prompts(quantile))
        )
        policy = Targets(trace.begin, ordered, kept, TOLERANCES.up, prompt)
        swept[quantile] = costs(simulate(trace.work, trace.begin, policy), trace)
    figures = (
        f"{_figures(part, {quantile: row[index] for quantile, row in swept.items()})} "
        f"on {part.trace}"
        for index, part in enumerate(case.results)
    )
    return (
        f"A forecast that knew {what}, and when each request in flight ends, would have "
        f"{', '.join(figures)}."
    )


def _prompts(quantile: float) -> list[float]:
    """Return the quantiles of :class:`Targets` for pods without a node."""
    return [prompt_quantile(quantile, pending) for pending in range(1, PROMPT)]


def holding_rates(trace_minutes: Minutes, part: Part, *, loaded: bool = False) -> list[float]:
    """Return the fraction of a part's minutes in which each nominal quantile held.

    Args:
        loaded: leave out minutes after ten without load.
    """
    rows = trace_minutes.within(part)
    highest = trace_minutes.highest[rows]
    known = ~np.isnan(highest)
    if loaded:
        known &= trace_minutes.level[rows] > 0
    return [
        float(np.mean(highest[known] <= most[rows][known]))
        for most in quantiles(fitted_tables(), trace_minutes, NOMINAL)
    ]


def _prepare_case(trace: Trace) -> Known:
    reactive, oracle, peak = bounds(trace)
    return Known(
        minutes(trace),
        tuple(
            Result(part.name, part.tuned_on, reactive[index], oracle[index], peak[index], {})
            for index, part in enumerate(trace.parts)
        ),
    )


def _tables(source: Path, *, quick: bool) -> dict[str, FittedTables]:
    """Return the fitted tables, each of them alone, and both without each of the inputs."""
    every = fitted_tables()
    tables = {WHOLE_FORECAST: every}
    for name, table in zip(ALONE, every.tables, strict=True):
        tables[name] = msgspec.structs.replace(every, tables=(table,))
    if quick:
        return tables
    kinds = fitting.kinds(source)
    left_out = {name: (index,) for name, index in INPUTS.items()} | {SLOPE: _SLOPE}
    for name, without in left_out.items():
        text = fitting.encode(fitting.fit(kinds, without))
        tables[name] = msgspec.json.decode(text, type=FittedTables)
    return tables


def _sweep_variant(trace_minutes: Minutes, variant: Variant) -> dict[float, list[Cost]]:
    """Return the costs of each part by quantile."""
    first = [float(load) for load in trace_minutes.pods[: -len(trace_minutes.level)]]
    groups = {
        quantile: [
            quantile,
            keep_quantile(quantile) if variant.keeps else quantile,
            *(_prompts(quantile) if variant.prompts else ()),
        ]
        for quantile in QUANTILES
    }
    # All at once: what the checks teach is the same for each.
    rows = iter(
        quantiles(
            variant.fitted, trace_minutes, [*chain(*groups.values())], bounded=variant.bounded
        )
    )
    swept = {}
    for quantile, group in groups.items():
        ordered, kept, *prompt = ([*first, *map(float, most)] for most in islice(rows, len(group)))
        policy = Targets(trace_minutes.trace.begin, ordered, kept, variant.tolerance, prompt)
        swept[quantile] = costs(
            simulate(trace_minutes.trace.work, trace_minutes.trace.begin, policy),
            trace_minutes.trace,
        )
    return swept


def _figures(part: Result, costs_by_quantile: Mapping[float, Cost]) -> str:
    swept = {Setting(OURS, quantile): cost for quantile, cost in costs_by_quantile.items()}
    result = part._replace(swept=swept)
    reached = (pending_at(result, OURS, budget) for budget in BUDGETS)
    return " ".join("-" if percent is None else f"{percent:.0f}" for percent in reached)


def _goals(held_rates: Mapping[str, Sequence[float]], tuned: set[str]) -> list[Goal]:
    place = NOMINAL.index(CALIBRATED)
    goals = []
    for text, days in (("days", True), ("short", False)):
        percents = {
            name: 100 * rates[place]
            for name, rates in held_rates.items()
            if name.startswith(DAYS) is days and name not in tuned
        }
        if percents:
            far = {name: percent for name, percent in percents.items() if abs(percent - 80) > NEAR}
            goals.append(
                Goal(
                    f"{text}: forecasts at {CALIBRATED} hold within {NEAR} points",
                    ", ".join(f"{name} {percent:.0f} %" for name, percent in percents.items()),
                    not far,
                )
            )
    return goals


def _starts(traces: Sequence[Trace]) -> list[tuple[Trace, str]]:
    """Return pieces of the traces, each for each policy."""
    pieces = [
        Trace(trace.name, trace.work[first : first + _COLD], False, trace.begin + 60 * first)
        for trace in traces
        for first in range(0, max(1, len(trace.work) - _COLD), _EVERY)
    ]
    return [(piece, name) for piece in pieces for name in ("reactive", SHARE, OURS)]


def _simulate_start(piece: Trace, name: str) -> tuple[str, list[float], list[float]]:
    """Return the policy, and its waits and bills by slot."""
    policy: HeadroomPolicy
    if name == OURS:
        policy = planned_policy(CALIBRATED, piece)
    else:
        policy = ShareOfPods(COLD_SHARE) if name == SHARE else NoHeadroom()
    outcome = simulate(piece.work, piece.begin, policy)
    return name, _slots(outcome.waits), _slots(outcome.bills)


def _slots(values: Sequence[float]) -> list[float]:
    return [
        sum(values[SLOT * index : SLOT * (index + 1)]) for index in range(math.ceil(_COLD / SLOT))
    ]


def _sum_cold_starts(starts: Sequence[tuple[str, list[float], list[float]]]) -> ColdStart:
    waits: dict[str, list[float]] = {}
    bills: dict[str, list[float]] = {}
    for name, wait, bill in starts:
        for sums, values in ((waits, wait), (bills, bill)):
            before = sums.setdefault(name, [0.0] * len(values))
            sums[name] = [left + right for left, right in zip(before, values, strict=True)]
    return ColdStart(_percent(waits), _percent(bills), sum(name == OURS for name, *_ in starts))


def _percent(sums: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    base = sums["reactive"]
    return {
        name: [100 * value / of if of else math.nan for value, of in zip(values, base, strict=True)]
        for name, values in sums.items()
        if name != "reactive"
    }


def _place(run: Run, path: Path) -> Path:
    return run.folder / path.name if run.quick else path
