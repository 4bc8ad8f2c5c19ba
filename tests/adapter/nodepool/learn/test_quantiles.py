"""The fitted tables of the forecast."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.checks import pods_of
from adapter.nodepool.learn.quantiles import Distribution, fitted_tables, quantile_of_each
from adapter.nodepool.learn.record import record
from adapter.nodepool.learn.situation import Series, Situation, earlier_days
from adapter.nodepool.model.history import DAY, RECENT, SLOTS, DemandDay, DemandPoint
from tests.examples import bounded

LEVELS = (0.0, 0.5, 2.0, 7.0, 30.0, 1000.0)
EVEN = (0.5, 0.5)
"""Weights before anything is known."""
TABLES = range(len(fitted_tables().tables))


@pytest.mark.parametrize("index", TABLES)
def test_a_table_has_a_row_for_each_lead_time_and_quantile(index: int) -> None:
    every, table = fitted_tables(), fitted_tables().tables[index]
    inputs = len(Series([DemandPoint(0.0, 1)]).situation(0).inputs)
    assert len(table.rows) == len(every.minutes)
    for group in table.rows:
        assert len(group) == len(every.quantiles)
        assert {len(row) for row in group} == {inputs * len(table.knots)}
        assert all(math.isfinite(number) for row in group for number in row)
    for rising in (table.knots, every.quantiles, every.minutes):
        assert all(low < high for low, high in pairwise(rising))


def flat(level: float) -> Situation:
    return Situation(level, math.sqrt(level + 1), (1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0))


def only(index: int) -> list[float]:
    return [float(index == table) for table in TABLES]


@pytest.mark.parametrize("index", TABLES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_longer_lead_time_never_lowers_a_high_quantile(level: float, index: int) -> None:
    leads = [60.0 * lead for lead in (1, 3, 5, 10, 20, 40)]
    pods = [Distribution(flat(level), lead, only(index)).quantile(0.9) for lead in leads]
    # Without load, they cross by less than a hundredth of a pod.
    assert all(later > earlier - 0.01 for earlier, later in pairwise(pods))
    assert pods[0] < pods[-1]


@pytest.mark.parametrize("index", TABLES)
@pytest.mark.parametrize("level", LEVELS)
def test_lead_times_between_two_rows_lie_between_them(level: float, index: int) -> None:
    short, between, long = (
        Distribution(flat(level), lead, only(index)).quantile(0.8) for lead in (300, 420, 600)
    )
    # Without load, quantiles cross by less than a hundredth of a pod and are put in order.
    low, high = sorted((short, long))
    assert low - 0.01 <= between <= high + 0.01


def test_a_lead_time_beyond_the_table_counts_as_its_longest() -> None:
    longest = 60.0 * (fitted_tables().minutes[-1] - 1)
    assert [Distribution(flat(8), lead, EVEN).quantile(0.9) for lead in (longest, 1e6)] == [
        Distribution(flat(8), longest, EVEN).quantile(0.9)
    ] * 2


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.3, 0.8, 0.97, 0.99, 1.0])
@pytest.mark.parametrize("level", LEVELS)
def test_a_quantile_of_a_distribution_is_the_weighted_mean_of_the_tables(
    level: float, probability: float
) -> None:
    by_table = quantile_of_each(flat(level), 300.0, probability)
    alone = [
        Distribution(flat(level), 300.0, only(index)).quantile(probability) for index in TABLES
    ]
    assert by_table == pytest.approx(alone, abs=1e-6)
    mixed = Distribution(flat(level), 300.0, (0.25, 0.75)).quantile(probability)
    assert mixed == pytest.approx(0.25 * alone[0] + 0.75 * alone[1])


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.25, 0.25)])
def test_each_table_has_a_weight(weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        Distribution(flat(4), 300.0, weights)


@bounded(200)
@given(
    st.floats(0, 1e5),
    st.lists(st.floats(-30, 30), min_size=5, max_size=5),
    st.floats(1, 1e5),
    st.none() | st.floats(0, 1e6),
)
def test_quantiles_are_finite_and_rise(
    level: float, inputs: list[float], lead: float, usual: float | None
) -> None:
    situation = Situation(level, math.sqrt(level + 1), (1.0, *inputs, 0.0))
    distribution = Distribution(situation.after(usual), lead, EVEN)
    pods = [distribution.quantile(step / 100) for step in range(1, 101)]
    assert all(math.isfinite(quantile) and quantile >= 0 for quantile in pods)
    # Except for rounding: near 0, pods are the difference of two numbers that are almost equal.
    assert all(high >= low or math.isclose(high, low, abs_tol=1e-9) for low, high in pairwise(pods))


def test_more_demand_on_earlier_days_raises_a_high_quantile() -> None:
    pods = [
        Distribution(flat(4).after(usual), 300.0, only(0)).quantile(0.95)
        for usual in (None, 8.0, 16.0, 1e6)
    ]
    assert pods == sorted(set(pods))
    # A day of another size counts as one of eight units more.
    assert Distribution(flat(4).after(1e9), 300.0, only(0)).quantile(0.95) == pods[-1]


def test_later_days_count_more_for_the_usual_demand() -> None:
    now = 20_000.0 * DAY + 12 * 3600
    days = [DemandDay(19_998, (2.0,) * SLOTS), DemandDay(19_999, (6.0,) * SLOTS)]
    assert earlier_days(days, 300.0, now).usual == pytest.approx((6 + 0.6 * 2) / 1.6)
    assert earlier_days(days[:1], 300.0, now).usual == 2
    assert earlier_days((), 300.0, now).usual is None


def test_a_longer_history_takes_no_more_checks_than_their_bound() -> None:
    """The work of a round does not grow with the age of a workload."""
    draw = random.Random(5)
    points = tuple(DemandPoint(60.0 * minute, draw.randint(0, 9)) for minute in range(RECENT))
    assert record(points, 300.0, 0.8, 0.2).checks == 52
    assert record(points, 60.0, 0.8, 0.2).checks == 60
    assert record(points[:30], 300.0, 0.8, 0.2).checks == 2


def test_the_rounds_of_a_minute_share_one_record() -> None:
    points = tuple(DemandPoint(60.0 * minute, minute % 7) for minute in range(100))
    first = record(points, 300.0, 0.8, 0.2)
    assert record(tuple(points), 300.0, 0.8, 0.2) is first
    assert record.cache_info().maxsize == 1024


@pytest.mark.parametrize(
    ("most", "pods"), [(0.0, 0), (0.01, 0), (0.03, 1), (2.0, 2), (2.01, 2), (2.5, 3), (2.99, 3)]
)
def test_a_hundredth_of_a_pod_is_not_rounded_up(most: float, pods: int) -> None:
    assert pods_of(most) == pods
