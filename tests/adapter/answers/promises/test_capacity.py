"""The capacity that a workload's own windows teach."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.promises.capacity import (
    BEYOND,
    ENOUGH,
    FULL,
    HALF_LIFE,
    LINEAR,
    STEP,
    LearnedCapacity,
    pool_shares,
)
from adapter.pipeline.catalog.increases import Increase
from adapter.pipeline.catalog.promise import parse_promise
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow
from tests.adapter.answers.promises.windows import window

PROMISE = parse_promise({"ttft_p90": "1s"})


def taught(
    pairs: list[tuple[float, float]], times: int = 10, *, tokens: float | None = None
) -> LearnedCapacity:
    """Return what pairs of a load and the share of late requests teach, a minute each."""
    learned = LearnedCapacity(PROMISE)
    for turn in range(times):
        for number, (load, share) in enumerate(pairs):
            end = 60.0 * (1 + turn * len(pairs) + number)
            own = None if tokens is None else tokens * load
            learned.observe("a", window(end, load, 20 * (1 - share), 20 * share, tokens=own))
    return learned


def test_without_enough_requests_there_is_no_capacity() -> None:
    learned = LearnedCapacity(PROMISE)
    learned.observe("a", window(60, 8, ENOUGH - 1))
    assert learned.capacity() is None
    learned.observe("a", window(120, 8, 20))
    assert learned.capacity() is not None


def test_the_capacity_is_where_late_requests_pass_the_tolerance() -> None:
    capacity = taught([(8, 0.0), (16, 0.0), (32, 0.5)]).capacity()
    assert capacity is not None
    assert capacity.seen
    assert 16 / STEP < capacity.load < 32


def test_a_promise_that_never_broke_says_little_beyond_the_highest_load() -> None:
    capacity = taught([(8, 0.0), (16, 0.0)]).capacity()
    assert capacity is not None
    assert not capacity.seen
    assert 16 / STEP < capacity.load <= 16 * STEP * BEYOND


def test_near_the_tolerance_nothing_beyond_the_highest_load_is_assumed() -> None:
    free, near = (taught([(8, 0.0), (16, share)]).capacity() for share in (0.0, 0.09))
    assert free is not None
    assert near is not None
    assert near.load < free.load


def test_late_requests_at_a_low_load_do_not_outweigh_many_kept_at_a_higher_one() -> None:
    capacity = taught([(8, 0.12), (16, 0.0), (16.1, 0.0), (16.2, 0.0)]).capacity()
    assert capacity is not None
    assert capacity.load > 16 / STEP


def test_a_promise_that_no_load_keeps_has_no_capacity() -> None:
    assert taught([(1, 0.9), (2, 0.9)]).capacity() is None


def test_windows_that_overlap_count_once() -> None:
    learned = LearnedCapacity(PROMISE)
    for end in (60, 75, 90, 105, 120):
        learned.observe("a", window(end, 8, 60))
    capacity = learned.capacity()
    assert capacity is not None
    assert capacity.requests == pytest.approx(120, rel=0.01)


def test_old_evidence_loses_half_of_its_weight_in_a_half_life() -> None:
    learned = LearnedCapacity(PROMISE)
    learned.observe("a", window(60, 8, 200))
    learned.observe("b", window(60 + HALF_LIFE, 8, 100))
    capacity = learned.capacity()
    assert capacity is not None
    assert capacity.requests == pytest.approx(200, rel=0.01)


def test_evidence_keeps_its_weight_without_a_half_life() -> None:
    learned = LearnedCapacity(PROMISE, math.inf)
    learned.observe("a", window(60, 8, 200))
    learned.observe("b", window(60 + 100 * HALF_LIFE, 8, 100))
    assert learned.evidence == 300


def test_tokens_at_the_capacity_are_those_of_the_loads_beside_it() -> None:
    capacity = taught([(8, 0.0), (16, 0.0), (32, 0.5)], tokens=10).capacity()
    assert capacity is not None
    assert capacity.tokens == pytest.approx(10 * capacity.load, rel=0.15)


def test_a_server_that_counts_no_tokens_has_none_at_its_capacity() -> None:
    capacity = taught([(8, 0.0), (32, 0.5)]).capacity()
    assert capacity is not None
    assert capacity.tokens is None


def test_the_growth_of_a_load_is_that_of_the_last_minute() -> None:
    learned = LearnedCapacity(PROMISE)
    assert learned.growth("a") == 0
    for end, load in ((60, 100), (75, 4), (135, 64)):
        learned.observe("a", window(end, load))
    assert learned.growth("a") == 1.0
    learned.forget_pods(1000.0)
    assert learned.growth("a") == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(1, 1000)).map(
            lambda pair: (pair[0] * pair[1], pair[1])
        ),
        min_size=1,
    )
)
def test_pooled_shares_never_fall_and_keep_their_sum(counts: list[tuple[float, float]]) -> None:
    shares = pool_shares(counts)
    assert all(low <= high * (1 + 1e-9) + 1e-12 for low, high in pairwise(shares))
    total = sum(share * whole for share, (_, whole) in zip(shares, counts, strict=True))
    assert total == pytest.approx(sum(part for part, _ in counts), abs=1e-6)


BOTH = parse_promise({"ttft_p90": "1s", "itl_p90": "50ms"})


def calm(itl: float | None, cache: float | None, late: float = 0.0) -> float:
    """Return the capacity that windows at a load of 16 teach; their promise never broke."""
    learned = LearnedCapacity(BOTH if itl is not None else PROMISE)
    for turn in range(10):
        end = 60.0 * (1 + turn)
        learned.observe("a", window(end, 16, 20 - late, late, cache=cache, itl=itl))
    capacity = learned.capacity()
    assert capacity is not None
    assert not capacity.seen
    return capacity.load


def test_the_time_between_tokens_says_how_far_above_the_seen_load_a_promise_holds() -> None:
    usual = calm(None, 20.0)
    # The quantile of a bucket up to 30 ms is 27 ms: it reaches 50 ms at 1.85 times the load.
    assert calm(0.030, 20.0) == pytest.approx(usual / BEYOND * 50 / 27, rel=0.01)
    assert calm(0.010, 20.0) == pytest.approx(usual / BEYOND * LINEAR)
    assert calm(0.054, 20.0) == usual


def test_a_cache_that_fills_up_ends_the_estimate_and_without_one_there_is_none() -> None:
    usual = calm(None, 20.0)
    assert calm(0.010, 50.0) == pytest.approx(usual / BEYOND * FULL / 50)
    assert calm(0.010, 90.0) == usual
    assert calm(0.010, None) == usual


def test_late_requests_end_the_estimate() -> None:
    assert calm(0.010, 20.0, late=1.9) < calm(None, 20.0)


def test_a_window_that_is_not_newer_teaches_nothing() -> None:
    """A server whose page has the same time again and again divided by zero."""
    learned = LearnedCapacity(PROMISE)
    for end, load in ((60, 8), (60, 800), (60, 8)):
        learned.observe("a", window(end, load, 200))
    assert learned.growth("a") == 0
    capacity = learned.capacity()
    assert capacity is not None
    assert capacity.load < 80


@pytest.mark.parametrize("load", [1e308, 1.7e308])
def test_no_load_of_a_page_is_too_high(load: float) -> None:
    learned = LearnedCapacity(PROMISE)
    learned.observe("a", replace(window(60, load, 200), waiting=load))
    capacity = learned.capacity()
    assert capacity is not None
    assert capacity.load < 1e8


def tokens(end: float, late: float) -> RequestWindow:
    """Sixty requests at a load of 16, whose histogram of tokens counts 200 for each."""
    whole = window(end, 16, 60)
    count = 12_000.0
    counts = (count * (1 - late), count * late, 0.0)
    increase = Increase(end - 60, end, (0.05, 0.1), counts, None)
    return replace(whole, latencies={**whole.latencies, Latency.OUTPUT_TOKEN: increase})


def test_a_histogram_of_tokens_beside_one_of_requests_does_not_break_the_promise() -> None:
    learned = LearnedCapacity(BOTH)
    for turn in range(10):
        learned.observe("a", tokens(60.0 * (1 + turn), late=0.02))
    capacity = learned.capacity()
    assert capacity is not None
    assert not capacity.seen
    assert capacity.load > 16
    time, steps = learned.steps()
    (step,) = steps.values()
    late, counted = step.share(0)
    assert late / counted == pytest.approx(0.02)
    assert counted == pytest.approx(200 * step.requests)
    assert step.requests == pytest.approx(600, rel=0.05)
    again = LearnedCapacity(BOTH)
    again.recall(steps, time)
    assert again.capacity() == capacity


def test_windows_in_which_no_request_ends_say_that_answers_begin_late() -> None:
    learned = LearnedCapacity(BOTH)
    for turn in range(20):
        whole = window(60.0 * (1 + turn), 16, 30, 30, itl=0.05)
        if turn % 2:
            none = replace(whole.latencies[Latency.OUTPUT_TOKEN], counts=(0.0, 0.0))
            whole = replace(whole, latencies={**whole.latencies, Latency.OUTPUT_TOKEN: none})
        learned.observe("a", whole)
    (step,) = learned.steps()[1].values()
    index = [bound.latency for bound in BOTH].index(Latency.FIRST_TOKEN)
    late, counted = step.share(index)
    assert late / counted == 0.5
    assert counted == pytest.approx(2 * step.requests, rel=0.1)


def test_a_pod_that_misses_answers_is_not_learned_twice() -> None:
    every, some = LearnedCapacity(PROMISE), LearnedCapacity(PROMISE)
    for turn in range(41):
        end = 60.0 + 15 * turn
        every.observe("a", window(end, 8, 40))
        if turn % 2:
            some.observe("a", window(end, 8, 40))
        for learned in (every, some):
            learned.forget_pods(end - 120)
    assert some.evidence <= every.evidence


def test_a_question_that_ends_late_teaches_nothing() -> None:
    learned = LearnedCapacity(PROMISE)
    for end in (60, 120, 105, 135, 90, 180):
        learned.observe("a", window(end, 8, 40))
    assert learned.evidence == pytest.approx(120, rel=0.05)


def test_after_the_clock_was_set_back_it_goes_on_learning() -> None:
    learned = LearnedCapacity(PROMISE)
    for end in (100_060, 60, 120, 180):
        learned.observe("a", window(end, 8, 40))
    assert learned.evidence == 160
