"""``gpuhistoryhours``: what each reader has asked for, also while others ask."""

from __future__ import annotations

from adapter.answers.history.ring import HistoryRing, subject
from adapter.answers.view.historyhours import HistoryHours
from apiservice.runtime.steps import at_once
from apiservice.view.resource import Key
from tests.adapter.answers.view.viewer import prepare

HOUR = 500_000
NOW = (HOUR + 3) * 3600.0
LLM = subject("hpa", "llm", "chat")


def noted(ring: HistoryRing, *minutes: int) -> HistoryHours:
    for minute in minutes:
        assert at_once(ring.turn(HOUR * 60 + minute))
        ring.note(LLM, (minute, 70, 2, 3, 1), "m")
    return HistoryHours(ring)


def test_two_readers_with_different_questions_both_get_their_answer() -> None:
    """Before, the second question took away what had been prepared for the first."""
    hours = noted(HistoryRing(), 0, 60, 120)
    one, two, three = at_once(hours.keys(None))
    prepare(hours, [one, three], NOW)
    prepare(hours, [two], NOW)
    for key in (one, two, three):
        cells, hour = hours.cells(key, NOW), hours.object(key, NOW)
        assert cells is not None
        assert hour is not None
        assert hour["hour"] == int(key.name)
    prepare(hours, [Key("", "x"), Key("", "9" * 20), Key("", str(HOUR - 1))], NOW)
    assert hours.object(three, NOW) is not None


def test_an_hour_has_its_newest_minutes_when_it_is_asked_for_again() -> None:
    ring = HistoryRing()
    hours = noted(ring, 0)
    (key,) = at_once(hours.keys(None))
    prepare(hours, [key], NOW)
    first = hours.object(key, NOW)
    noted(ring, 1)
    prepare(hours, [key], NOW)
    second = hours.object(key, NOW)
    assert first != second
    noted(ring, 60)
    closed = hours.object(key, NOW)
    assert closed is not None
    assert closed == second


def test_an_hour_that_is_not_kept_is_not_found() -> None:
    hours = noted(HistoryRing(), 0)
    for name in ("x", "-1", "٣", "9" * 20, str(HOUR - 1), str(HOUR + 1)):
        key = Key("", name)
        prepare(hours, [key], NOW)
        assert (hours.cells(key, NOW), hours.object(key, NOW)) == (None, None)
