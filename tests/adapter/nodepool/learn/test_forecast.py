"""What a workload's own past says of the next minutes."""

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


def test_nothing_is_made_up_without_a_past() -> None:
    assert forecast(EMPTY, 3, LEAD, 0.9, MIDNIGHT)[:2] == (3, "need")


def test_a_quarter_of_an_hour_of_rises_is_believed_and_less_is_not() -> None:
    bursts = [1, 1, 1, 1, 6] * 4
    young, old = past(bursts[:19]), past(bursts)
    assert forecast(young, 1, LEAD, 0.9, end(young))[:2] == (1, "need")
    assert forecast(old, 1, LEAD, 0.9, end(old))[:2] == (7, "growth")


def test_a_boot_of_seconds_is_prepared_for_by_the_minute() -> None:
    history = past([1, 6] * 20)
    assert forecast(history, 1, 20.0, 0.9, end(history)).code == "growth"


def test_a_calm_workload_gets_no_headroom() -> None:
    history = past([4] * 120)
    assert forecast(history, 4, LEAD, 0.99, end(history))[:2] == (4, "need")


def test_a_higher_quantile_never_asks_for_less() -> None:
    history = past([1, 2, 1, 5, 3, 1, 1, 8, 2, 1] * 12)
    pods = [forecast(history, 1, LEAD, step / 20, end(history)).pods for step in range(21)]
    assert pods == sorted(pods)
    assert pods[0] < pods[-1]


def test_a_peak_is_not_raised_by_what_followed_troughs() -> None:
    """Growth is counted from the level, not from the minute: nothing comes on top of a burst."""
    history = past([1, 1, 1, 1, 6] * 20)
    assert forecast(history, 6, LEAD, 0.9, end(history)).pods == 6


def test_growth_is_not_carried_over_a_gap_of_the_past() -> None:
    """The rise from 1 to 9 happened while nobody looked: within how long is unknown."""
    history = past([9] * 40, MIDNIGHT + 7200, past([1] * 40))
    assert forecast(history, 9, LEAD, 1.0, end(history))[:2] == (9, "need")


def test_a_past_that_ended_long_ago_says_nothing_of_now() -> None:
    history = past([1, 1, 1, 1, 6] * 20)
    assert forecast(history, 1, LEAD, 0.9, end(history) + 3600)[:2] == (1, "need")


def test_a_steady_climb_goes_on_before_there_is_a_past_to_learn_from() -> None:
    """10 pods in 5 minutes: a mean of 34.5 in the last 5, and 7.5 minutes of climbing ahead."""
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
def test_no_trend_is_seen_in_a_climb(pods: list[int]) -> None:
    history = past(pods)
    assert forecast(history, pods[-1], LEAD, 0.8, end(history)).code != "trend"


def ramps(days: int, at: int = 9 * 60, low: int = 2, high: int = 10) -> DemandHistory:
    """Days that stand at ``low`` until ``at`` minutes, at ``high`` for an hour, and fall back."""
    history = EMPTY
    for day in range(days):
        pods = [high if at <= minute < at + 60 else low for minute in range(1440)]
        history = past(pods, MIDNIGHT + day * DAY, history)
    return history


def test_what_most_days_do_about_now_is_prepared_for() -> None:
    today = MIDNIGHT + 3 * DAY
    history = past([2] * (8 * 60 + 56), today, ramps(3))
    assert forecast(history, 2, LEAD, 0.8, today + 535 * 60)[:2] == (10, "time_of_day")


@pytest.mark.parametrize(
    ("days", "minute"),
    [
        pytest.param(1, 535, id="one day is no habit"),
        pytest.param(3, 480, id="an hour too early"),
        pytest.param(3, 700, id="when it is over"),
    ],
)
def test_the_time_of_day_is_silent(days: int, minute: int) -> None:
    today = MIDNIGHT + days * DAY
    history = past([2] * (minute + 1), today, ramps(days))
    assert forecast(history, 2, LEAD, 0.8, today + minute * 60).code == "need"


def test_one_odd_day_decides_nothing() -> None:
    history = past([2] * 1440 * 3, MIDNIGHT + DAY, ramps(1))
    today = MIDNIGHT + 4 * DAY
    history = past([2] * 536, today, history)
    assert forecast(history, 2, LEAD, 0.99, today + 535 * 60).code == "need"


pasts = st.lists(st.integers(0, 50), max_size=200)


@given(pasts, st.integers(0, 100), st.floats(0, 1), st.floats(1, 7200), st.floats(0, DAY))
def test_the_need_of_now_is_always_met(
    pods: list[int], need: int, quantile: float, lead: float, later: float
) -> None:
    said = forecast(past(pods), need, lead, quantile, MIDNIGHT + later)
    assert said.pods >= need
    assert said.code in {"need", "growth", "trend", "time_of_day"}


@given(pasts)
def test_no_more_is_expected_than_a_rise_that_was_seen(pods: list[int]) -> None:
    history = past(pods)
    now = end(history) if history.recent else MIDNIGHT
    assert forecast(history, 0, LEAD, 1.0, now).pods <= 2 * max(pods, default=0)
