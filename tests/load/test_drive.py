"""Evaluation of a client's outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.drive import Measured, middle, percentile


def measured(rate: float, cpu: float = 1.0, gross: float = 1.0) -> Measured:
    return Measured(
        rate=rate,
        p50=1.0,
        p99=2.0,
        cpu={"adapter": cpu},
        gross={"adapter": gross},
        busy={"adapter": 1.0},
        client=0.5,
        body=10,
        tick=0.001,
    )


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [
        pytest.param([5.0], 0.99, 5.0, id="one value is every percentile"),
        pytest.param([1.0, 2.0, 3.0, 4.0], 0.5, 2.0, id="the lower middle of an even count"),
        pytest.param(list(map(float, range(1, 101))), 0.99, 99.0, id="the 99th of a hundred"),
        pytest.param([1.0, 9.0], 1.0, 9.0, id="the greatest"),
    ],
)
def test_percentiles_are_nearest_rank(values: list[float], share: float, wanted: float) -> None:
    assert percentile(values, share) == wanted


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_at_least_the_given_fraction_does_not_exceed_its_percentile(
    values: list[float], share: float
) -> None:
    ordered = sorted(values)
    bound = percentile(ordered, share)
    assert sum(value <= bound for value in ordered) >= share * len(ordered) - 1e-9


def test_the_summary_of_runs_is_the_median_of_each_figure() -> None:
    runs = [measured(10, cpu=3), measured(30, cpu=1), measured(20, cpu=2)]
    assert middle(runs).rate == 20
    assert middle(runs).cpu == {"adapter": 2}


@pytest.mark.parametrize(
    ("cpu", "gross", "text"),
    [
        pytest.param(2.0, 2.5, "2.00", id="stands out"),
        pytest.param(0.0, 0.004, "< 0.004", id="is bounded where it does not"),
        pytest.param(0.0, 0.0, "< 0.001", id="is never nothing"),
    ],
)
def test_a_cost_within_noise_is_reported_as_a_bound(cpu: float, gross: float, text: str) -> None:
    assert measured(1, cpu, gross).cost("adapter") == text
