"""How far a forecast of ``lora`` can get that knows how the trace was drawn.

It knows when each request in flight ends, and something about new requests: those from which the
requests of the current quarter of an hour are drawn; what all requests until now say about them
(:mod:`research.rates`); or the rate of the last minutes. It draws the minutes ahead from them,
so nothing is fitted to highest loads. No controller can know as much.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from research.forecasts import AHEAD, Array
from research.rates import Prior, posterior
from research.traces import (
    DAY,
    FIT_DAYS,
    LORA,
    QUARTER,
    STEP,
    TARGET,
    Requests,
    many_days,
    requests,
)

DRAWS: Final = 400
QUANTILES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99)
_SEED: Final = 1
_MINUTES: Final = QUARTER // STEP

_RECENT: Final = 40
"""Recorded requests before a quarter whose durations say what its own may be."""


class _Ahead(NamedTuple):
    """What the minutes ahead are drawn from, one row for each draw."""

    rates: Array
    """Requests a minute, one column for each minute ahead."""
    pools: Array
    """By half: durations in seconds of which requests have one each. The second half is for
    minutes of the next quarter."""
    sizes: Array
    """By half: durations in the pool."""


_Source = Callable[[int, np.random.Generator], _Ahead]
"""The minute, and a source of chance -> what the minutes ahead are drawn from."""


def loads(source: Path, what: str) -> Array:
    """Return draws of the highest load ahead of each minute in pods, smallest first.

    Args:
        source: the folder of the traces.
        what: of :data:`KNOWN`.

    Returns:
        One row for each minute of the trace, :data:`DRAWS` columns.
    """
    count = len(many_days(source / LORA).work)
    drawn = requests(source / LORA)
    in_flight = _work_in_flight(drawn.spans, count)
    source_of = KNOWN[what](drawn)
    draw = np.random.default_rng(_SEED)
    highest = np.zeros((count, DRAWS))
    for minute in range(count):
        work = in_flight[minute] + _new_work(
            draw, source_of(minute, draw), _is_next_quarter(minute)
        )
        highest[minute] = np.sort(work.max(axis=1)) / TARGET
    return highest


def quantile_of_draws(draws: Array, probability: float) -> list[float]:
    """Return one quantile of the draws of each minute."""
    return [float(load) for load in draws[:, min(DRAWS - 1, int(probability * DRAWS))]]


def _is_next_quarter(minute: int) -> Array:
    """Return which minutes ahead are of the next quarter."""
    ahead = np.arange(1, AHEAD + 1) + minute
    return np.asarray(ahead // _MINUTES > minute // _MINUTES)


def _true_source(drawn: Requests) -> _Source:
    """The current quarter, which counts as that of all minutes ahead."""

    def source(minute: int, _: np.random.Generator) -> _Ahead:
        seconds = drawn.seconds.get(minute // _MINUTES, ())
        rates = np.full((DRAWS, AHEAD), drawn.busier * len(seconds) / _MINUTES)
        return _same_pool(rates, np.array(seconds or (0.0,)))

    return source


def _inferred_source(drawn: Requests) -> _Source:
    """All earlier quarters, and the requests of the current one until now."""
    quarters = -(-drawn.minutes // _MINUTES)
    recorded = [drawn.seconds.get(quarter, ()) for quarter in range(quarters)]
    counts = [len(seconds) for seconds in recorded]
    first = int(DAY * FIT_DAYS.start - drawn.begin % DAY) // QUARTER
    prior = Prior(counts, first)
    before = [prior.likelihoods(quarter) for quarter in range(quarters)]
    ends = np.cumsum(counts)
    every = np.array([duration for seconds in recorded for duration in seconds])
    begun: dict[int, list[float]] = defaultdict(list)
    for start, end in drawn.spans:
        begun[int(start // STEP)].append(end - start)

    def source(minute: int, draw: np.random.Generator) -> _Ahead:
        quarter, passed = minute // _MINUTES, minute % _MINUTES + 1
        current = np.array(
            [duration for back in range(passed) for duration in begun.get(minute - back, ())]
        )
        past = ends[quarter] - counts[quarter]
        recent = every[max(0, past - _RECENT) : max(1, past)]
        if passed == _MINUTES:
            now = np.full(DRAWS, float(counts[quarter]))
            latest = every[max(0, ends[quarter] - _RECENT) : max(1, ends[quarter])]
        else:
            chances = posterior(before[quarter], len(current), drawn.busier * passed / _MINUTES)
            now = draw.choice(len(chances), DRAWS, p=chances).astype(np.float64)
            latest = np.concatenate([current[-_RECENT:], recent])[:_RECENT]
        after = prior.next(draw, quarter, now)
        rates = (
            np.where(_is_next_quarter(minute), after[:, None], now[:, None])
            * drawn.busier
            / _MINUTES
        )
        sizes = np.maximum(1, np.array([now, after])).astype(int)
        wide = int(sizes.max())
        pools = np.array([draw.choice(recent, (DRAWS, wide)), draw.choice(latest, (DRAWS, wide))])
        if len(current):
            # So much of a quarter's requests have been drawn at least once.
            share = 1 - np.exp(-len(current) / sizes[0])
            is_current = draw.random((DRAWS, wide)) < share[:, None]
            pools[0] = np.where(is_current, draw.choice(current, (DRAWS, wide)), pools[0])
        return _Ahead(rates, pools, sizes)

    return source


def _measured_source(minutes: int) -> Callable[[Requests], _Source]:
    """The mean rate of the last minutes, and the durations of all requests."""

    def source_of(drawn: Requests) -> _Source:
        arrivals = Counter(int(start // STEP) for start, _ in drawn.spans)
        every = np.array([end - start for start, end in drawn.spans])

        def source(minute: int, _: np.random.Generator) -> _Ahead:
            last = range(max(0, minute - minutes + 1), minute + 1)
            mean = sum(arrivals[earlier] for earlier in last) / len(last)
            return _same_pool(np.full((DRAWS, AHEAD), mean), every)

        return source

    return source_of


def _same_pool(rates: Array, seconds: Array) -> _Ahead:
    """Return one pool for all draws and minutes."""
    pools = np.broadcast_to(seconds, (2, DRAWS, len(seconds)))
    return _Ahead(rates, pools, np.full((2, DRAWS), len(seconds)))


KNOWN: Final[Mapping[str, Callable[[Requests], _Source]]] = {
    "the requests of the current quarter of an hour": _true_source,
    "all requests until then, and how rates follow one another": _inferred_source,
    "the requests of the last 3 minutes": _measured_source(3),
}
"""What is known about new requests."""


def _work_in_flight(spans: Sequence[tuple[float, float]], minutes: int) -> Array:
    """Return the work ahead of each minute that requests of the past cause."""
    work = np.zeros((minutes, AHEAD))
    for start, end in spans:
        first, last = int(start // STEP), int(end // STEP)
        for minute in range(first + 1, last + 1):
            busy = 100 * (min(end, (minute + 1) * STEP) - minute * STEP) / STEP
            for now in range(max(first, minute - AHEAD), min(minute, minutes)):
                work[now, minute - now - 1] += busy
    return work


def _new_work(draw: np.random.Generator, ahead: _Ahead, later: Array) -> Array:
    """Return the work of new requests in the minutes ahead, one row a draw."""
    counts = draw.poisson(ahead.rates).ravel()
    cells = np.repeat(np.arange(DRAWS * AHEAD), counts)
    rows, minutes = np.divmod(cells, AHEAD)
    half = later[minutes].astype(int)
    places = (draw.random(len(cells)) * ahead.sizes[half, rows]).astype(int)
    starts = STEP * (minutes + draw.random(len(cells)))
    ends = starts + ahead.pools[half, rows, places]
    work = np.zeros((DRAWS, AHEAD))
    for minute in range(AHEAD):
        inside = np.minimum(ends, (minute + 1) * STEP) - np.maximum(starts, minute * STEP)
        busy = 100 * np.maximum(0.0, inside) / STEP
        work[:, minute] = np.bincount(rows, busy, DRAWS)
    return work
