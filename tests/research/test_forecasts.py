"""The forecasts that the benchmarks compute for whole traces are those of the controller."""

from __future__ import annotations

import math
import random

import pytest

from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.quantiles import fitted_tables
from adapter.nodepool.learn.record import record
from adapter.nodepool.learn.situation import earlier_days
from adapter.nodepool.model.history import EMPTY, RECENT, DemandHistory, DemandPoint
from research.ablation import holding_rates
from research.forecasts import AHEAD, FIRST, LEAD, Minutes, minutes, quantiles
from research.traces import STEP, Trace

MINUTES = 24 * 60 + 150
DRAW = random.Random(4)
WORK = tuple(
    # The controller keeps hundredths of a pod.
    70
    * round(
        DRAW.uniform(0.5, 1.5) * (2 + minute // 7 % 3 + (minute % 50 == 0) * 4 + minute / 50), 2
    )
    for minute in range(MINUTES)
)
ASKED = (0.01, 0.5, 0.8, 0.99)


@pytest.fixture(scope="module")
def own() -> Minutes:
    """A noisy trace of a day and two and a half hours that rises, falls and has bursts."""
    return minutes(Trace("a", WORK, False, 0.0))


def points(own: Minutes) -> list[DemandPoint]:
    return [DemandPoint(float(STEP * at), float(pods)) for at, pods in enumerate(own.pods)]


def learned(own: Minutes, minute: int) -> DemandHistory:
    history = EMPTY
    for point in points(own)[: minute + 1]:
        history = learn(history, point)
    return history


@pytest.mark.parametrize(
    "minute", [FIRST, 15, 16, 17, 40, 100, RECENT - 1, RECENT + 20, MINUTES - 1]
)
def test_quantiles_are_those_of_the_controller(own: Minutes, minute: int) -> None:
    history = learned(own, minute)
    days = earlier_days(history.days, LEAD, float(STEP * minute))
    quantile = record(history.recent, LEAD, 0.8, 0.2).quantiles(days.usual, LEAD)
    most = quantiles(fitted_tables(), own, ASKED)[:, minute - FIRST]
    # Later, the oldest checks of the controller know less than an hour.
    near = 1e-6 if minute < RECENT else 0.02
    assert list(most) == pytest.approx([quantile(share) for share in ASKED], rel=near)


@pytest.mark.parametrize("minute", [FIRST, 60, 90, 149])
def test_the_bound_is_that_of_the_controller(own: Minutes, minute: int) -> None:
    row = minute - FIRST
    seen = record(tuple(points(own)[: minute + 1]), LEAD, 0.8, 0.2)
    bound = math.inf if seen.largest is None else own.level[row] + own.unit[row] * seen.largest
    assert math.isfinite(bound) is (minute >= 90)
    assert own.most[row] == pytest.approx(bound)


def test_the_last_minutes_of_a_trace_have_no_demand_ahead(own: Minutes) -> None:
    assert [math.isnan(demand) for demand in own.highest[-AHEAD - 1 :]] == [False] + [True] * AHEAD


def test_surer_forecasts_hold_more_often(own: Minutes) -> None:
    held = holding_rates(own, own.trace.parts[0])
    assert held == sorted(held)
    assert 0 <= held[0] < held[-1] <= 1


def test_hours_without_load_do_not_count_as_load() -> None:
    """Half of the minutes are empty, and of none there is more than a forecast."""
    busy, idle = WORK[:400], (0.0,) * 400
    both = minutes(Trace("a", idle + busy, False, 0.0))
    part = both.trace.parts[0]
    held, loaded = holding_rates(both, part), holding_rates(both, part, loaded=True)
    assert held[0] > loaded[0] + 0.1
    alone = minutes(Trace("a", busy, False, 0.0))
    assert holding_rates(alone, alone.trace.parts[0], loaded=True) == holding_rates(
        alone, alone.trace.parts[0]
    )
