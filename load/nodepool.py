"""Pending pods and GPU-hours on recorded load: the nodepool controller beside other policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from load.nodepoolsweep import (
    CALIBRATED,
    OURS,
    PEAK,
    SHARE,
    STATIC,
    Cost,
    Result,
    Setting,
    gpu_hours_for,
    pending_at,
    sweep,
    total,
)
from load.nodepooltraces import BUSIER, DAYS, FIT_DAYS, JUDGE_DAYS, SERVICES, WHOLE, folder
from load.nodepooltraces import load_traces as read_traces
from load.nodepoolworld import Physics
from load.table import Goal, Run, Table

PICTURE: Final = Path(__file__).with_name("nodepool.png")
BUDGETS: Final = (105, 110, 120, 130)
"""Percent of the reactive GPU-hours at which policies are compared."""
DEAR: Final = 110
"""Percent of the reactive GPU-hours at which the waiting is to be halved."""
HALF: Final = 50
"""Percent of the reactive pending pod-seconds that the goals ask for."""
NEAR: Final = 5
"""Points by which a short trace may be above the best static share."""
_FAMILIES: Final = (
    (STATIC, "static size"),
    (SHARE, "static share"),
    (OURS, "ours"),
)
_FORECASTS: Final = (OURS,)


def nodepool(run: Run) -> Table:
    """Simulate every policy on every recorded trace.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    traces = read_traces(folder())
    if run.quick:
        traces = tuple(each for each in traces if len(each.work) < 100)
    results = sweep(traces)
    parts = [each for each in results if each.trace != WHOLE and not _of_days(each)]
    held_out = [each for each in parts if not each.tuned_on]
    shown = [*results, total(held_out, "held out"), total(parts, "all")]
    from load.nodepoolplot import draw  # noqa: PLC0415 - Matplotlib's import takes half a second

    draw(shown[:-2] + shown[-1:], run.folder / PICTURE.name if run.quick else PICTURE)
    return Table(
        ("pending / GPU-hours", *(each.trace for each in shown)),
        tuple(_rows(shown)),
        tuple(_goals(results)),
        tuple(_notes()),
    )


def _of_days(result: Result) -> bool:
    """Whether it is of the trace of more than a day."""
    return result.trace.startswith(DAYS)


def _rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    return [
        ("reactive, pod-seconds", *(f"{each.reactive.pending:,.0f}" for each in results)),
        ("reactive, GPU-hours", *(f"{each.reactive.gpu_hours:,.0f}" for each in results)),
        *(
            (
                f"pending at {budget} % GPU-hours, {label}",
                *_figures(results, pending_at, family, budget),
            )
            for budget in BUDGETS
            for family, label in _FAMILIES
        ),
        *(
            (
                f"GPU-hours for {HALF} % pending, {label}",
                *_figures(results, gpu_hours_for, family, HALF),
            )
            for family, label in _FAMILIES
        ),
        *(
            _row(setting.label, [each.swept[setting] for each in results], results)
            for setting in (Setting(family, CALIBRATED) for family in _FORECASTS)
        ),
        *(
            (f"minutes within {Setting(family, CALIBRATED).label}, %", *_covered(results, family))
            for family in _FORECASTS
        ),
        _row("oracle", [each.oracle for each in results], results),
        _row(PEAK, [each.peak for each in results], results),
    ]


def _covered(results: Sequence[Result], family: str) -> list[str]:
    found = [each.swept[Setting(family, CALIBRATED)].covered for each in results]
    return ["-" if each is None else f"{each:.0%}".rstrip("%") for each in found]


def _row(label: str, costs: Sequence[Cost], results: Sequence[Result]) -> tuple[str, ...]:
    shares = [cost.beside(each.reactive) for cost, each in zip(costs, results, strict=True)]
    return (label, *(f"{share.pending:.0f} / {share.gpu_hours:.0f}" for share in shares))


def _figures(
    results: Sequence[Result],
    figure: Callable[[Result, str, float], float | None],
    family: str,
    at: float,
) -> list[str]:
    found = [figure(each, family, at) for each in results]
    return ["-" if each is None else f"{each:.0f}" for each in found]


def _goals(results: Sequence[Result]) -> list[Goal]:
    """What is judged on ours. Days on which anything was chosen decide nothing."""
    judged = [each for each in results if not each.tuned_on]
    days = [each for each in judged if _of_days(each)]
    short = [each for each in judged if not _of_days(each)]
    places = ", ".join(str(budget) for budget in BUDGETS)
    return [
        _goal(f"days: fewer pending than both static families at {places} %", days, _beats),
        _goal(f"days: half of reactive's pending pod-seconds at {DEAR} %", days, _halves),
        _goal(
            f"short: at {places} % at most {NEAR} points above the best static share",
            short,
            _near_share,
        ),
    ]


def _goal(text: str, results: Sequence[Result], met: Callable[[Result], bool]) -> Goal:
    found = [each.trace for each in results if met(each)]
    measured = f"on {len(found)} of {len(results)}: {', '.join(found) or 'none'}"
    return Goal(text, measured, len(found) == len(results) > 0)


def _beats(result: Result) -> bool:
    return all(
        _pending(result, OURS, budget)
        < min(_pending(result, STATIC, budget), _pending(result, SHARE, budget))
        for budget in BUDGETS
    )


def _halves(result: Result) -> bool:
    return _pending(result, OURS, DEAR) <= HALF


def _near_share(result: Result) -> bool:
    return all(
        _pending(result, OURS, budget) <= _pending(result, SHARE, budget) + NEAR
        for budget in BUDGETS
    )


def _pending(result: Result, family: str, budget: float) -> float:
    """Pending pod-seconds in percent; those of reactive if no setting is so dear."""
    found = pending_at(result, family, budget)
    return 100.0 if found is None else found


def _notes() -> list[str]:
    physics = Physics()
    return [
        (
            "Cells are pending pod-seconds / GPU-hours in percent of the reactive autoscaler's. "
            "GPU-hours count from the order of a node to its removal. A node has one GPU and boots "
            f"in {physics.boot:.0f} s. The autoscaler considers a pending GPU pod after "
            f"{physics.gpu_wait:.0f} s, or at once if headroom does not fit either. It removes a "
            f"node that has been unneeded for {physics.unneeded:.0f} s."
        ),
        (
            f"{WHOLE}-1 to {WHOLE}-{SERVICES} are the pods of {WHOLE}, divided into services. "
            f"{WHOLE} itself is not part of any sum. The forecast was tuned on {WHOLE}-1 and "
            f"{WHOLE}-2 only; *held out* sums the other traces of at most a day, *all* sums those "
            f"two too. The other {WHOLE} services are from the same cluster and day, so they are "
            "not independent of those two. The Azure traces are independent."
        ),
        (
            f"{DAYS} is one service over eleven days. Its request rate is {BUSIER} times the "
            "recorded mean of each quarter of an hour. Arrivals are drawn within it, with a fixed "
            f"seed. Every policy runs from the first day on. *{DAYS} fit* is its days "
            f"{FIT_DAYS.start + 1} to {FIT_DAYS.stop}, for choosing. *{DAYS} judge* is its days "
            f"{JUDGE_DAYS.start + 1} to {JUDGE_DAYS.stop}, which decide. Today's forecast was "
            "tuned on neither."
        ),
        (
            "The sweeps have fine steps; between two settings the table has the line between "
            "them, and - where no setting is so dear. A minute is within the forecast if its pods "
            "and headroom suffice for what the HPA asks for within a boot time and a minute. "
            f"Headroom is whole GPUs and never negative, so a perfect forecast is within in more "
            f"than {CALIBRATED:.0%} of the minutes. Goals are judged on what was not tuned on."
        ),
    ]
