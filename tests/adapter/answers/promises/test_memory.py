"""What was learned about promises survives as text, and the better of two is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.promises.capacity import HALF_LIFE, TOP, LearnedCapacity, StepCounts
from adapter.answers.promises.memory import (
    LONGEST_LINE,
    MOST_BYTES,
    Lesson,
    Topic,
    better_of,
    dump_lessons,
    load_lessons,
)
from adapter.pipeline.catalog.promise import LATENCIES, QUANTILES, parse_promise
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from tests.adapter.answers.promises.windows import window

PROMISE = parse_promise({"ttft_p90": "1s", "itl_p50": "7.5ms"})
NOW = 1_700_000_000.0


def topic(name: str = "llm", gpu: str = "NVIDIA-H100") -> Topic:
    """A Deployment and a promise."""
    return Topic("ml", Workload(DEPLOYMENTS, name), PROMISE, gpu)


def lesson(requests: float = 500, time: float = NOW) -> Lesson:
    """Requests at one load."""
    return Lesson(
        time, {12: StepCounts([requests] * 2, [5.0, 0.0], [9.5, 0.25], 320.0, 8.0, 900.5, 8.0, 8.0)}
    )


def test_what_is_written_is_read_again() -> None:
    lessons = {topic(): lesson(), topic("bare", ""): lesson(30, NOW - 60)}
    text, left_out = dump_lessons(lessons, NOW)
    assert (load_lessons(text), left_out) == ((lessons, 0), 0)


counts = st.floats(0, 1e9).map(lambda count: float(f"{count:.4g}"))


@given(
    st.dictionaries(
        st.integers(0, TOP),
        st.tuples(st.floats(1, 1e9).map(lambda n: float(f"{n:.4g}")), counts, counts, counts),
        min_size=1,
    )
)
def test_every_lesson_is_read_as_it_was_written(steps: dict[int, Any]) -> None:
    made = {
        place: StepCounts(
            [1e9, requests], [0.0, requests], [0.5, tokens], 9.0, 1.0, tokens, windows, counted
        )
        for place, (requests, tokens, windows, counted) in steps.items()
    }
    lessons = {topic(): Lesson(NOW, made)}
    assert load_lessons(dump_lessons(lessons, NOW)[0]) == (lessons, 0)


def test_a_capacity_is_the_same_after_a_restart() -> None:
    learned = LearnedCapacity(parse_promise({"ttft_p90": "1s"}))
    for turn, (load, late) in enumerate([(8, 0), (16, 0), (32, 30)] * 5):
        learned.observe("a", window(NOW + 60.0 * turn, load, 60, late, tokens=10 * load))
    time, steps = learned.steps()
    about = Topic("ml", Workload(DEPLOYMENTS, "llm"), learned.promise, "")
    text, _ = dump_lessons({about: Lesson(time, steps)}, time)
    lessons, _ = load_lessons(text)
    again = LearnedCapacity(learned.promise)
    again.recall(lessons[about].steps, lessons[about].time)
    before, after = learned.capacity(), again.capacity()
    assert before is not None
    assert after is not None
    assert after.load == pytest.approx(before.load, rel=0.001)
    assert after.tokens == pytest.approx(before.tokens, rel=0.001)
    assert (after.seen, round(after.requests)) == (before.seen, round(before.requests))


def test_of_two_the_one_with_more_evidence_by_now_is_kept() -> None:
    old, new = lesson(1000, NOW - 2 * HALF_LIFE), lesson(300, NOW)
    assert better_of({topic(): old}, {topic(): new}, NOW) == {topic(): new}
    assert better_of({topic(): new}, {topic(): old}, NOW) == {topic(): new}
    assert better_of({topic(): lesson(1000, NOW - 60)}, {topic(): new}, NOW) != {topic(): new}


def test_what_has_lost_its_weight_is_forgotten() -> None:
    assert dump_lessons({topic(): lesson(100, NOW - 8 * HALF_LIFE)}, NOW) == ("", 0)


def test_a_full_text_keeps_what_has_most_evidence_and_says_how_many_it_leaves_out() -> None:
    lessons = {topic(f"llm-{n:05}"): lesson(n + 10) for n in range(5000)}
    text, left_out = dump_lessons(lessons, NOW)
    kept, unread = load_lessons(text)
    assert len(text.encode()) <= MOST_BYTES
    assert (len(kept) + left_out, unread) == (5000, 0)
    assert left_out > 0
    assert {about.workload.name for about in kept} == {f"llm-{n:05}" for n in range(left_out, 5000)}


def test_a_namespace_with_large_numbers_does_not_push_out_the_lessons_of_others() -> None:
    noisy = {topic(f"noisy-{n:05}")._replace(namespace="noisy"): lesson(1e12) for n in range(5000)}
    quiet = {topic("quiet"): lesson(100)}
    text, left_out = dump_lessons({**noisy, **quiet}, NOW)
    assert left_out > 0
    assert quiet.items() <= dict(load_lessons(text)[0]).items()


def test_the_longest_line_is_read() -> None:
    keys = [f"{name}_{p}" for name in LATENCIES for p in QUANTILES]
    promise = parse_promise(dict.fromkeys(keys, "1s"))
    full = [1e15] * len(promise)
    counts = StepCounts(full, full, full, 1e15, 1e15, 1e15, 1e15, 1e15)
    steps = dict.fromkeys(range(TOP + 1), counts)
    lessons = {Topic("ml", Workload(DEPLOYMENTS, "llm"), promise, ""): Lesson(NOW, steps)}
    text, _ = dump_lessons(lessons, NOW)
    assert load_lessons(text) == (lessons, 0)


GOOD = json.loads(dump_lessons({topic(): lesson()}, NOW)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"promise": {}},
        {"promise": {"ttft_p90": "soon"}},
        {"time": -1},
        {"time": 1e300},
        {"steps": {"-1": [1, [0, 0], [0, 0], 1, 1, 1, 1, 1]}},
        {"steps": {str(TOP + 1): [1, [0, 0], [0, 0], 1, 1, 1, 1, 1]}},
        {"steps": {"1": [1, [0], [0, 0], 1, 1, 1, 1, 1]}},
        {"steps": {"1": [-1, [0, 0], [0, 0], 1, 1, 1, 1, 1]}},
        {"steps": {"x": [1, [0, 0], [0, 0], 1, 1, 1, 1, 1]}},
        {"steps": {"9" * 5000: [1, [0, 0], [0, 0], 1, 1, 1, 1, 1]}},
        {"unknown": 1},
        {"name": "x" * LONGEST_LINE},
    ],
)
def test_a_line_that_cannot_be_meant_is_left_out_and_the_rest_is_read(change: Any) -> None:
    wrong = json.dumps(GOOD | change)
    lessons, unread = load_lessons("\n".join((wrong, "{", "[" * 100_000, json.dumps(GOOD))))
    assert (lessons, unread) == ({topic(): lesson()}, 3)


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    lessons, _ = load_lessons(text)
    assert lessons == {}


def test_more_late_requests_than_requests_are_not_believed() -> None:
    steps = {"1": [[10, 10], [99, 0], [0, 0], 1, 1, 1, 1, 1]}
    lessons, _ = load_lessons(json.dumps(GOOD | {"steps": steps}))
    assert lessons[topic()].steps[1].late == [10, 0]
