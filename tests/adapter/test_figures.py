from __future__ import annotations

import pytest

from adapter.figures import age, count, decimal, join_names, memory, number, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (172799, "47h"),
        (172800, "2d"),
    ],
)
def test_an_age_is_written_as_kubectl_writes_it(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0%"),
        (0.4, "0.4%"),
        (0.04, "<0.1%"),
        (7, "7%"),
        (9.97, "10%"),
        (87.4, "87%"),
        (100, "100%"),
    ],
)
def test_a_percentage_keeps_a_decimal_below_ten(value: float, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("used", "total", "text"),
    [
        (0, None, "0"),
        (2**31, None, "2Gi"),
        (31.24 * 2**30, 80 * 2**30, "31.2/80Gi"),
        (0, 16 * 2**30, "0/16Gi"),
        (30 * 2**20, 80 * 2**30, "<0.1/80Gi"),
        (6 * 2**20, None, "6Mi"),
    ],
)
def test_memory_is_written_in_the_unit_of_the_larger_amount(
    used: float, total: float | None, text: str
) -> None:
    assert memory(used, total) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (87.5, "87.5"), (0.30000000004, "0.3"), (999.9994, "999.999"), (1234.5, "1234")],
)
def test_a_number_keeps_three_decimals_below_a_thousand(value: float, text: str) -> None:
    assert number(value) == text


def test_a_decimal_has_no_zeros_at_its_end() -> None:
    assert [decimal(value, 2) for value in (100, 1.5, 0.333)] == ["100", "1.5", "0.33"]
    assert decimal(100, 0) == "100"


def test_one_thing_has_no_plural() -> None:
    assert [count(amount, "pod") for amount in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]


def test_a_list_of_names_counts_those_beyond_the_first() -> None:
    names = ["a", "b", "c"]
    assert [join_names(names[:most]) for most in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [join_names(names, most) for most in (1, 2)] == ["a and 2 more", "a, b and 1 more"]
