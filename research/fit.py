"""``python -m research.fit``: fit the tables of the forecast to recorded load, and write them.

For each quantile a linear regression minimizes the pinball loss of the highest load within the
lead time. The inputs are those that the controller computes (:mod:`adapter.nodepool.learn`). Only
the traces and days that nothing is judged on are used: see :data:`SCALES` and :data:`SHORT`. Each
has a table of its own, because one table for both fits the short ones worse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from adapter.nodepool.learn import quantiles
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.quantiles import QuantileTable
from adapter.nodepool.learn.situation import LEVEL, Series, earlier_days
from adapter.nodepool.model.history import EMPTY, MINUTE, DemandPoint
from research.forecasts import Array, features, loads
from research.traces import DAYS, LORA, STEP, Part, Trace, folder, load_traces, many_days

SCALES: Final = (3, 5, 8, 10, 15, 20, 30)
"""How much busier than the record the services of several days are, each drawn on its own."""
SHORT: Final = ("genai-1", "genai-2")
"""Traces of a day."""
_SEED: Final = 17
KNOTS: Final = ((0.0, 0.5, 1.5, 4.0, 10.0, 25.0), (0.0, 2.0, 5.0))
"""Of the table of several days, and of that of :data:`SHORT`: a day has fewer minutes and less
load, and the coefficients are constant beyond the last knot."""
QUANTILES: Final = (0.05, 0.2, 0.35, 0.5, 0.62, 0.72, 0.8, 0.86, 0.91, 0.945, 0.97, 0.985)
MINUTES: Final = (2, 4, 6, 11, 21, 41)
_EVERY: Final = 4
"""One of so many minutes is used, because neighbours are alike."""
_NEAR_SHORTER: Final = 0.0003
"""How strongly coefficients stay near those of the next shorter lead time, or near 0 for the
shortest: per minute that is used, and per minute ahead, because longer periods overlap more."""
_NEAR_LOWER: Final = 0.001
"""How strongly the slopes stay near those of the next lower quantile, so that quantiles seldom
cross. This and :data:`_NEAR_SHORTER` were chosen on ``genai-1`` with a table of ``genai-2``, and
the other way round."""
_STEPS: Final = 12
_NEAR: Final = 0.05
"""Distance below which the loss is quadratic."""


class Rows(NamedTuple):
    """The minutes of a trace: inputs by lead time, and the highest load."""

    inputs: dict[int, Array]
    changes: dict[int, Array]
    """From the level, in units."""


class Kind(NamedTuple):
    """The traces that one table is fitted to."""

    knots: tuple[float, ...]
    traces: list[Rows]


def main() -> None:
    """Fit, and write the file that the controller reads."""
    source = folder()
    path = Path(quantiles.__file__).with_name("quantiles.json")
    path.write_text(encode(fit(kinds(source))))
    print(f"{path.name}: {path.stat().st_size} bytes")


def kinds(source: Path) -> list[Kind]:
    """Return the minutes that are used to fit, on as many cores as there are."""
    days = [many_days(source / LORA, scale, _SEED + scale) for scale in SCALES]
    short = [trace for trace in load_traces(source) if trace.name in SHORT]
    jobs = [(trace, KNOTS[0]) for trace in days] + [(trace, KNOTS[1]) for trace in short]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        rows = list(pool.map(_rows, *zip(*jobs, strict=True)))
    groups = (rows[: len(days)], rows[len(days) :])
    return [Kind(knots, group) for knots, group in zip(KNOTS, groups, strict=True)]


def fit(all_kinds: Sequence[Kind], without: Sequence[int] = ()) -> list[QuantileTable]:
    """Return a table for each kind.

    Args:
        without: indexes in a situation of inputs that are left out.
    """
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(_fit_kind, all_kinds, [without] * len(all_kinds)))


def encode(tables: Sequence[QuantileTable]) -> str:
    """Return the tables as JSON, one row a line."""
    head = {"quantiles": QUANTILES, "minutes": MINUTES}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    text = ",\n".join(_encode_table(table) for table in tables)
    return "{\n" + ",\n".join([*lines, f'"tables": [\n{text}\n]']) + "\n}\n"


def _encode_table(table: QuantileTable) -> str:
    groups = (
        "[\n" + ",\n".join(json.dumps([round(value, 3) for value in row]) for row in group) + "\n]"
        for group in table.rows
    )
    text = ",\n".join(groups)
    return f'{{\n"knots": {json.dumps(table.knots)},\n"rows": [\n{text}\n]\n}}'


def _rows(trace: Trace, knots: Sequence[float]) -> Rows:
    part = _part(trace)
    trace = trace._replace(work=trace.work[: part.end])
    pods = loads(trace)
    points = [DemandPoint(trace.begin + STEP * index, load) for index, load in enumerate(pods)]
    series = Series(points)
    history = EMPTY
    inputs: dict[int, list[tuple[tuple[float, ...], float]]] = {minutes: [] for minutes in MINUTES}
    changes: dict[int, list[float]] = {minutes: [] for minutes in MINUTES}
    for index, point in enumerate(points):
        history = learn(history, point)
        if index < max(part.first, LEVEL) or index % _EVERY:
            continue
        situation = series.situation(index)
        level, unit, _ = situation
        for minutes in MINUTES:
            if index + minutes >= len(points):
                continue
            lead = float((minutes - 1) * MINUTE)
            usual = earlier_days(history.days, lead, point.time).usual
            inputs[minutes].append((situation.after(usual).inputs, level))
            highest = max(pods[index + 1 : index + 1 + minutes])
            changes[minutes].append((highest - level) / unit)
    return Rows(
        {
            minutes: features(knots, *(np.array(part) for part in zip(*pairs, strict=True)))
            for minutes, pairs in inputs.items()
        },
        {minutes: np.array(rises) for minutes, rises in changes.items()},
    )


def _part(trace: Trace) -> Part:
    """Return the minutes of a trace that may be used."""
    (part,) = (part for part in trace.parts if part.tuned_on or not trace.name.startswith(DAYS))
    return part


def _fit_kind(kind: Kind, without: Sequence[int]) -> QuantileTable:
    shorter: list[Array] = []
    groups = []
    for minutes in MINUTES:
        inputs = np.concatenate([rows.inputs[minutes] for rows in kind.traces])
        for index in without:
            # Its coefficients then stay at 0.
            inputs[:, index * len(kind.knots) : (index + 1) * len(kind.knots)] = 0
        changes = np.concatenate([rows.changes[minutes] for rows in kind.traces])
        shorter = _quantile_rows(inputs, changes, minutes, shorter, len(kind.knots))
        groups.append(tuple(tuple(float(value) for value in row) for row in shorter))
    return QuantileTable(kind.knots, tuple(groups))


def _quantile_rows(
    inputs: Array, changes: Array, minutes: int, shorter: Sequence[Array], knots: int
) -> list[Array]:
    """Return the coefficients of each quantile.

    Args:
        shorter: those of the next shorter lead time; empty for the shortest.
    """
    count = inputs.shape[1]
    overlap = len(changes) * minutes
    slopes = np.ones(count)
    slopes[:knots] = 0  # The first input is always 1.
    rows: list[Array] = []
    for index, quantile in enumerate(QUANTILES):
        ridge = np.full(count, overlap * _NEAR_SHORTER)
        near = ridge * (shorter[index] if shorter else 0)
        if rows:
            ridge = ridge + overlap * _NEAR_LOWER * slopes
            near = near + overlap * _NEAR_LOWER * slopes * rows[-1]
        row = _solve_least_squares(inputs, changes, np.ones(len(changes)), ridge, near)
        for _ in range(_STEPS):
            left = changes - inputs @ row
            slope = np.where(left > 0, quantile, 1 - quantile)
            weights = slope / np.maximum(np.abs(left), _NEAR)
            row = _solve_least_squares(inputs, changes, weights, ridge, near)
        rows.append(row)
    return rows


def _solve_least_squares(
    inputs: Array, changes: Array, weights: Array, ridge: Array, near: Array
) -> Array:
    """Return the coefficients of least squares, each near a given one.

    Args:
        ridge: how strongly.
        near: the given ones times ``ridge``.
    """
    weighted = inputs * weights[:, None]
    solved = np.linalg.solve(weighted.T @ inputs + np.diag(ridge), weighted.T @ changes + near)
    return np.asarray(solved, dtype=np.float64)


if __name__ == "__main__":
    main()
