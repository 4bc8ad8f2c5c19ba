"""A store's clock that is ahead, and its effect on samples."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from structlog.testing import capture_logs

from adapter.pipeline.sources.prometheus.engineclock import EngineClock

NOW = 1_700_000_000.0


class Ours:
    """A settable clock."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


@pytest.mark.parametrize(
    ("dates", "ahead"),
    [
        pytest.param([], 0, id="no answer yet"),
        pytest.param([date(NOW)], 0, id="clocks agree"),
        pytest.param([date(NOW + 2)], 0, id="two seconds are noise"),
        pytest.param([date(NOW + 60)], 61, id="ahead, and a date has no fractions"),
        pytest.param([date(NOW - 60)], 0, id="behind: samples are never made younger"),
        pytest.param([date(NOW + 60), date(NOW + 59)], 61, id="a slower answer changes nothing"),
        pytest.param([date(NOW + 60), date(NOW + 61)], 62, id="the most that was seen"),
        pytest.param([date(NOW + 60), date(NOW + 30)], 31, id="one of the clocks was set"),
        pytest.param([date(NOW + 60), date(NOW)], 0, id="the clocks agree again"),
        pytest.param([date(NOW + 60), None], 61, id="an answer without a date"),
        pytest.param(
            [None, "yesterday", "", "1 Jan 99999999999999999999 00:00"],
            0,
            id="nothing that is a date",
        ),
    ],
)
def test_samples_are_shifted_into_the_past_by(dates: list[str | None], ahead: float) -> None:
    clock = EngineClock("http://store", Ours())
    for header in dates:
        clock.note_date(header)
    assert clock.ahead == ahead


def test_a_cached_answer_does_not_change_the_clock() -> None:
    clock = EngineClock("http://store", Ours())
    clock.note_date(date(NOW + 60))
    with capture_logs() as logs:
        clock.note_date(date(NOW + 20), age="40")
        clock.note_date(date(NOW), age="60")
    assert (clock.ahead, logs) == (61, [])
    clock.note_date(date(NOW + 30), age="0")
    assert clock.ahead == 31


def test_the_shift_is_stable_within_a_second() -> None:
    """A sample that is read twice must have one time."""
    ours = Ours()
    clock = EngineClock("http://store", ours)
    seen = set()
    for tenth in range(100):
        ours.now = NOW + tenth / 10
        clock.note_date(date(int(ours.now) + 60))
        seen.add(clock.ahead)
    assert seen == {61.0}


def test_a_shift_and_its_end_are_logged_once() -> None:
    clock = EngineClock("http://store", Ours())
    with capture_logs() as logs:
        for seconds in (60, 60, -90, -90, 0, 0):
            clock.note_date(date(NOW + seconds))
    events = [(line["event"], line.get("ahead_seconds")) for line in logs]
    assert events == [("clocks differ", 60), ("clocks agree again", None)]
