"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from apiservice.wire import duration


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (1500, "1.5s"),
        (30_000, "30s"),
        (60_000, "1m0s"),
        (90_250, "1m30.25s"),
        (300_000, "5m0s"),
        (3_600_000, "1h0m0s"),
        (90_061_000, "25h1m1s"),
    ],
)
def test_the_text_is_that_of_go(milli: int, text: str) -> None:
    assert duration.write(milli) == text
