"""Durations read as Prometheus expects a histogram to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apiservice.selfmetrics.durations import SLOW, Durations, merge_durations


def test_a_bound_belongs_to_its_bucket() -> None:
    took = Durations((0.1, 1.0))
    for seconds in (0.1, 0.2, 1.0, 7.0):
        took.observe(seconds)
    assert list(took.cumulative()) == [("0.1", 1), ("1.0", 3), ("+Inf", 4)]


@given(st.lists(st.lists(st.floats(0, 100)), min_size=1))
def test_all_together_have_what_each_has(parts: list[list[float]]) -> None:
    durations = []
    for seconds in parts:
        took = Durations(SLOW)
        for one in seconds:
            took.observe(one)
        durations.append(took)
    whole = merge_durations(durations)
    assert whole.count == sum(map(len, parts)) == list(whole.cumulative())[-1][1]
    assert whole.buckets == [sum(row) for row in zip(*(t.buckets for t in durations), strict=True)]
