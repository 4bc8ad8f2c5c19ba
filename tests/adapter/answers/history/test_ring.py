"""The ring of minutes: gaps, hours, bounds, and hours of another process."""

from __future__ import annotations

import random
import zlib

import msgspec
import pytest

from adapter.answers.history.hours import HourError, StoredHour
from adapter.answers.history.ring import HistoryRing, NotedPast, subject
from adapter.answers.judgement.states import ORDER
from apiservice.runtime.steps import at_once

LLM = subject("hpa", "llm", "chat")
HOUR = 500_000
FIRST = HOUR * 60
"""The first minute of an hour."""


def _noted(ring: HistoryRing, minute: int, value: float | None, metric: str = "m") -> None:
    assert at_once(ring.turn(minute))
    ring.note(LLM, (value, 70, 2, 3, 10), metric)


def _read(ring: HistoryRing, minutes: int = 1440) -> NotedPast:
    past = ring.read(LLM, minutes)
    assert past is not None
    return past


def test_a_point_is_read_as_it_was_noted() -> None:
    ring = HistoryRing()
    _noted(ring, FIRST, 69.47)
    past = _read(ring)
    assert past.start == FIRST * 60
    assert past.metric == "m"
    assert past.columns == {
        "value": [69.5],  # three digits
        "target": [70],
        "current": [2],
        "desired": [3],
        "state": [10],
    }
    assert past.states() == ["healthy"]


@pytest.mark.parametrize("later", [1, 59, 60, 130], ids=["open", "last", "next hour", "hours"])
def test_a_minute_that_is_missing_is_a_gap_and_no_zero(later: int) -> None:
    ring = HistoryRing()
    _noted(ring, FIRST, 0.0)
    _noted(ring, FIRST + later + 1, 5.0)
    assert _read(ring).columns["value"] == [0, *[None] * later, 5]


def test_a_number_that_is_missing_is_none() -> None:
    ring = HistoryRing()
    _noted(ring, FIRST, None)
    columns = _read(ring).columns
    assert (columns["value"], columns["current"]) == ([None], [2])


def test_no_minute_is_noted_twice_or_before_another() -> None:
    ring = HistoryRing()
    _noted(ring, FIRST + 5, 1.0)
    assert not at_once(ring.turn(FIRST + 5))
    assert not at_once(ring.turn(FIRST + 4))
    assert _read(ring).columns["value"] == [1]


def test_only_the_newest_minutes_are_read() -> None:
    ring = HistoryRing()
    for minute in range(130):
        _noted(ring, FIRST + minute, float(minute))
    past = _read(ring, 75)
    assert past.columns["value"] == list(range(55, 130))
    assert past.start == (FIRST + 55) * 60


def test_a_day_is_kept_and_nothing_older() -> None:
    ring = HistoryRing()
    for hour in range(30):
        _noted(ring, FIRST + 60 * hour, float(hour))
    assert ring.since == (HOUR + 5) * 3600
    assert _read(ring, 10_000).columns["value"][::60] == list(range(5, 30))


@pytest.mark.parametrize("later", [1, 60], ids=["same hour", "next hour"])
def test_values_of_another_metric_are_left_out_and_replicas_are_not(later: int) -> None:
    ring = HistoryRing()
    _noted(ring, FIRST, 7.0, "queue")
    _noted(ring, FIRST + later, 90.0, "utilization")
    past = _read(ring)
    assert past.metric == "utilization"
    assert past.columns["value"] == [*[None] * later, 90]
    assert past.columns["target"] == [*[None] * later, 70]
    assert past.columns["current"][0] == 2


def test_large_and_impossible_numbers() -> None:
    ring = HistoryRing()
    at_once(ring.turn(FIRST))
    ring.note(LLM, (68_999_999_488.0, 34_359_738_368, 1e300, float("inf"), None), "bytes")
    columns = _read(ring).columns
    assert columns["value"] == [6.9e10]
    assert columns["target"] == [3.435974e10]  # seven digits
    assert columns["current"] == columns["desired"] == columns["state"] == [None]


def test_the_bound_holds_and_the_oldest_hours_end_first() -> None:
    most = 150_000
    ring, some = HistoryRing(most), random.Random(1)
    subjects = [subject("hpa", f"hpa-{number}", "chat") for number in range(60)]
    for minute in range(20 * 60):
        assert at_once(ring.turn(FIRST + minute))
        for name in subjects:
            ring.note(name, (some.uniform(0, 100), 70, minute % 9, 4, 3))
        assert ring.size <= most
    assert ring.left_out > 0  # more HPAs than fit into an hour
    assert ring.since is not None
    assert ring.since > HOUR * 3600  # and the first hours are gone
    kept = [name for name in subjects if ring.read(name, 60)]
    assert len(kept) == len(subjects) - ring.left_out


def _handed(ring: HistoryRing) -> list[StoredHour]:
    hours = [at_once(ring.stored_hour(hour)) for hour in ring.hours]
    return [msgspec.json.decode(msgspec.json.encode(hour), type=StoredHour) for hour in hours]


def test_another_process_goes_on_where_this_one_ended() -> None:
    before, after = HistoryRing(), HistoryRing()
    for minute in range(150):
        _noted(before, FIRST + minute, float(minute))
    for hour in _handed(before):
        after.take(hour, (FIRST + 151) * 60)
    _noted(after, FIRST + 152, 152.0)
    expected = [*range(150), None, None, 152]
    assert _read(after).columns["value"] == expected
    assert after.size <= before.size + 4096


def test_minutes_that_both_have_noted_are_those_of_this_process() -> None:
    before, after = HistoryRing(), HistoryRing()
    for minute in range(6):
        _noted(before, FIRST + minute, float(minute))
    _noted(after, FIRST + 4, 44.0)
    for hour in _handed(before):
        after.take(hour, (FIRST + 5) * 60)
    assert _read(after).columns["value"] == [0, 1, 2, 3, 44]
    _noted(after, FIRST + 5, 55.0)
    _noted(after, FIRST + 7, 77.0)
    assert _read(after).columns["value"] == [0, 1, 2, 3, 44, 55, None, 77]


def test_an_hour_that_ends_while_it_is_taken_over_keeps_the_minutes_of_both() -> None:
    """Before, this process closed the same hour later: theirs was lost, and its bytes counted."""
    before, after = HistoryRing(), HistoryRing()
    for minute in range(60):
        _noted(before, FIRST + minute, float(minute))
    _noted(after, FIRST + 58, 580.0)
    for hour in _handed(before):
        after.take(hour, (FIRST + 60) * 60 + 1)
    assert after.hours == [HOUR]
    _noted(after, FIRST + 60, 600.0)
    assert _read(after).columns["value"] == [*range(58), 580, 59, 600]
    assert after.size == _size_of(after)


def test_an_hour_that_begins_after_it_was_taken_over_goes_on_with_it() -> None:
    """The clock was set back over the end of an hour before this process noted its first minute."""
    before, after = HistoryRing(), HistoryRing()
    for minute in range(58):
        _noted(before, FIRST + minute, float(minute))
    for hour in _handed(before):
        after.take(hour, (FIRST + 60) * 60)
    _noted(after, FIRST + 59, 59.0)
    _noted(after, FIRST + 60, 60.0)
    assert _read(after).columns["value"] == [*range(58), None, 59, 60]
    assert after.size == _size_of(after)


def _size_of(ring: HistoryRing) -> int:
    """The bytes of what is kept, counted again."""
    return ring.subjects * (400 + 4 * 60 * 5) + sum(hour.size for hour in ring._closed.values())


@pytest.mark.parametrize(
    ("ahead", "back"),
    [(400 * 24 * 60, 65), (300, 65), (60, 65), (40, 65), (11, 76), (45, 78)],
    ids=["a year", "hours", "an hour", "next hour", "same hour", "open and closed hour"],
)
def test_a_clock_that_was_ahead_does_not_end_the_history(ahead: int, back: int) -> None:
    """Before, no minute was noted until the clock had come there again."""
    ring = HistoryRing()
    for minute in range(back):
        _noted(ring, FIRST + minute, float(minute))
    for minute in range(3):
        _noted(ring, FIRST + back + ahead + minute, 1000.0)
    _noted(ring, FIRST + back, float(back))
    _noted(ring, FIRST + back + 1, float(back + 1))
    since = 0 if ahead < 24 * 60 else back  # what was too old then is gone
    assert _read(ring).columns["value"] == list(range(since, back + 2))
    assert ring.hours == sorted({HOUR + minute // 60 for minute in range(since, back + 2)})
    assert ring.size == _size_of(ring)


def test_minutes_ahead_in_an_hour_that_was_closed_are_dropped_too() -> None:
    ring = HistoryRing()
    for minute in (0, 10, 40, 70, 20, 21):
        _noted(ring, FIRST + minute, float(minute))
    assert _read(ring).columns["value"] == [0, *[None] * 9, 10, *[None] * 9, 20, 21]
    assert ring.size == _size_of(ring)


def test_a_clock_that_was_set_back_by_minutes_waits() -> None:
    ring = HistoryRing()
    _noted(ring, FIRST + 30, 1.0)
    assert not at_once(ring.turn(FIRST + 20))
    assert _read(ring).columns["value"] == [1]
    _noted(ring, FIRST + 31, 2.0)
    assert _read(ring).columns["value"] == [1, 2]


def test_an_hour_that_is_known_or_too_old_is_not_taken() -> None:
    before, after = HistoryRing(), HistoryRing()
    _noted(before, FIRST, 1.0)
    for ring in (before, after):
        _noted(ring, FIRST + 61, 2.0 if ring is after else 3.0)
    for hour in _handed(before):
        after.take(hour, (FIRST + 62) * 60)
    assert _read(after).columns["value"][-1] == 2
    late = HistoryRing()
    for hour in _handed(before):
        late.take(hour, (FIRST + 60 * 40) * 60)
    assert late.read(LLM, 10_000) is None


BROKEN = {
    "cut off": lambda hour: msgspec.structs.replace(hour, blocks=[hour.blocks[0][:-3]]),
    "no deflate": lambda hour: msgspec.structs.replace(hour, blocks=[b"\xff\xff\xff"]),
    "other states": lambda hour: msgspec.structs.replace(hour, states=["fine"]),
    "other version": lambda hour: msgspec.structs.replace(hour, version=2),
}


@pytest.mark.parametrize("bend", BROKEN.values(), ids=BROKEN)
def test_an_hour_of_another_form_is_refused(bend: object) -> None:
    before, after = HistoryRing(), HistoryRing()
    _noted(before, FIRST, 1.0)
    [hour] = _handed(before)
    assert callable(bend)
    with pytest.raises(HourError):
        after.take(bend(hour), (FIRST + 1) * 60)
    assert after.size == 0


STATES = len(ORDER)
BENT = {
    "state unknown": {"hpa chat llm": ["m", [*[[1]] * 4, [STATES]]]},
    "state of years": {"hpa chat llm": ["m", [*[[1]] * 4, [1e300]]]},
    "state below 0": {"hpa chat llm": ["m", [*[[1]] * 4, [None, -1]]]},
    "state in part": {"hpa chat llm": ["m", [*[[1]] * 4, [2.5]]]},
    "columns": {"hpa chat llm": ["m", [[1]]]},
    "minutes": {"hpa chat llm": ["m", [[1] * 61] * 5]},
    "kind": {"node chat llm": ["m", [[1]] * 5]},
    "order": {"hpa chat b": ["m", [[1]] * 5], "hpa chat a": ["m", [[1]] * 5]},
    "size": {"hpa chat llm": ["m" * (300 << 10), [[1]] * 5]},
    "text": ["hpa chat llm"],
}


@pytest.mark.parametrize("content", BENT.values(), ids=BENT)
def test_a_block_of_another_form_is_refused(content: object) -> None:
    packer = zlib.compressobj(6, wbits=-15)
    block = packer.compress(msgspec.json.encode(content)) + packer.flush()
    [hour] = _handed(_one())
    with pytest.raises(HourError):
        HistoryRing().take(msgspec.structs.replace(hour, blocks=[block]), (FIRST + 1) * 60)


def _one() -> HistoryRing:
    ring = HistoryRing()
    _noted(ring, FIRST, 1.0)
    return ring
