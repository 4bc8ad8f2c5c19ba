"""Valid numbers, and numbers that are left out."""

from __future__ import annotations

import math

import pytest

from adapter.pipeline.devices.validity import (
    SENTINELS,
    Invalid,
    RatioScale,
    complaint,
    percent_of,
    scale_shown,
)
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS

AUTO, RATIO, PERCENT = RatioScale.AUTO, RatioScale.RATIO, RatioScale.PERCENT


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0.0, None),
        (100.0, None),
        (100.5, Invalid.OUT_OF_RANGE),
        (-1.0, Invalid.OUT_OF_RANGE),
        (808334905.0, Invalid.OUT_OF_RANGE),
        (4294967295.0, Invalid.OUT_OF_RANGE),
        (218322032.0, Invalid.OUT_OF_RANGE),
        (2147483632.0, Invalid.SENTINEL),
        (2147483635.0, Invalid.SENTINEL),
        (9223372036854775794.0, Invalid.SENTINEL),
        (140737488355328.0, Invalid.SENTINEL),
        (140737488355331.0, Invalid.SENTINEL),
        (math.nan, Invalid.NOT_FINITE),
        (math.inf, Invalid.NOT_FINITE),
        (-math.inf, Invalid.NOT_FINITE),
    ],
)
def test_percentages_are_validated(value: float, reason: Invalid | None) -> None:
    assert complaint(value, 0, 100) is reason


def test_nan_is_missing_in_every_range() -> None:
    assert all(complaint(value, 0, 1e19) is Invalid.SENTINEL for value in SENTINELS)


@pytest.mark.parametrize(
    ("values", "before", "after"),
    [
        ([0.87, 0.0], AUTO, RATIO),
        ([87.0, 0.0, 1.0], AUTO, PERCENT),
        ([0.87, 87.0], RATIO, AUTO),
        ([1.0, 0.0], AUTO, AUTO),
        ([1.0, 0.0], PERCENT, PERCENT),
        ([], RATIO, RATIO),
        ([87.0], RATIO, PERCENT),
        ([ONE_WITH_DECIMALS], AUTO, RATIO),
        ([ONE_WITH_DECIMALS, 0.5], AUTO, RATIO),
        ([ONE_WITH_DECIMALS, 87.0], AUTO, AUTO),
        ([ONE_WITH_DECIMALS], PERCENT, AUTO),
    ],
)
def test_the_scale_follows_from_values_other_than_0_and_1_or_a_1_with_decimals(
    values: list[float], before: RatioScale, after: RatioScale
) -> None:
    assert scale_shown(values, before) is after


@pytest.mark.parametrize(
    ("value", "scale", "percent"),
    [
        (0.87, AUTO, 87.0),
        (87.0, AUTO, 87.0),
        (0.0, AUTO, 0.0),
        (1.0, AUTO, Invalid.AMBIGUOUS_SCALE),
        (1.0, RATIO, 100.0),
        (1.0, PERCENT, 1.0),
        (1.75, RATIO, Invalid.OUT_OF_RANGE),
        (1.75, AUTO, 1.75),
        (101.0, PERCENT, Invalid.OUT_OF_RANGE),
        (-0.5, AUTO, Invalid.OUT_OF_RANGE),
    ],
)
def test_a_ratio_is_converted_to_percent(
    value: float, scale: RatioScale, percent: float | Invalid
) -> None:
    assert percent_of(value, scale) == percent
