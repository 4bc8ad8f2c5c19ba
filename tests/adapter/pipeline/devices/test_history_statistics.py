"""Rates and percentiles of a run of samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.devices.history import percentile, rate

RATES = {
    "steady": ([(0, 10), (10, 30), (20, 50)], -1, 2.0),
    "only what is in the window": ([(0, 0), (10, 100), (20, 110), (30, 120)], 5, 1.0),
    "one in the window: the one before it counts too": ([(0, 0), (60, 30)], 30, 0.5),
    "a restart begins at 0": ([(0, 100), (10, 5), (20, 10)], -1, 0.5),
    "a counter that rests": ([(0, 7), (10, 7)], -1, 0.0),
    "one sample gives no rate": ([(0, 7)], -1, None),
    "no sample gives no rate": ([], -1, None),
}


@pytest.mark.parametrize("name", RATES)
def test_a_rate_is_the_increase_per_second(name: str) -> None:
    samples, since, expected = RATES[name]
    assert rate([(float(t), float(v)) for t, v in samples], since) == expected


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([1, 2, 3, 4, 5], 50, 3),
        ([5, 1, 4, 2, 3], 100, 5),
        ([1, 2, 3, 4, 5], 0, 1),
        ([10, 20], 95, 19.5),
        ([7], 99, 7),
    ],
)
def test_a_percentile_is_interpolated_as_prometheus_does(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.floats(0, 100))
def test_a_percentile_lies_among_its_values(values: list[float], share: float) -> None:
    slack = 1e-9 * max(values)
    assert min(values) - slack <= percentile(values, share) <= max(values) + slack


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20))
def test_a_rate_is_never_negative(values: list[float]) -> None:
    per_second = rate([(float(i), value) for i, value in enumerate(values)], -1.0)
    assert per_second is not None
    assert per_second >= 0
