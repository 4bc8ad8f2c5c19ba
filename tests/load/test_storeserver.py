"""The stand-in for a store answers in the form of Prometheus, with the values of the pages."""

from __future__ import annotations

import json

import pytest

from load.fleet import pages, slots
from load.page import UTIL
from load.storeserver import SCRAPES, answer
from tests.load.test_fleet import values

NOW = 1_700_000_000.0
PODS = 9
QUERY = f'{{__name__=~"{UTIL}|DCGM_FI_DEV_FB_USED|absent"}}[90000ms]'


def test_each_series_has_the_samples_of_the_period_and_the_values_of_the_pages() -> None:
    made = json.loads(b"".join(answer(list(slots(PODS)), QUERY, NOW)))
    result = made["data"]["result"]
    assert len(result) == 2 * PODS
    for series in result:
        times = [time for time, _ in series["values"]]
        assert len(times) == 6
        assert NOW - SCRAPES < times[-1] <= NOW
        node, pod = series["metric"]["Hostname"], series["metric"]["pod"]
        for time, value in series["values"][-1:]:
            page = pages(PODS)[node].render(int(time // SCRAPES * SCRAPES))
            assert values(page, series["metric"]["__name__"])[pod] == float(value)


def test_a_query_for_other_series_has_an_empty_answer() -> None:
    made = json.loads(b"".join(answer(list(slots(PODS)), '{__name__=~"absent"}[90000ms]', NOW)))
    assert made["data"]["result"] == []


def test_another_query_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a range selector"):
        list(answer([], "sum(x)", NOW))
