"""Forecasts correct themselves by their own checks, in both directions."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from adapter.nodepool.learn.checks import FEWEST_MOVING, Residuals, least_load, pods_of
from adapter.nodepool.learn.forecast import Forecast, ForecastRequest, forecast
from adapter.nodepool.learn.record import checked_minutes, record
from adapter.nodepool.learn.situation import Series, highest_loads_after
from adapter.nodepool.model.history import RECENT, DemandHistory, DemandPoint
from tests.examples import bounded

NOON = 20_000.5 * 86400
LEADS = [30, 60, 120, 300, 600]
LEARNED = 240
"""Minutes before forecasts are counted."""


def said(load: Sequence[float], minute: int, lead: float, quantile: float = 0.8) -> Forecast:
    """The forecast of one minute, by a controller that has seen all minutes until then."""
    first = max(0, minute + 1 - RECENT)
    points = tuple(DemandPoint(NOON + 60 * at, load[at]) for at in range(first, minute + 1))
    request = ForecastRequest(lead, quantile, share=0.2)
    history = DemandHistory(points)
    return forecast(history, pods_of(load[minute]), request, points[-1].time)


def held(load: Sequence[float], lead: float, minutes: Iterable[int]) -> tuple[float, int]:
    """Which share of the forecasts with a probability carried what followed, and how many."""
    ahead = int(max(lead, 60) // 60 + 1)
    outcomes = []
    for minute in minutes:
        foreseen = said(load, minute, lead)
        if (
            foreseen.code in {"forecast", "need"}
            and "is expected" in foreseen.text + foreseen.expects
        ):
            highest = max(load[minute + 1 : minute + 1 + ahead])
            outcomes.append(pods_of(highest) <= foreseen.pods)
    return sum(outcomes) / max(1, len(outcomes)), len(outcomes)


def whole_cycles(period: int) -> range:
    """Minutes of some cycles. Fewer would judge some minutes of a cycle more often than others."""
    return range(LEARNED, LEARNED + period * (60 // period + 1))


def cycle(steps: Sequence[float], noise: float = 0.0, minutes: int = 400) -> list[float]:
    draw = random.Random(7)
    return [
        round(max(0.0, steps[minute % len(steps)] + draw.gauss(0, noise)), 2)
        for minute in range(minutes)
    ]


FAST = {
    "a step every three minutes": [2, 2, 6],
    "a ramp of three minutes": [4, 8, 12],
    "a ramp of four minutes": [2, 4, 6, 8],
    "there and back": [2, 4, 8, 4],
}


@pytest.mark.parametrize("steps", FAST.values(), ids=FAST)
def test_a_load_that_rises_faster_than_the_tables_know_is_covered(steps: Sequence[float]) -> None:
    """The tables alone held in 20 or 30 of 60 checks at a lead of a minute, and stayed so."""
    load = cycle(steps)
    known = record(
        tuple(DemandPoint(NOON + 60 * at, pods) for at, pods in enumerate(load[-RECENT:])),
        60,
        0.8,
        0.2,
    )
    assert known.checks == 60
    assert known.held >= 0.8 * known.judged
    share, count = held(load, 60, whole_cycles(len(steps)))
    assert count >= 50
    assert share == 1.0


NOISE = {
    "noise of a seventh": lambda draw: draw.gauss(50, 7),
    "noise of a third": lambda draw: draw.gauss(10, 3.2),
    "rare peaks": lambda draw: 3 + 6 * (draw.random() < 0.1),
    "steps up and down": lambda draw: draw.choice([2, 2, 2, 5, 9]),
}


@pytest.mark.parametrize("lead", [30, 120, 600])
@pytest.mark.parametrize("process", NOISE, ids=str)
def test_forecasts_hold_as_often_as_stated(process: str, lead: float) -> None:
    """Fifteen points less are chance, with some 60 forecasts whose minutes overlap.

    They may hold more often: pods are whole, and a share may replace them.
    """
    draw = random.Random(11)
    load = [round(max(0.0, NOISE[process](draw)), 2) for _ in range(640)]
    # Minutes whose forecasts overlap say the same, so they are far apart.
    share, count = held(load, lead, draw.sample(range(LEARNED, 620), 60))
    assert share >= 0.65 or count < 20


def chance_of_so_few(held_checks: int, judged: int, probability: float) -> float:
    """Return how likely at most so many of the checks hold if each holds with the probability."""
    return sum(
        math.comb(judged, count) * probability**count * (1 - probability) ** (judged - count)
        for count in range(held_checks + 1)
    )


@bounded(8)
@given(
    st.lists(st.integers(0, 12) | st.just(40), min_size=2, max_size=24),
    st.sampled_from([0.0, 0.3, 2.0]),
    st.sampled_from(LEADS),
)
@example([40, 0, 0, 40, 0, 40, 0, 0, 0, 40, 0, 0, 0], 0.0, 60).via("crossing quantiles: 54 %")
@example([40, 0, 40, 0, 40, 0, 40, 40, 0], 0.3, 300).via("two kinds of minutes: 57 %")
def test_a_probability_is_stated_only_while_the_workloads_own_checks_bear_it(
    steps: list[int], noise: float, lead: float
) -> None:
    """What follows is not known, so this holds of each process: the past that is stated beside it.

    How often such forecasts hold afterwards is a question of many processes; see below.
    """
    load = cycle(steps, noise)
    stated = 0
    for minute in range(LEARNED, LEARNED + 2 * len(steps)):
        newest = said(load, minute, lead)
        text = newest.text + newest.expects
        if "is expected" not in text:
            continue
        stated += 1
        held_checks, judged = map(int, re.findall(r"held in (\d+) of (\d+) checks", text)[0])
        assert judged >= FEWEST_MOVING
        assert chance_of_so_few(held_checks, judged, 0.8) >= 0.01, text
    event("stated" if stated else "never stated")


def test_probabilities_of_many_processes_hold_as_often_as_stated() -> None:
    """Random cycles, none of which was chosen. In 272 others 79 %, and less than 65 % in 6 of them.

    A search for the worst process finds one below any bound: the forecasts of an hour overlap, and
    the checks correct by chance what held too seldom only afterwards.
    """
    draw = random.Random(20261127)
    shares = []
    for _ in range(80):
        steps = [draw.choice([*range(13), 40]) for _ in range(draw.randint(2, 24))]
        noise, lead = draw.choice([0.0, 0.3, 2.0]), draw.choice(LEADS)
        minutes = whole_cycles(len(steps))
        load = cycle(steps, noise, minutes.stop + int(lead // 60) + 2)
        share, count = held(load, lead, minutes)
        if count >= 20:
            shares.append(share)
    assert len(shares) >= 60
    assert sum(shares) / len(shares) >= 0.75
    assert sum(share < 0.65 for share in shares) <= len(shares) / 16


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("period", range(2, 21))
def test_checks_come_upon_most_minutes_of_a_cycle(period: int, lead: float) -> None:
    """At a fixed distance of six minutes they would know one minute of six."""
    series = Series(DemandPoint(NOON + 60 * at, 1.0) for at in range(RECENT))
    ahead = max(lead, 60.0) + 60
    peaks = highest_loads_after(series.times, series.pods, ahead)
    known = RECENT - int(ahead // 60)
    minutes = [index for index, _ in checked_minutes(series, peaks, known, ahead)]
    assert all(after - before >= ahead / 60 for after, before in pairwise(minutes))
    assert len({index % period for index in minutes}) >= period / 2


@pytest.mark.parametrize("lead", LEADS)
def test_which_minutes_are_checked_does_not_depend_on_the_newest_minute(lead: float) -> None:
    """Else a probability is withdrawn in those minutes of a cycle in which it holds, and stated in
    the others: of a cycle of nine minutes with five peaks, 80 % held in 57 %.
    """
    chosen = []
    for newest in range(200, 240):
        series = Series(DemandPoint(NOON + 60 * at, 1.0) for at in range(newest + 1))
        ahead = max(lead, 60.0) + 60
        peaks = highest_loads_after(series.times, series.pods, ahead)
        known = newest + 1 - int(ahead // 60)
        chosen.append({index for index, _ in checked_minutes(series, peaks, known, ahead)})
    for before, after in pairwise(chosen):
        assert len(after - before) <= 1
        assert len(before - after) <= (len(before) == 60)


def test_no_probability_is_stated_while_no_check_could_correct_it() -> None:
    """Until then, the tables alone held in 71 to 74 % of the minutes of random cycles."""
    draw = random.Random(5)
    load = [max(0.0, draw.gauss(30, 4)) for _ in range(150)]
    forecasts = [said(load, at, 300) for at in range(60, 150)]
    texts = [
        foreseen.text if foreseen.code != "need" else foreseen.expects for foreseen in forecasts
    ]
    counts = [int(re.findall(r"in \d+ of (\d+) checks", text)[0]) for text in texts]
    assert min(counts) < FEWEST_MOVING <= max(counts)
    for text, count in zip(texts, counts, strict=True):
        too_few = count < FEWEST_MOVING
        assert ("is expected" in text) is not too_few
        assert ("is assumed within 5 min (" in text) is too_few
        assert ("a probability needs 15 checks" in text) is too_few
    assert {foreseen.code for foreseen in forecasts[:10]} <= {"unsure", "need"}


def test_a_probability_that_has_not_held_is_withdrawn_and_says_so() -> None:
    """The load trebles, and its noise with it: most checks are of other hours."""
    draw = random.Random(3)
    load = [draw.gauss(10, 0.2) for _ in range(240)] + [draw.gauss(30, 14) for _ in range(90)]
    forecasts = [said([max(0.0, pods) for pods in load], at, 60) for at in range(240, 330)]
    texts = [foreseen.text for foreseen in forecasts if foreseen.code == "unsure"]
    assert texts
    assert all("is assumed within 1 min" in text and "held only in" in text for text in texts)
    assert {foreseen.code for foreseen in forecasts} <= {"forecast", "unsure", "share", "need"}


def test_a_forecast_that_always_holds_is_lowered() -> None:
    """The tables expect noise that this load does not have."""
    load = [10 + minute / 20 for minute in range(300)]
    assert said(load, 299, 600).pods <= math.ceil(load[299] + 11 / 20) + 1


def test_without_checks_a_forecast_stays() -> None:
    assert Residuals().supported_residual(0.8, 0.3) == 0.3


@pytest.mark.parametrize(
    ("least", "enough", "moved"),
    [
        pytest.param(1.0, 2.0, 1.0, id="too low: raised as far as whole pods need"),
        pytest.param(-3.0, -1.0, -1.0, id="too high: lowered to the load"),
        pytest.param(-1.0, 1.0, 0.0, id="within"),
        pytest.param(-math.inf, 1.0, 0.0, id="the pods of the time would have carried any"),
    ],
)
def test_a_forecast_is_moved_into_what_the_checks_support(
    least: float, enough: float, moved: float
) -> None:
    checks = Residuals()
    for _ in range(40):
        checks.add(least, enough)
    assert checks.supported_residual(0.8, 0.0) == moved


@pytest.mark.parametrize("high", [0.5, 2.0])
def test_few_checks_move_less_than_many(high: float) -> None:
    """Of 10 checks, 4 misses may be chance; of 50, 20 are not."""
    moved = []
    for count in (10, 50):
        checks = Residuals()
        for number in range(count):
            checks.add(high if number % 5 < 2 else -1.0, 3.0)
        moved.append(checks.supported_residual(0.8, 0.0))
    assert moved == [0.0, high]


residuals = st.lists(
    st.tuples(st.floats(-9, 9), st.floats(0, 5)).map(lambda pair: (pair[0] - pair[1], pair[0])),
    max_size=60,
)


@bounded(100)
@given(residuals, st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(-9, 9), st.floats(-9, 9))
def test_a_surer_forecast_is_never_moved_below_a_less_sure_one(
    known: list[tuple[float, float]], first: float, second: float, low: float, high: float
) -> None:
    checks = Residuals()
    for least, enough in known:
        checks.add(least, enough)
    less, more = sorted((first, second))
    assert checks.supported_residual(less, min(low, high)) <= checks.supported_residual(
        more, max(low, high)
    )


@bounded(100)
@given(st.integers(0, 50), st.floats(0, 60))
def test_the_least_load_is_carried_and_the_next_lower_pod_is_not(need: int, highest: float) -> None:
    least = least_load(need, highest)
    assert least <= highest
    if pods_of(highest) > need:
        assert pods_of(least) == pods_of(highest)
    else:
        assert least == -math.inf
