"""The law: an expectation only raises, within what was shown, and gives way to the present."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.history import DAY, EMPTY, DemandHistory, DemandPoint
from adapter.server.ahead.expectation import Expectation, expect
from adapter.server.ahead.replicaload import ReplicaLoad

MONDAY = 20_699.0 * DAY
LEAD = 240.0


def past(loads: Sequence[float], begin: float = MONDAY) -> DemandHistory:
    history = EMPTY
    for minute, load in enumerate(loads):
        history = learn(history, DemandPoint(begin + 60 * minute, load))
    return history


def said(
    loads: Sequence[float], probability: float = 0.7, per_replica: float = 24.0, lead: float = LEAD
) -> Expectation | str:
    now = MONDAY + 60 * (len(loads) - 1)
    return expect(past(loads), per_replica, lead, probability, now)


def known(found: Expectation | str) -> Expectation:
    assert isinstance(found, Expectation), found
    return found


def noise(seed: int, count: int, mean: float = 240, spread: float = 40) -> list[float]:
    draw = random.Random(seed)
    return [max(0.0, draw.gauss(mean, spread)) for _ in range(count)]


def test_a_noisy_load_may_rise_and_the_text_says_how_sure_that_is() -> None:
    expectation = known(said([*noise(1, 300), 240.0]))
    assert expectation.stated
    assert 240 < expectation.most <= max(noise(1, 300))
    assert "not exceeded within 4 min with 70%" in expectation.text
    assert " such forecasts held" in expectation.text


def test_a_surer_expectation_is_not_lower() -> None:
    loads = [*noise(2, 300), 240.0]
    assert known(said(loads, 0.6)).most <= known(said(loads, 0.9)).most


@pytest.mark.parametrize("load", [0.0, 0.3, 240.0])
def test_a_load_that_does_not_change_gets_nothing(load: float) -> None:
    assert known(said([load] * 200)).most == load


@given(
    st.lists(st.floats(0, 500), min_size=3, max_size=200),
    st.floats(0.05, 0.95),
    st.floats(0.5, 300),
    st.sampled_from([15.0, 120.0, 480.0, 3600.0]),
)
def test_it_only_raises_and_never_above_what_was_shown(
    loads: list[float], probability: float, per_replica: float, lead: float
) -> None:
    expectation = known(said(loads, probability, per_replica, lead))
    history = past(loads)
    shown = [point.pods for point in history.recent]
    assert expectation.present == shown[-1]
    assert shown[-1] <= expectation.most <= max(shown)


def test_forecasts_that_fail_their_checks_give_way_to_the_present_load() -> None:
    """The load trebles, and its noise with it: what the hours before taught does not hold."""
    loads = [*noise(3, 240, 240, 5), *noise(4, 90, 720, 330)]
    expectations = [known(said(loads[:end], 0.8, lead=60)) for end in range(241, 330)]
    given_way = [
        expected for expected in expectations if expected.text.startswith("the present load: ")
    ]
    assert any("only" in expected.text for expected in given_way)
    assert all(expected.most == expected.present and not expected.stated for expected in given_way)


def test_before_fifteen_checks_no_probability_is_stated_and_nothing_is_added() -> None:
    for end in (3, 30, 60):
        expectation = known(said(noise(5, end)))
        assert (expectation.stated, expectation.most) == (False, expectation.present)
        assert "of 15 forecasts have been checked" in expectation.text


def test_a_burst_of_each_day_is_expected_from_the_third_day_on() -> None:
    day = [30.0 if minute // 60 != 9 else 100.0 for minute in range(1440)]
    before_nine = 9 * 60 - 1
    for days, most in ((1, 30.0), (2, 100.0), (4, 100.0)):
        loads = day * days + day[:before_nine]
        expectation = known(said(loads))
        assert expectation.most == pytest.approx(most, abs=1), days
        # At noon, nothing is due.
        assert known(said(day * days + day[: 12 * 60])).most == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("minutes", "silent", "why"),
    [(1, 0, "only 1 min"), (2, 0, "only 2 min"), (60, 660, "the last minutes")],
)
def test_what_is_not_known_is_said(minutes: int, silent: float, why: str) -> None:
    history = past([30.0] * minutes)
    now = MONDAY + 60 * (minutes - 1) + silent
    assert str(expect(history, 24.0, LEAD, 0.7, now)).startswith(why)


def test_the_load_of_a_replica_is_that_of_busy_times() -> None:
    load, now = ReplicaLoad(), MONDAY
    for hour in range(48):
        now += 3600
        busy = 8 <= hour % 24 < 18
        load = load.learn(240.0 if busy else 2.0, 10 if busy else 2, now)
    assert load.mean == pytest.approx(24, rel=0.05)
    assert ReplicaLoad().mean is None
    assert ReplicaLoad().learn(0.0, 2, now).mean is None


def test_of_two_loads_of_a_replica_the_one_that_has_seen_more_by_now_is_kept() -> None:
    """Before, a load of last week had more weight than today's, because nothing had halved it."""
    old = ReplicaLoad().learn(1000.0, 10, MONDAY)
    new = ReplicaLoad().learn(300.0, 30, MONDAY + 4 * 6 * 3600)
    assert old.better_of(new) is new
    assert new.better_of(old) is new
    soon = ReplicaLoad().learn(300.0, 30, MONDAY + 6 * 3600)
    assert old.better_of(soon) is old
    assert soon.better_of(old) is old


def test_of_two_loads_of_a_replica_with_the_same_weight_its_own_is_kept() -> None:
    one, other = (ReplicaLoad().learn(100.0, pods, MONDAY) for pods in (2, 5))
    assert one.better_of(other) is one
    assert other.better_of(one) is other
    assert ReplicaLoad().better_of(other) is other


def test_a_replica_that_has_carried_almost_nothing_for_weeks_has_no_load() -> None:
    load = ReplicaLoad().learn(0.01, 2, MONDAY)
    for day in range(400):
        load = load.learn(0.0, 2, MONDAY + day * DAY)
        assert load.mean is None or load.mean > 0
    assert load.mean is None
