"""What a workload's own past says about the tables and their forecasts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.checks import MIXTURES, pods_of, weights_of
from adapter.nodepool.learn.quantiles import quantile_of_each
from adapter.nodepool.learn.record import Record, record
from adapter.nodepool.learn.situation import Series
from adapter.nodepool.model.history import DemandPoint
from tests.examples import bounded

LEAD = 300.0
CHECK = 6
"""Minutes that a check looks ahead."""


def points(pods: Sequence[float]) -> tuple[DemandPoint, ...]:
    return tuple(DemandPoint(60.0 * minute, load) for minute, load in enumerate(pods))


def past(pods: Sequence[float], quantile: float = 0.8, share: float = 0.2) -> Record:
    return record(points(pods), LEAD, quantile, share)


def noisy(mean: float, minutes: int) -> list[float]:
    draw = random.Random(3)
    return [max(0.0, draw.gauss(mean, math.sqrt(mean))) for _ in range(minutes)]


def bursty(minutes: int) -> list[float]:
    """Almost nothing, and every half an hour some pods for a while."""
    draw = random.Random(3)
    return [
        draw.uniform(0.1, 0.3) + (draw.uniform(2, 3) if minute % 31 < 6 else 0)
        for minute in range(minutes)
    ]


def test_without_losses_both_tables_count_alike() -> None:
    assert weights_of([0.0] * len(MIXTURES)) == (0.5, 0.5)


@pytest.mark.parametrize("least", range(len(MIXTURES)))
def test_the_mixture_with_the_least_loss_counts_most(least: int) -> None:
    losses = [1e9 if index != least else 0.0 for index in range(len(MIXTURES))]
    assert weights_of(losses) == pytest.approx((1 - MIXTURES[least], MIXTURES[least]))


losses = st.lists(st.floats(0, 1e6), min_size=len(MIXTURES), max_size=len(MIXTURES))


@bounded(100)
@given(losses, st.floats(0, 1e6))
def test_weights_depend_on_differences_only(own: list[float], more: float) -> None:
    weights = weights_of(own)
    assert sum(weights) == pytest.approx(1)
    assert all(0 <= weight <= 1 for weight in weights)
    assert weights_of([loss + more for loss in own]) == pytest.approx(weights, abs=1e-6)


def test_a_workload_that_rises_from_almost_nothing_is_forecast_by_the_second_table() -> None:
    assert past(bursty(360)).weights[1] > 0.75


def test_a_workload_that_is_idle_for_hours_is_forecast_by_the_first_table() -> None:
    assert past(([0.0] * 100 + noisy(6, 20)) * 3).weights[0] > 0.75


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.95])
def test_weights_do_not_depend_on_what_is_asked(quantile: float) -> None:
    """Otherwise a higher quantile could give a lower forecast."""
    load = bursty(200)
    assert past(load, quantile, 0.7).weights == past(load).weights


def test_forecasts_are_checked_with_the_weights_of_their_time() -> None:
    """Three checks by hand: a forecast knows the checks before it, and no other."""
    load = bursty(27 + CHECK + 1)
    series = Series(points(load))
    lost = [0.0] * len(MIXTURES)
    held, cost, weights = 0, 0.0, []
    # The second, third and fourth multiple of 6.618 minutes.
    for minute in (13, 19, 26):
        first, second = quantile_of_each(series.situation(minute), LEAD, 0.8)
        weights.append(weights_of(lost))
        most = weights[-1][0] * first + weights[-1][1] * second
        highest = max(load[minute + 1 : minute + 1 + CHECK])
        held += highest <= pods_of(most)
        more = pods_of(highest) - max(pods_of(load[minute]), pods_of(most))
        cost += max(0.8 * more, -0.2 * more)
        for index, mixture in enumerate(MIXTURES):
            over = highest - first - mixture * (second - first)
            lost[index] += max(0.8 * over, -0.2 * over) / series.situation(minute).unit
    past_record = past(load)
    assert len({*weights, weights_of(lost)}) == 4
    assert (past_record.checks, past_record.held) == (3, held)
    assert past_record.cost == pytest.approx(cost)
    assert past_record.weights == pytest.approx(weights_of(lost))
