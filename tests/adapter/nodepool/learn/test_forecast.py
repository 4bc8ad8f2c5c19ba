"""Forecasts from the history of a workload."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.forecast import forecast
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint

DAY = 86400.0
MIDNIGHT = 20_000 * DAY
LEAD = 300.0


def past(
    pods: Sequence[int], begin: float = MIDNIGHT, history: DemandHistory = EMPTY
) -> DemandHistory:
    """One observation a minute."""
    for minute, each in enumerate(pods):
        history = learn(history, DemandPoint(begin + minute * 60, each))
    return history


def end(history: DemandHistory) -> float:
    return history.recent[-1].time


def test_a_workload_without_history_has_no_forecast() -> None:
    assert forecast(EMPTY, 3, LEAD, 0.9, MIDNIGHT)[:2] == (3, "need")


def test_growth_needs_a_quarter_of_an_hour_of_history() -> None:
    bursts = [1, 1, 1, 1, 6] * 4
    young, old = past(bursts[:19]), past(bursts)
    assert forecast(young, 1, LEAD, 0.9, end(young))[:2] == (1, "need")
    assert forecast(old, 1, LEAD, 0.9, end(old))[:2] == (7, "growth")


def test_a_boot_time_of_seconds_counts_as_a_minute() -> None:
    history = past([1, 6] * 20)
    assert forecast(history, 1, 20.0, 0.9, end(history)).code == "growth"


def test_a_calm_workload_gets_no_headroom() -> None:
    history = past([4] * 120)
    assert forecast(history, 4, LEAD, 0.99, end(history))[:2] == (4, "need")


def test_a_higher_quantile_never_gives_a_lower_forecast() -> None:
    history = past([1, 2, 1, 5, 3, 1, 1, 8, 2, 1] * 12)
    pods = [forecast(history, 1, LEAD, step / 20, end(history)).pods for step in range(21)]
    assert pods == sorted(pods)
    assert pods[0] < pods[-1]


def test_rises_after_troughs_do_not_raise_a_peak() -> None:
    """Growth is relative to the level, not to the minute: a burst gets nothing on top."""
    history = past([1, 1, 1, 1, 6] * 20)
    assert forecast(history, 6, LEAD, 0.9, end(history)).pods == 6


def test_growth_does_not_span_a_gap_in_the_history() -> None:
    """The rise from 1 to 9 was not observed, so its duration is unknown."""
    history = past([9] * 40, MIDNIGHT + 7200, past([1] * 40))
    assert forecast(history, 9, LEAD, 1.0, end(history))[:2] == (9, "need")


def test_an_old_history_gives_no_forecast() -> None:
    history = past([1, 1, 1, 1, 6] * 20)
    assert forecast(history, 1, LEAD, 0.9, end(history) + 3600)[:2] == (1, "need")


def test_a_steady_rise_gives_a_trend_without_a_long_history() -> None:
    """10 pods in 5 minutes: a mean of 34.5 in the last 5, and 7.5 more minutes of the rise."""
    history = past(range(0, 40, 2))
    said = forecast(history, 38, LEAD, 0.8, end(history))
    assert said[:2] == (34 + 15, "trend")


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([*range(0, 30, 2), *[30] * 5, *[29] * 5], id="that has ended"),
        pytest.param([*range(0, 28, 2)], id="of two rises only"),
        pytest.param([5] * 10 + [3] * 5 + [9] * 10, id="after a fall"),
    ],
)
def test_an_unsteady_rise_gives_no_trend(pods: list[int]) -> None:
    history = past(pods)
    assert forecast(history, pods[-1], LEAD, 0.8, end(history)).code != "trend"


def ramps(days: int, at: int = 9 * 60, low: int = 2, high: int = 10) -> DemandHistory:
    """Days with ``low`` demand until minute ``at``, ``high`` for an hour, and ``low`` again."""
    history = EMPTY
    for day in range(days):
        pods = [high if at <= minute < at + 60 else low for minute in range(1440)]
        history = past(pods, MIDNIGHT + day * DAY, history)
    return history


def test_a_rise_at_this_time_of_most_days_is_forecast() -> None:
    today = MIDNIGHT + 3 * DAY
    history = past([2] * (8 * 60 + 56), today, ramps(3))
    assert forecast(history, 2, LEAD, 0.8, today + 535 * 60)[:2] == (10, "time_of_day")


@pytest.mark.parametrize(
    ("days", "minute"),
    [
        pytest.param(1, 535, id="one day is not enough"),
        pytest.param(3, 480, id="an hour too early"),
        pytest.param(3, 700, id="when it is over"),
    ],
)
def test_the_time_of_day_gives_no_forecast(days: int, minute: int) -> None:
    today = MIDNIGHT + days * DAY
    history = past([2] * (minute + 1), today, ramps(days))
    assert forecast(history, 2, LEAD, 0.8, today + minute * 60).code == "need"


def test_a_single_unusual_day_has_no_effect() -> None:
    history = past([2] * 1440 * 3, MIDNIGHT + DAY, ramps(1))
    today = MIDNIGHT + 4 * DAY
    history = past([2] * 536, today, history)
    assert forecast(history, 2, LEAD, 0.99, today + 535 * 60).code == "need"


pasts = st.lists(st.integers(0, 50), max_size=200)


@given(pasts, st.integers(0, 100), st.floats(0, 1), st.floats(1, 7200), st.floats(0, DAY))
def test_the_forecast_is_never_below_the_current_need(
    pods: list[int], need: int, quantile: float, lead: float, later: float
) -> None:
    said = forecast(past(pods), need, lead, quantile, MIDNIGHT + later)
    assert said.pods >= need
    assert said.code in {"need", "growth", "trend", "time_of_day"}


@given(pasts)
def test_the_forecast_never_exceeds_an_observed_rise(pods: list[int]) -> None:
    history = past(pods)
    now = end(history) if history.recent else MIDNIGHT
    assert forecast(history, 0, LEAD, 1.0, now).pods <= 2 * max(pods, default=0)
