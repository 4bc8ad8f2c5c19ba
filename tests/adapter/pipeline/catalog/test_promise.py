"""Promises as people write them: what is meant, and what is refused with its fix."""

from __future__ import annotations

import re

import pytest

from adapter.pipeline.catalog.promise import LatencyBound, PromiseError, parse_promise
from adapter.pipeline.catalog.requestwindow import Latency


@pytest.mark.parametrize(
    ("key", "value", "bound"),
    [
        ("ttft_p90", "1s", LatencyBound("ttft_p90", Latency.FIRST_TOKEN, 0.9, 1.0)),
        ("ttft_p95", "0.5s", LatencyBound("ttft_p95", Latency.FIRST_TOKEN, 0.95, 0.5)),
        ("itl_p90", "50ms", LatencyBound("itl_p90", Latency.OUTPUT_TOKEN, 0.9, 0.05)),
        ("itl_p50", "7.5ms", LatencyBound("itl_p50", Latency.OUTPUT_TOKEN, 0.5, 0.0075)),
        ("e2e_p99", "20s", LatencyBound("e2e_p99", Latency.REQUEST, 0.99, 20.0)),
    ],
)
def test_a_promise_is_read(key: str, value: str, bound: LatencyBound) -> None:
    assert parse_promise({key: value}) == (bound,)


def test_two_bounds_come_in_the_order_of_their_keys() -> None:
    promise = parse_promise({"ttft_p90": "1s", "itl_p90": "50ms"})
    assert [str(bound) for bound in promise] == ["itl_p90 50ms", "ttft_p90 1s"]


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({}, "no promise: add one, such as ttft_p90: 1s"),
        ({"ttft_p90": "soon"}, "ttft_p90: 'soon' is not a duration: write such as ttft_p90: 1s"),
        ({"ttft_p90": "-1s"}, "'-1s' is not above 0"),
        ({"ttft_p90": "0s"}, "'0s' is not above 0"),
        ({"ttft_p90": "1"}, "'1' has no unit: write 1s or 1ms"),
        ({"ttft_p90": "1m"}, "'1m' is not a duration"),
        ({"ttft_p90": "nan"}, "'nan' is not a duration"),
        ({"ttft_p90": ""}, "'' is not a duration"),
        ({"ttft_p90": "7200s"}, "longer than 3600s"),
        ({"ttft": "1s"}, "promise 'ttft' is not known: write one of ttft, itl, e2e with p50"),
        ({"ttft_p42": "1s"}, "promise 'ttft_p42' is not known"),
        ({"speed_p90": "1s"}, "promise 'speed_p90' is not known"),
    ],
)
def test_a_wrong_promise_is_refused_with_the_fix(labels: dict[str, str], error: str) -> None:
    with pytest.raises(PromiseError, match=re.escape(error)) as refused:
        parse_promise(labels)
    assert "\n" not in str(refused.value)
