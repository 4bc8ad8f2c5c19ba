"""``python -m load.nodepoolfit``: fit the table of the forecast to recorded load, and write it.

For each quantile a linear regression minimizes the pinball loss of the highest load within the
lead time. The inputs are those that the controller computes (:mod:`adapter.nodepool.learn`). Only
the traces and days that nothing is judged on are used: see :data:`SCALES` and :data:`SHORT`.
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
from adapter.nodepool.learn.situation import LEVEL, Series, earlier_days
from adapter.nodepool.model.history import EMPTY, MINUTE, DemandPoint
from load.nodepoolforecasts import Array, features, loads
from load.nodepooltraces import DAYS, LORA, STEP, Part, Trace, folder, load_traces, many_days

SCALES: Final = (3, 5, 8, 10, 15, 20, 30)
"""How much busier than the record the services of several days are, each drawn on its own."""
SHORT: Final = ("genai-1", "genai-2", "azure-conv")
"""Traces of at most a day."""
_SHORT_WEIGHT: Final = 4.0
_SEED: Final = 17
KNOTS: Final = (0.0, 0.5, 1.5, 4.0, 10.0, 25.0)
QUANTILES: Final = (0.05, 0.2, 0.35, 0.5, 0.62, 0.72, 0.8, 0.86, 0.91, 0.945, 0.97, 0.985)
MINUTES: Final = (2, 4, 6, 11, 21, 41)
_EVERY: Final = 4
"""One of so many minutes is used, because neighbours are alike."""
_RIDGE: Final = 1.0
_STEPS: Final = 12
_NEAR: Final = 0.05
"""Distance below which the loss is quadratic."""


class Rows(NamedTuple):
    """The minutes of a trace: inputs by lead time, and the highest load."""

    inputs: dict[int, Array]
    changes: dict[int, Array]
    """From the level, in units."""
    weight: float


def main() -> None:
    """Fit, and write the file that the controller reads."""
    source = folder()
    path = Path(quantiles.__file__).with_name("quantiles.json")
    path.write_text(encode(fit(rows(source))))
    print(f"{path.name}: {path.stat().st_size} bytes")


def rows(source: Path) -> list[Rows]:
    """Return the minutes that are used to fit, on as many cores as there are."""
    jobs = [(many_days(source / LORA, scale, _SEED + scale), 1.0) for scale in SCALES]
    jobs += [(each, _SHORT_WEIGHT) for each in load_traces(source) if each.name in SHORT]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(_rows, *zip(*jobs, strict=True)))


def fit(found: Sequence[Rows], without: Sequence[int] = ()) -> list[list[list[float]]]:
    """Return the rows of the table, by minutes and quantile.

    Args:
        without: indexes in a situation of inputs that are left out.
    """
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        count = len(MINUTES)
        return list(pool.map(_fitted, [found] * count, MINUTES, [without] * count))


def encode(rows: Sequence[Sequence[Sequence[float]]]) -> str:
    """Return the table as JSON, one row a line."""
    text = ",\n".join(
        "[\n" + ",\n".join(json.dumps([round(each, 3) for each in row]) for row in group) + "\n]"
        for group in rows
    )
    head = {"knots": KNOTS, "quantiles": QUANTILES, "minutes": MINUTES}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*lines, f'"rows": [\n{text}\n]']) + "\n}\n"


def _rows(trace: Trace, weight: float) -> Rows:
    part = _part(trace)
    trace = trace._replace(work=trace.work[: part.end])
    pods = loads(trace)
    points = [DemandPoint(trace.begin + STEP * index, each) for index, each in enumerate(pods)]
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
            minutes: features(KNOTS, *(np.array(part) for part in zip(*each, strict=True)))
            for minutes, each in inputs.items()
        },
        {minutes: np.array(each) for minutes, each in changes.items()},
        weight,
    )


def _part(trace: Trace) -> Part:
    """Return the minutes of a trace that may be used."""
    (part,) = (each for each in trace.parts if each.tuned_on or not trace.name.startswith(DAYS))
    return part


def _fitted(traces: Sequence[Rows], minutes: int, without: Sequence[int]) -> list[list[float]]:
    inputs = np.concatenate([each.inputs[minutes] for each in traces])
    for index in without:
        # The ridge then keeps the coefficients at 0.
        inputs[:, index * len(KNOTS) : (index + 1) * len(KNOTS)] = 0
    changes = np.concatenate([each.changes[minutes] for each in traces])
    weights = np.concatenate([np.full(len(each.changes[minutes]), each.weight) for each in traces])
    row = _solved(inputs, changes, weights)
    found = []
    for quantile in QUANTILES:
        for _ in range(_STEPS):
            left = changes - inputs @ row
            slope = np.where(left > 0, quantile, 1 - quantile)
            row = _solved(inputs, changes, weights * slope / np.maximum(np.abs(left), _NEAR))
        found.append([float(each) for each in row])
    return found


def _solved(inputs: Array, changes: Array, weights: Array) -> Array:
    weighted = inputs * weights[:, None]
    ridge = _RIDGE * np.eye(inputs.shape[1])
    solved = np.linalg.solve(weighted.T @ inputs + ridge, weighted.T @ changes)
    return np.asarray(solved, dtype=np.float64)


if __name__ == "__main__":
    main()
