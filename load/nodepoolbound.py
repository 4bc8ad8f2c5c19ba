"""How far a forecast of ``lora`` can get that knows how the trace was drawn.

It knows when each request in flight ends, and a rate of new requests: that of the current quarter
of an hour, from which they were drawn, or the mean of the last minutes. It draws the minutes ahead
from them, so nothing is fitted. No controller can know as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from load.nodepoolforecasts import AHEAD, Array
from load.nodepooltraces import LORA, QUARTER, STEP, TARGET, many_days, requests

DRAWS: Final = 300
KNOWN: Final = {
    "the rate of the current quarter of an hour": 0,
    "the requests of the last 3 minutes": 3,
}
"""What is known -> minutes over which the rate is measured; 0 for the true rate."""
QUANTILES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99)
_SEED: Final = 1


def loads(source: Path, measured: int) -> Mapping[float, Sequence[float]]:
    """Return the forecast of each minute by quantile, in pods.

    Args:
        source: the folder of the traces.
        measured: minutes of :data:`KNOWN`.
    """
    trace = many_days(source / LORA)
    drawn = requests(source / LORA)
    count = len(trace.work)
    known = _in_flight(drawn.spans, count)
    arrivals = Counter(int(start // STEP) for start, _ in drawn.spans)
    every = np.array([end - start for start, end in drawn.spans])
    draw = np.random.default_rng(_SEED)
    found = np.zeros((count, DRAWS))
    for minute in range(count):
        quarter = minute * STEP // QUARTER
        seconds = np.array(drawn.seconds.get(quarter, ())) if not measured else every
        if measured:
            last = range(max(0, minute - measured + 1), minute + 1)
            rate = sum(arrivals[each] for each in last) / len(last)
        else:
            rate = drawn.busier * len(seconds) * STEP / QUARTER
        work = known[minute] + _new(draw, rate, seconds)
        found[minute] = np.sort(work.max(axis=1)) / TARGET
    return {each: found[:, int(each * DRAWS)].tolist() for each in QUANTILES}


def _in_flight(spans: Sequence[tuple[float, float]], minutes: int) -> Array:
    """Return the work ahead of each minute that requests of the past cause."""
    known = np.zeros((minutes, AHEAD))
    for start, end in spans:
        first, last = int(start // STEP), int(end // STEP)
        for minute in range(first + 1, last + 1):
            busy = 100 * (min(end, (minute + 1) * STEP) - minute * STEP) / STEP
            for seen in range(max(first, minute - AHEAD), min(minute, minutes)):
                known[seen, minute - seen - 1] += busy
    return known


def _new(draw: np.random.Generator, rate: float, seconds: Array) -> Array:
    """Return the work of new requests in the minutes ahead, one row a draw."""
    work = np.zeros((DRAWS, AHEAD))
    if not rate:
        return work
    counts = draw.poisson(rate * AHEAD, DRAWS)
    rows = np.repeat(np.arange(DRAWS), counts)
    starts = draw.uniform(0, AHEAD * STEP, len(rows))
    ends = starts + draw.choice(seconds, len(rows))
    for minute in range(AHEAD):
        inside = np.minimum(ends, (minute + 1) * STEP) - np.maximum(starts, minute * STEP)
        busy = 100 * np.maximum(0.0, inside) / STEP
        work[:, minute] = np.bincount(rows, busy, DRAWS)
    return work
