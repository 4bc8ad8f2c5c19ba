"""The history of a workload, and its form in a ConfigMap."""

from __future__ import annotations

import base64
import json
import math
import random
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.history import SETBACK, learn, union
from adapter.nodepool.learn.historytext import decode, encode
from adapter.nodepool.model.history import (
    DAYS,
    EMPTY,
    MOST_LOAD,
    RECENT,
    SLOT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)

DAY = 86400.0
MIDNIGHT = 20_000 * DAY


def learned(points: Iterable[tuple[float, float]]) -> DemandHistory:
    history = EMPTY
    for time, pods in points:
        history = learn(history, DemandPoint(time, pods))
    return history


def packed(document: object, version: str = "1") -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    return f"{version}:{base64.b64encode(zlib.compress(text.encode())).decode()}"


def test_the_largest_value_of_a_minute_is_kept() -> None:
    history = learned([(MIDNIGHT + 5, 3), (MIDNIGHT + 20, 7), (MIDNIGHT + 55, 4)])
    assert history.recent == (DemandPoint(MIDNIGHT, 7),)
    assert history.days[-1].peaks[0] == 7


def test_a_minute_without_observation_is_absent_and_not_0() -> None:
    history = learned([(MIDNIGHT, 3), (MIDNIGHT + 300, 3)])
    assert [point.time - MIDNIGHT for point in history.recent] == [0, 300]
    assert history.days[-1].peaks[1:] == (None,) * (SLOTS - 1)


def test_an_earlier_minute_changes_nothing() -> None:
    history = learned([(MIDNIGHT + 120, 3)])
    assert learn(history, DemandPoint(MIDNIGHT + 60, 9)) == history


def test_a_clock_that_was_far_ahead_does_not_stop_learning() -> None:
    history = learned([(MIDNIGHT, 3), (MIDNIGHT + 300 * DAY, 9), (MIDNIGHT + 60, 4)])
    assert history.recent[-1] == DemandPoint(MIDNIGHT + 60, 4)
    assert [day.number for day in history.days] == [20_000]


def test_a_history_of_a_clock_that_was_ahead_does_not_end_another() -> None:
    """Before, the latest time decided what is old: minutes of next year dropped all of today."""
    own = learned([(MIDNIGHT, 3), (MIDNIGHT + 60, 4)])
    ahead = learned([(MIDNIGHT - 60, 2), (MIDNIGHT + 300 * DAY, 9)])
    now = MIDNIGHT + 120
    for both in (union(own, ahead, now), union(ahead, own, now)):
        assert both == own
    near = learned([(now + SETBACK - 60, 5)])
    assert union(own, near, now).recent == (*own.recent, *near.recent)


def test_hours_and_days_are_bounded() -> None:
    history = learned((MIDNIGHT + minute * 60, 1) for minute in range(12 * 1440))
    assert len(history.recent) == RECENT
    assert len(history.days) == DAYS + 1


def test_days_keep_the_peak_of_each_slot() -> None:
    history = learned((MIDNIGHT + minute * 60, minute) for minute in range(1440))
    assert history.days[0].peaks == tuple(range(14, 1440, SLOT // 60))


observations = st.lists(st.tuples(st.integers(0, 3 * 1440), st.floats(0, 10_000)), max_size=60).map(
    lambda rows: [(MIDNIGHT + minute * 60.0, pods) for minute, pods in sorted(rows)]
)


@given(observations)
def test_a_history_reads_back_as_it_was_written(rows: list[tuple[float, float]]) -> None:
    history = learned(rows)
    assert decode(encode(history)) == (history, None)


@given(st.lists(st.floats(0, MOST_LOAD), min_size=1, max_size=9), st.integers(0, 3))
def test_any_load_that_is_learned_reads_back_as_it_was_written(
    loads: list[float], days: int
) -> None:
    """Bytes, for example, are larger numbers than pods."""
    later = ((MIDNIGHT + days * DAY + 60 * minute, load) for minute, load in enumerate(loads))
    history = learned([(MIDNIGHT, loads[-1]), *later])
    half_a_hundredth = 0.005 * 1.001  # in binary, half may be a little more
    assert history.recent[-1].pods == pytest.approx(loads[-1], rel=1e-12, abs=half_a_hundredth)
    assert decode(encode(history)) == (history, None)


@pytest.mark.parametrize("load", [-1.0, math.nan, math.inf, 2 * MOST_LOAD])
def test_a_number_that_cannot_be_a_load_is_not_learned(load: float) -> None:
    history = learned([(MIDNIGHT, 3)])
    assert learn(history, DemandPoint(MIDNIGHT + 60, load)) == history


def test_a_load_is_kept_in_hundredths_of_a_pod() -> None:
    assert learned([(MIDNIGHT, 2.3449)]).recent == (DemandPoint(MIDNIGHT, 2.34),)


def test_a_text_of_version_1_has_whole_pods() -> None:
    peaks = [None] * (SLOTS - 1) + [7]
    text = packed([20_000 * 1440, [3, None, 4], [[20_000, peaks]]])
    assert text.startswith("1:")
    assert decode(text).history == DemandHistory(
        (DemandPoint(MIDNIGHT, 3), DemandPoint(MIDNIGHT + 120, 4)),
        (DemandDay(20_000, tuple(peaks)),),
    )


def test_the_largest_history_takes_less_than_five_kilobytes() -> None:
    chance = random.Random(1)
    history = learned(
        (MIDNIGHT + minute * 60, 1000 * chance.random()) for minute in range((DAYS + 1) * 1440)
    )
    assert len(encode(history)) < 5000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "version ''", id="empty"),
        pytest.param("3:abc", "version '3'", id="of a later version"),
        pytest.param("1:?", "cannot be read", id="not base64"),
        pytest.param("1:AAAA", "cannot be read", id="not deflated"),
        pytest.param("1:é", "cannot be read", id="not ASCII"),
        pytest.param(encode(learned([(MIDNIGHT, 3)]))[:-8], "cannot be read", id="cut"),
        pytest.param(packed("[" * 5000), "cannot be read", id="nested too deeply"),
        pytest.param(packed(" " * 100_000), "longer than 65536 bytes", id="a bomb"),
        pytest.param(packed("{}"), "cannot be read", id="another document"),
        pytest.param(packed([1, 2]), "cannot be read", id="a part missing"),
        pytest.param(packed([1, [True], []]), "got `bool`", id="a boolean"),
        pytest.param(packed([1, [-1], []]), "`int` >= 0", id="below 0"),
        pytest.param(packed([1, [1.5], []]), "got `float`", id="a fraction"),
        pytest.param(packed([1, [10**18 + 1], []], "2"), "`int` <= 10", id="too large"),
        pytest.param(packed([1, [10**18], []]), "larger than", id="too many whole pods"),
        pytest.param(packed([1, [1] * 361, []]), "length <= 360", id="too many minutes"),
        pytest.param(packed([1, [], [[1, [1]]]]), "length >= 96", id="a short day"),
        pytest.param(
            packed([1, [], [[2, [None] * SLOTS], [1, [None] * SLOTS]]]),
            "not in order",
            id="days out of order",
        ),
    ],
)
def test_an_unreadable_text_gives_an_empty_history_and_a_reason(text: str, problem: str) -> None:
    decoded = decode(text)
    assert decoded.history == EMPTY
    assert decoded.problem is not None
    assert problem in decoded.problem


@given(st.text(max_size=200) | st.text(max_size=100).map(packed))
def test_no_text_raises_an_error(text: str) -> None:
    assert isinstance(decode(text).history, DemandHistory)
