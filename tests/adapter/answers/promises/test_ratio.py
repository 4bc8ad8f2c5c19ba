"""A pod's value: what decides it, and how far it can be off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.promises.capacity import PodCapacity
from adapter.answers.promises.ratio import (
    FEW,
    WORST_LATENCY,
    Basis,
    latency_ratio,
    pod_ratio,
)
from adapter.pipeline.catalog.promise import MOST, parse_promise
from adapter.pipeline.catalog.requestwindow import RequestWindow
from tests.adapter.answers.promises.windows import window

PROMISE = parse_promise({"ttft_p90": "1s"})
KNOWN = PodCapacity(load=20.0, tokens=400.0, requests=1000.0, seen=True)


def test_without_evidence_the_cautious_rule_decides_and_says_so() -> None:
    ratio = pod_ratio(window(60, 12), None, None, 0.0)
    assert ratio == (0.5, Basis.CAUTIOUS)
    assert pod_ratio(window(60, 12, waiting=6), None, None, 0.0) == (1.5, Basis.CAUTIOUS)


def test_a_page_without_requests_gives_no_value() -> None:
    page = RequestWindow(60, {}, None, None, None, None, None)
    assert pod_ratio(page, KNOWN, None, 0.0) is None


def test_the_load_is_divided_by_the_capacity() -> None:
    assert pod_ratio(window(60, 10), KNOWN, None, 0.0) == (0.5, Basis.LOAD)


def test_tokens_decide_where_they_say_more_and_never_more_than_full() -> None:
    assert pod_ratio(window(60, 10, tokens=300), KNOWN, None, 0.0) == (0.75, Basis.TOKENS)
    assert pod_ratio(window(60, 10, tokens=900), KNOWN, None, 0.0) == (1.0, Basis.TOKENS)


def test_a_breach_counts_at_once() -> None:
    assert pod_ratio(window(60, 2), KNOWN, 1.4, 0.0) == (1.4, Basis.LATENCY)


def test_a_kept_latency_lowers_nothing() -> None:
    assert pod_ratio(window(60, 10), KNOWN, 0.1, 0.0) == (0.5, Basis.LOAD)


def test_a_queue_of_a_long_overload_is_not_taken_for_traffic() -> None:
    long = window(60, 60, waiting=40, tokens=400, requests=2.0)
    steady, growing = (pod_ratio(long, KNOWN, None, growth) for growth in (0.0, 1.0))
    assert steady is not None
    assert growing is not None
    assert steady.value == pytest.approx(1 + 40 / 600)
    assert growing.value == pytest.approx(1.5 + 40 / 600)


@given(
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(-1e6, 1e6),
    st.booleans(),
)
def test_a_value_is_bounded_and_never_less_than_full_above_the_capacity(
    running: float, waiting: float, tokens: float, requests: float, growth: float, known: bool
) -> None:
    page = window(60, running + waiting, waiting=waiting, tokens=tokens, requests=requests)
    ratio = pod_ratio(page, KNOWN if known else None, None, growth)
    assert ratio is not None
    assert 0 <= ratio.value <= MOST
    if known and running + waiting >= KNOWN.load * (1 + 1e-6):
        assert ratio.value >= 1


def test_the_latency_is_that_of_all_pods_requests_together() -> None:
    slow, quick = window(60, 1, kept=10, late=10), window(60, 1, kept=190)
    assert latency_ratio(PROMISE, [slow]) == WORST_LATENCY
    together = latency_ratio(PROMISE, [slow, quick])
    assert together is not None
    assert together < 1


def test_few_requests_say_nothing_of_the_latency() -> None:
    assert latency_ratio(PROMISE, [window(60, 1, kept=FEW - 1)]) is None
    assert latency_ratio(PROMISE, [window(60, 1, kept=FEW)]) is not None
    assert latency_ratio(PROMISE, []) is None
