"""Pending pods and GPU-hours on recorded load: the nodepool controller beside other policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from load.nodepoolsweep import (
    OURS,
    PEAK,
    SHARE,
    STATIC,
    Cost,
    Result,
    gpu_hours_for,
    pending_at,
    sweep,
    total,
)
from load.nodepooltraces import SERVICES, WHOLE, folder, load_traces
from load.nodepoolworld import Physics
from load.table import Goal, Run, Table

PICTURE: Final = Path(__file__).with_name("nodepool.png")
DEAR: Final = 110
"""Percent of the reactive GPU-hours that the goals allow."""
HALF: Final = 50
"""Percent of the reactive pending pod-seconds that the goals ask for."""
_FAMILIES: Final = ((STATIC, "static size"), (SHARE, "static share"), (OURS, "ours"))


def nodepool(run: Run) -> Table:
    """Simulate every policy on every recorded trace.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    traces = load_traces(folder())
    if run.quick:
        traces = tuple(each for each in traces if len(each.work) < 100)
    results = sweep(traces)
    parts = [each for each in results if each.trace != WHOLE]
    held_out = [each for each in parts if not each.tuned_on]
    shown = [*results, total(held_out, "held out"), total(parts, "all")]
    from load.nodepoolplot import draw  # noqa: PLC0415 - Matplotlib's import takes half a second

    draw(shown[:-2] + shown[-1:], run.folder / PICTURE.name if run.quick else PICTURE)
    return Table(
        ("pending / GPU-hours", *(each.trace for each in shown)),
        tuple(_rows(shown)),
        tuple(_goals(shown)),
        tuple(_notes()),
    )


def _rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    settings = list(results[0].swept)
    return [
        ("reactive, pod-seconds", *(f"{each.reactive.pending:,.0f}" for each in results)),
        ("reactive, GPU-hours", *(f"{each.reactive.gpu_hours:,.0f}" for each in results)),
        *(
            _row(setting.label, [each.swept[setting] for each in results], results)
            for setting in settings
        ),
        _row("oracle", [each.oracle for each in results], results),
        _row(PEAK, [each.peak for each in results], results),
        *(
            (
                f"pending at {DEAR} % GPU-hours, {label}",
                *_figures(results, pending_at, family, DEAR),
            )
            for family, label in _FAMILIES
        ),
        *(
            (
                f"GPU-hours for {HALF} % pending, {label}",
                *_figures(results, gpu_hours_for, family, HALF),
            )
            for family, label in _FAMILIES
        ),
    ]


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
    halved, beaten = [], []
    for each in results:
        ours = pending_at(each, OURS, DEAR)
        fixed = [pending_at(each, family, DEAR) for family in (STATIC, SHARE)]
        best = min((value for value in fixed if value is not None), default=100.0)
        if ours is not None and ours <= HALF:
            halved.append(each.trace)
        if ours is not None and ours < best:
            beaten.append(each.trace)
    return [
        Goal(text, f"on {len(met)} of {len(results)}: {', '.join(met) or 'none'}", met == every)
        for every in [[each.trace for each in results]]
        for text, met in (
            (f"half of reactive's pending pod-seconds at {DEAR} % of its GPU-hours", halved),
            (f"fewer than the better static headroom at {DEAR} %", beaten),
        )
    ]


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
            f"{WHOLE}-2 only; *held out* sums the others. The other {WHOLE} services are from the "
            "same cluster and day, so they are not independent of those two. The Azure traces are "
            "independent."
        ),
    ]
