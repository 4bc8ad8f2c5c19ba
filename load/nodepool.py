"""Pending pods and GPU-hours on recorded load: the nodepool controller beside other policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from adapter.tools.replay.nodeworld import NodePhysics
from load.table import Goal, Run, Table
from research.sweep import (
    CALIBRATED,
    OURS,
    PEAK,
    SHARE,
    STATIC,
    Cost,
    Result,
    Setting,
    pending_at,
    sweep,
)
from research.traces import BUSIER, DAYS, FIT_DAYS, JUDGE_DAYS, SERVICES, WHOLE, folder
from research.traces import load_traces as read_traces

PICTURE: Final = Path(__file__).with_name("nodepool.png")
BUDGETS: Final = (105, 110, 120, 130)
"""Percent of the reactive GPU-hours at which policies are compared."""
DEAR: Final = 110
"""Percent of the reactive GPU-hours at which the waiting is to be halved."""
HALF: Final = 50
"""Percent of the reactive pending pod-seconds that the goals ask for."""
FAST: Final = NodePhysics(boot=60.0)
"""Nodes that boot in a minute."""
ON_FAST: Final = ("genai-qps", "azure-code")
"""Traces that are simulated with them too: those of which the forecast's checks say most."""
NEAR: Final = 5
"""Points by which a short trace may be above the best static share."""
_FAMILIES: Final = (
    (STATIC, "static size"),
    (SHARE, "static share"),
    (OURS, "ours"),
)


def nodepool(run: Run) -> Table:
    """Simulate every policy on every recorded trace.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    traces = read_traces(folder())
    traces += tuple(
        trace._replace(name=f"{trace.name}, boot {FAST.boot:.0f} s", physics=FAST)
        for trace in traces
        if trace.name in ON_FAST
    )
    if run.quick:
        traces = tuple(trace for trace in traces if len(trace.work) < 100)
    results = sweep(traces)
    from research.plot import draw  # noqa: PLC0415 - Matplotlib's import takes half a second

    draw(results, run.folder / PICTURE.name if run.quick else PICTURE)
    return Table(
        (
            "trace",
            "used to fit",
            *(label for _, label in _FAMILIES),
            f"ours at {CALIBRATED}",
            "oracle",
            PEAK,
        ),
        tuple(_row(result) for result in results),
        tuple(_goals(results)),
        tuple(_notes()),
    )


def _is_of_days(result: Result) -> bool:
    """Whether it is of the trace of more than a day."""
    return result.trace.startswith(DAYS)


def _row(result: Result) -> tuple[str, ...]:
    default = result.swept[Setting(OURS, CALIBRATED)]
    return (
        result.trace,
        "yes" if result.tuned_on else "no",
        *(_figures(result, family) for family, _ in _FAMILIES),
        *(_cost_text(cost, result) for cost in (default, result.oracle, result.peak)),
    )


def _cost_text(cost: Cost, result: Result) -> str:
    share = cost.percent_of(result.reactive)
    return f"{share.pending:.0f} / {share.gpu_hours:.0f}"


def _figures(result: Result, family: str) -> str:
    reached = (pending_at(result, family, budget) for budget in BUDGETS)
    return " ".join("-" if percent is None else f"{percent:.0f}" for percent in reached)


def _goals(results: Sequence[Result]) -> list[Goal]:
    """What is judged on ours. Days on which anything was chosen decide nothing."""
    judged = [result for result in results if not result.tuned_on]
    days = [result for result in judged if _is_of_days(result)]
    short = [result for result in judged if not _is_of_days(result)]
    places = ", ".join(str(budget) for budget in BUDGETS)
    return [
        _goal(f"days: fewer pending than both static families at {places} %", days, _beats),
        _goal(f"days: half of reactive's pending pod-seconds at {DEAR} %", days, _halves),
        _goal(
            f"short: at {places} % at most {NEAR} points above the best static share",
            short,
            _is_near_share,
        ),
    ]


def _goal(text: str, results: Sequence[Result], met: Callable[[Result], bool]) -> Goal:
    names = [result.trace for result in results if met(result)]
    measured = f"on {len(names)} of {len(results)}: {', '.join(names) or 'none'}"
    return Goal(text, measured, len(names) == len(results) > 0)


def _beats(result: Result) -> bool:
    return all(
        _pending_percent(result, OURS, budget)
        < min(_pending_percent(result, STATIC, budget), _pending_percent(result, SHARE, budget))
        for budget in BUDGETS
    )


def _halves(result: Result) -> bool:
    return _pending_percent(result, OURS, DEAR) <= HALF


def _is_near_share(result: Result) -> bool:
    return all(
        _pending_percent(result, OURS, budget) <= _pending_percent(result, SHARE, budget) + NEAR
        for budget in BUDGETS
    )


def _pending_percent(result: Result, family: str, budget: float) -> float:
    """Pending pod-seconds in percent; those of reactive if no setting is so dear."""
    percent = pending_at(result, family, budget)
    return 100.0 if percent is None else percent


def _notes() -> list[str]:
    physics = NodePhysics()
    return [
        (
            "Columns of a family have pending pod-seconds in percent of reactive's, at 105, 110, "
            "120 and 130 % of its GPU-hours: the line between two settings, and - where no setting "
            "is so dear, or none so dear is better than a cheaper one. "
            "The other columns have pending pod-seconds / GPU-hours. GPU-hours count "
            f"from the order of a node to its removal. A node boots in {physics.boot:.0f} s, "
            "if the row names no other time. The "
            f"autoscaler considers a pending GPU pod after {physics.gpu_wait:.0f} s, or at once if "
            "headroom does not fit either. It removes a node that has been unneeded for "
            f"{physics.unneeded:.0f} s."
        ),
        (
            f"{WHOLE}-1 to {WHOLE}-{SERVICES} are the pods of {WHOLE}, divided into services. "
            f"{DAYS} is one service over eleven days. Its request rate is {BUSIER} times the "
            "recorded mean of each quarter of an hour. Arrivals are drawn within it, with a fixed "
            f"seed. Every policy runs from the first day on. *{DAYS} fit* is its days "
            f"{FIT_DAYS.start + 1} to {FIT_DAYS.stop}, for choosing. *{DAYS} judge* is its days "
            f"{JUDGE_DAYS.start + 1} to {JUDGE_DAYS.stop}, which decide. Goals are judged on what "
            "was not used to fit."
        ),
    ]
