"""Forecasts from the history of a workload."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.forecast import (
    Forecast,
    ForecastRequest,
    forecast,
    keep_quantile,
    share_at,
)
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.nodepool.model.reason import CODES
from tests.examples import bounded

DAY = 86400.0
MIDNIGHT = 20_000 * DAY
LEAD = 300.0


quantiles = st.floats(0.001, 0.999)


def past(
    pods: Sequence[float], begin: float = MIDNIGHT, history: DemandHistory = EMPTY
) -> DemandHistory:
    """One observation a minute."""
    for minute, load in enumerate(pods):
        history = learn(history, DemandPoint(begin + minute * 60, load))
    return history


def end(history: DemandHistory) -> float:
    return history.recent[-1].time


def said(
    history: DemandHistory,
    need: int,
    quantile: float = 0.8,
    *,
    lead: float = LEAD,
    share: float = 0.2,
    queue: bool = False,
    later: float = 0.0,
) -> Forecast:
    now = (end(history) if history.recent else MIDNIGHT) + later
    return forecast(history, need, ForecastRequest(lead, quantile, share, queue), now)


def noisy(mean: float, minutes: int, seed: int = 1) -> list[int]:
    """Demand that varies as independent requests do."""
    draw = random.Random(seed)
    return [max(0, round(draw.gauss(mean, math.sqrt(mean)))) for _ in range(minutes)]


@pytest.mark.parametrize("minutes", [0, 1, 2])
def test_less_than_three_minutes_give_a_share_and_say_so(minutes: int) -> None:
    foreseen = said(past(noisy(10, minutes)), 10)
    assert foreseen[:2] == (12, "share")
    assert "20% more than the 10 pods of its metrics" in foreseen.text


def test_a_share_applies_until_five_forecasts_have_been_checked() -> None:
    """The fifth has looked 6 minutes ahead after 43 to 50 minutes."""
    load = noisy(50, 60)
    forecasts = [said(past(load[:minutes]), 1, share=2) for minutes in range(30, 60)]
    texts = [foreseen.text for foreseen in forecasts]
    why = "a share of 200%, until 5 past forecasts have been checked;"
    first = next(number for number, text in enumerate(texts) if why not in text)
    assert 43 <= first + 30 <= 50
    assert all(why in text for text in texts[:first])
    assert not any("have been checked" in text for text in texts[first:])
    assert {foreseen.code for foreseen in forecasts[:first]} == {"share"}
    assert {foreseen.code for foreseen in forecasts[first:]} == {"unsure"}
    assert re.match(r"load for at most \d+\.\d pods is assumed within 5 min \(", texts[0])
    assert said(past(load[:36]), 1, share=0).code == "unsure"


@pytest.mark.parametrize("lead", [4140, 4200, 7200])
def test_a_long_boot_time_needs_no_more_checks_than_its_history_holds(lead: float) -> None:
    foreseen = said(past(noisy(50, 360)), 1, lead=lead)
    assert "checks)" in foreseen.text
    assert "have been checked" not in foreseen.text


def test_a_queue_gets_no_share_before_its_forecasts_are_checked() -> None:
    assert said(past([1, 5] * 10), 1, 0.9, queue=True).code != "share"


def test_the_share_that_is_compared_is_that_of_the_quantile() -> None:
    """At 0.96 it is twice the share, and covers steps of two fifths."""
    steps = [20] * 12 + [28] * 6
    history = past(steps * 19 + steps[:10])
    assert said(history, 20, 0.96)[:2] == (28, "share")
    assert said(history, 20, 0.8).code == "forecast"


def test_a_share_is_rounded_up_and_grows_with_the_quantile() -> None:
    assert [said(EMPTY, pods).pods for pods in (0, 1, 5, 6)] == [0, 2, 6, 8]
    assert [said(EMPTY, 50, quantile).pods for quantile in (0.5, 0.8, 0.96)] == [55, 60, 70]


def test_a_forecast_says_what_it_expects_and_how_sure_it_is() -> None:
    foreseen = said(past(noisy(10, 360)), 8)
    assert re.match(
        r"load for at most \d+\.\d pods is expected within 5 min with 80% \(level ", foreseen.text
    )
    assert "such forecasts held in" in foreseen.text


def test_a_need_above_the_forecast_decides_and_the_forecast_is_still_said() -> None:
    foreseen = said(past(noisy(10, 360)), 99)
    assert foreseen[:2] == (99, "need")
    assert "is expected within 5 min" in foreseen.expects


@pytest.mark.parametrize("pods", [1, 4, 40])
@pytest.mark.parametrize("minutes", [10, 60, 360])
def test_a_calm_workload_gets_no_headroom(pods: int, minutes: int) -> None:
    history = past([pods] * minutes)
    assert said(history, pods, 0.99)[:2] == (pods, "need")


def test_the_forecast_never_exceeds_the_largest_rise_of_an_hour_and_more() -> None:
    """The table alone would expect more of such a level."""
    history = past([40, 41] * 180)
    assert said(history, 40, 0.99).pods <= 42


def test_a_noisier_workload_gets_more() -> None:
    calm, wild = past(noisy(16, 360)), past([8, 16, 24] * 120)
    assert said(wild, 1).pods > said(calm, 1).pods


def test_a_workload_above_its_level_gets_more() -> None:
    before = noisy(10, 350)
    high, usual = past([*before, 18, 18, 18]), past([*before, 10, 10, 10])
    assert said(high, 1).pods > said(usual, 1).pods


def test_a_longer_boot_time_gives_a_higher_forecast() -> None:
    history = past(noisy(12, 360))
    pods = [said(history, 1, lead=lead, share=0).pods for lead in (60, 300, 900, 2400)]
    assert pods == sorted(pods)
    assert pods[0] < pods[-1]


def test_a_boot_time_of_seconds_counts_as_a_minute() -> None:
    history = past(noisy(12, 360))
    assert said(history, 1, lead=5).pods == said(history, 1, lead=60).pods


def test_an_old_history_gives_a_share() -> None:
    foreseen = said(past(noisy(10, 360)), 10, later=3600)
    assert foreseen[:2] == (12, "share")
    assert foreseen.text.startswith("the last minutes of its demand are unknown")


def test_the_first_minutes_after_a_gap_give_a_share() -> None:
    history = past(noisy(10, 2), MIDNIGHT + 6 * 3600, past(noisy(10, 200)))
    assert said(history, 10).code == "share"
    assert "only 2 min" in said(history, 10).text


@pytest.mark.parametrize(("load", "pods"), [(10.9, 10), (11.2, 12)])
def test_a_load_within_the_tolerance_adds_no_pods(load: float, pods: int) -> None:
    history = past([load] * 60)
    request = ForecastRequest(LEAD, 0.8, 0.2, present=10, tolerance=0.1)
    foreseen = forecast(history, 10, request, end(history))
    assert foreseen.pods == pods
    carried = "; 10 pods carry it within the HPA's tolerance"
    assert (carried in foreseen.expects) == (pods == 10)


def test_existing_capacity_is_kept_for_less_probable_loads() -> None:
    """A large workload: with few pods, both may be the same whole number."""
    history = past(noisy(40, 360))
    ordered = [said(history, 1, quantile) for quantile in (0.2, 0.5, 0.8)]
    assert all(foreseen.kept > foreseen.pods for foreseen in ordered)


def test_no_more_is_kept_than_the_largest_rise() -> None:
    surest = said(past(noisy(40, 360)), 1, 0.99)
    assert surest.kept == surest.pods


@bounded(60)
@given(quantiles)
def test_the_odds_of_keeping_are_two_thirds_of_those_of_ordering(quantile: float) -> None:
    kept = keep_quantile(quantile)
    assert math.isclose((1 - kept) / kept, 2 / 3 * (1 - quantile) / quantile, rel_tol=1e-9)


def test_a_rise_during_a_gap_is_not_learned() -> None:
    """From 4 to 9 nobody looked, so its duration is unknown."""
    history = past([9] * 40, MIDNIGHT + 4 * 3600, past([4] * 80))
    assert said(history, 9)[:2] == (9, "need")


STEPS = [20] * 12 + [24] * 6
"""Steps of a fifth, which a share covers whole."""


def test_a_share_that_would_have_cost_less_replaces_the_forecast_and_says_so() -> None:
    history = past(STEPS * 19 + STEPS[:10])
    foreseen = said(history, 20)
    assert foreseen[:2] == (24, "share")
    assert re.search(
        r"a share of 20%, which would have cost \d+% less than forecasts; forecasts held in ",
        foreseen.text,
    )
    assert said(history, 20, share=0).code == "forecast"


def test_a_share_grows_with_the_quantile() -> None:
    """One distribution, whose tail is exponential."""
    assert math.isclose(share_at(0.8, 0.2), 0.2)
    assert math.isclose(share_at(0.96, 0.2), 0.4)
    assert math.isfinite(share_at(1.0, 0.2))


def test_a_share_that_costs_more_replaces_no_forecast() -> None:
    """Noise of a seventh: the forecast needs less than a share."""
    history = past(noisy(50, 360))
    assert said(history, 1, share=2).code == "forecast"


def test_a_burst_of_each_day_is_expected_beyond_a_share() -> None:
    history = past((STEPS * 60)[: 8 * 60 + 56], MIDNIGHT + 3 * DAY, ramps(3, low=20, high=60))
    foreseen = said(history, 20)
    assert foreseen[:2] == (61, "share")
    assert "+40 at this time on most of 3 earlier days" in foreseen.text


def ramps(days: int, at: int = 9 * 60, low: int = 2, high: int = 10) -> DemandHistory:
    """Days with ``low`` demand until minute ``at``, ``high`` for an hour, and ``low`` again."""
    history = EMPTY
    for day in range(days):
        pods = [high if at <= minute < at + 60 else low for minute in range(1440)]
        history = past(pods, MIDNIGHT + day * DAY, history)
    return history


@pytest.mark.parametrize("queue", [False, True])
def test_a_burst_of_each_day_is_expected_whole(queue: bool) -> None:
    today = MIDNIGHT + 3 * DAY
    history = past([2] * (8 * 60 + 56), today, ramps(3))
    foreseen = said(history, 2, queue=queue)
    assert foreseen[:2] == (10, "forecast")
    assert "+8 at this time on most of 3 earlier days" in foreseen.text


@pytest.mark.parametrize(
    ("days", "minute"),
    [
        pytest.param(1, 535, id="one day is not enough"),
        pytest.param(3, 400, id="two hours too early"),
        pytest.param(3, 700, id="when it is over"),
    ],
)
def test_the_time_of_day_adds_nothing(days: int, minute: int) -> None:
    today = MIDNIGHT + days * DAY
    history = past([2] * (minute + 1), today, ramps(days))
    assert said(history, 2).code == "need"


def test_a_single_unusual_day_has_no_effect() -> None:
    history = past([2] * 1440 * 4, MIDNIGHT + DAY, ramps(1))
    history = past([2] * 536, MIDNIGHT + 5 * DAY, history)
    assert said(history, 2).code == "need"


def test_a_queue_of_jobs_gets_neither_a_share_nor_the_forecast_of_a_service() -> None:
    assert said(EMPTY, 50, queue=True)[:2] == (50, "need")
    burst = past([*[0] * 200, *[50] * 30])
    assert said(burst, 50, queue=True)[:2] == (50, "need")


def test_a_queue_expects_the_rises_of_its_last_hours() -> None:
    bursts = past([1, 1, 1, 1, 6] * 20)
    assert said(bursts, 1, 0.9, queue=True)[:2] == (6, "forecast")


pasts = st.lists(st.integers(0, 60), max_size=120)
leads = st.floats(1, 7200)


@bounded(200)
@given(pasts, st.integers(0, 100), quantiles, leads, st.floats(-3600, DAY), st.booleans())
def test_a_forecast_is_a_number_and_at_least_the_need(
    pods: list[int], need: int, quantile: float, lead: float, later: float, queue: bool
) -> None:
    """Also if the clock was ahead before."""
    foreseen = said(past(pods), need, quantile, lead=lead, later=later, queue=queue)
    assert need <= foreseen.pods < 10_000
    assert foreseen.code in {"need", "forecast", "unsure", "share"}
    assert foreseen.code in CODES
    assert "nan" not in foreseen.text


@bounded(60)
@given(pasts, leads, st.booleans(), st.integers(0, 3), st.integers(0, 1439))
def test_a_higher_quantile_never_gives_a_lower_forecast(
    pods: list[int], lead: float, queue: bool, days: int, minute: int
) -> None:
    """Without the share, whose reason depends on the quantile."""
    history = past(pods, MIDNIGHT + days * DAY + minute * 60, RAMPS[days])
    asked = [step / 25 for step in range(1, 25)]
    most = [said(history, 0, quantile, lead=lead, share=0, queue=queue).pods for quantile in asked]
    assert most == sorted(most)


@bounded(60)
@given(pasts, st.randoms(use_true_random=False), quantiles)
def test_the_order_of_minutes_and_days_does_not_matter(
    pods: list[int], draw: random.Random, quantile: float
) -> None:
    history = past(pods, MIDNIGHT + 3 * DAY, RAMPS[3])
    recent, days = list(history.recent), list(history.days)
    draw.shuffle(recent)
    draw.shuffle(days)
    mixed = DemandHistory(tuple(recent), tuple(days))
    now = end(history)
    request = ForecastRequest(LEAD, quantile, 0.2)
    assert forecast(mixed, 1, request, now) == forecast(history, 1, request, now)


@bounded(60)
@given(st.lists(st.integers(0, 60), max_size=9), st.integers(0, 100), st.floats(0, 2), quantiles)
def test_a_cold_start_orders_at_least_a_share_of_what_the_newest_load_needs(
    pods: list[int], first: int, share: float, quantile: float
) -> None:
    need = pods[-1] if pods else first
    foreseen = said(past(pods), need, quantile, share=share)
    assert foreseen.pods >= need * (1 + share_at(quantile, share)) - 1e-6


@bounded(40)
@given(pasts, st.floats(-2 * DAY, 2 * DAY), quantiles)
def test_a_clock_that_jumps_leaves_a_usable_history(
    pods: list[int], jump: float, quantile: float
) -> None:
    history = past([3] * 30, MIDNIGHT + jump, past(pods))
    foreseen = said(history, 3, quantile)
    assert 3 <= foreseen.pods <= 3 + 60 * 3


RAMPS = [ramps(days) for days in range(4)]
