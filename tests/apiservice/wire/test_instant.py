from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apiservice.wire import instant


def test_a_time_is_written_in_whole_seconds_of_utc() -> None:
    assert instant.write(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert instant.minute(1_700_000_000.9) == "2023-11-14 22:13 UTC"


@pytest.mark.parametrize(
    "stamp",
    [
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20+01:00",
        "2023-11-14T22:13:20",
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        datetime(2023, 11, 14, 22, 13, 20),  # noqa: DTZ001 - as YAML parses it
    ],
)
def test_a_time_without_a_zone_is_utc(stamp: object) -> None:
    assert instant.read(stamp) == 1_700_000_000


@pytest.mark.parametrize("stamp", [None, "", "soon", 20231114])
def test_a_missing_or_invalid_time_is_none(stamp: object) -> None:
    assert instant.read(stamp) is None


def test_few_times_are_kept() -> None:
    for second in range(5000):
        instant.write(float(second))
    assert instant.write.cache_info().currsize == 4096
