"""Quantities are milli-precise, canonical, and refuse what would not parse."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from apiservice.wire.quantity import format_binary, format_milli, to_milli

LIMIT = 9_200_000_000_000_000_000
"""Thousandths that an int64 holds."""


def official(text: str) -> Decimal:
    value: Decimal = parse_quantity(text)
    return value


VECTORS = {
    "zero": (0.0, "0"),
    "half": (0.5, "500m"),
    "percent": (87.5, "87500m"),
    "thousand": (1000.0, "1k"),
    "no suffix": (1500.0, "1500"),
    "million": (1e6, "1M"),
    "80 GiB": (85899345920.0, "85899345920"),
    "negative": (-0.5, "-500m"),
    "negative zero": (-0.0, "0"),
    "rounds to nearest, not up": (0.1 + 0.2, "300m"),
    "rounds up past the half": (1.0007, "1001m"),
    "is not truncated": (1.001, "1001m"),
    "too small to say": (0.0004, "0"),
    "ten thousand whole GPUs, exact": (858993459200001.0, "858993459200001"),
    "peta": (3e15, "3P"),
    "largest": (9.199e15, "9199T"),
}


@pytest.mark.parametrize(("value", "text"), VECTORS.values(), ids=VECTORS)
def test_a_value_has_one_canonical_text(value: float, text: str) -> None:
    assert format_milli(to_milli(value)) == text


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), 9.2e15, -9.2e15, 1e300]
)
def test_what_an_int64_of_thousandths_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity: it must be finite and below 9.2e15"):
        to_milli(value)


@given(st.integers(-LIMIT, LIMIT))
def test_the_official_parser_reads_back_what_was_written(milli: int) -> None:
    assert official(format_milli(milli)) == Decimal(milli) / 1000


@given(st.floats(-9e15, 9e15))
def test_a_value_moves_by_at_most_half_a_thousandth(value: float) -> None:
    shown = official(format_milli(to_milli(value)))
    # The product with 1000 may be off by its last bit.
    last_bit = abs(Decimal(value)) * Decimal(2) ** -52
    assert abs(shown - Decimal(value)) <= Decimal("0.0005") + last_bit


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (0, "0"),
        (1023_000, "1023"),
        (1024_000, "1Ki"),
        (1025_000, "1025"),
        (1_048_576_000, "1Mi"),
        (1_048_576_500, "1048576500m"),
        (3 * 1024**3 * 1000, "3Gi"),
        (1_000_000_000, "1000000"),
        (-2048_000, "-2Ki"),
    ],
)
def test_bytes_are_canonical(milli: int, text: str) -> None:
    assert format_binary(milli) == text
    assert official(text) * 1000 == milli
