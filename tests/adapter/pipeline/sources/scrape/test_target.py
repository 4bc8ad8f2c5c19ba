"""When a target is scraped."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.sources.scrape.client import _address
from adapter.pipeline.sources.scrape.target import due, phase_of

_URLS = [f"http://10.{i // 256}.{i % 256}.1:9400/metrics" for i in range(1250)]


def test_targets_are_spread_evenly_over_the_interval() -> None:
    tenths = [0] * 10
    for url in _URLS:
        tenths[int(phase_of(url, 5.0) / 5.0 * 10)] += 1
    assert min(tenths) > 90
    assert max(tenths) < 160


def test_a_target_keeps_its_phase() -> None:
    assert phase_of(_URLS[7], 5.0) == phase_of(_URLS[7], 5.0)
    assert phase_of(_URLS[7], 10.0) == pytest.approx(2 * phase_of(_URLS[7], 5.0))


_TIME = st.floats(1e9, 2e9)
_INTERVAL = st.floats(0.1, 600.0)
_PART = st.floats(0.0, 0.999)
_FAILURES = st.integers(0, 1000)


@given(_TIME, _INTERVAL, _PART, _FAILURES, st.floats(0.1, 600.0))
def test_the_next_scrape_keeps_the_phase_and_the_maximum_back_off(
    now: float, interval: float, part: float, failures: int, longest: float
) -> None:
    start = part * interval
    then = due(now, start, interval, failures, longest)
    assert then >= now - 1e-6
    turns = (then - start) / interval
    assert math.isclose(turns, round(turns), abs_tol=1e-3)
    assert then - now <= max(interval, longest) + 1e-3


BACK_OFF = [(0, 5), (1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (50, 60)]


@pytest.mark.parametrize(("failures", "wait"), BACK_OFF)
def test_the_wait_doubles_after_the_second_failure(failures: int, wait: float) -> None:
    assert due(1000.0, 0.0, 5.0, failures, 60.0) - 1000.0 == wait


def test_the_oldest_address_is_parsed_again() -> None:
    first = _address(_URLS[0])
    assert _address(_URLS[0]) is first
    for number in range(8192):
        _address(f"http://10.0.0.1:{number}/metrics")
    assert _address.cache_info().currsize == 8192
    again = _address(_URLS[0])
    assert again is not first
    assert again == first
