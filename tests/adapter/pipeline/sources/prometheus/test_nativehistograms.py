"""Native histograms of a store are read as classic ones of a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from apiservice.runtime.steps import at_once
from tests.adapter.answers.api.test_latencies import BOUNDS, TTFT
from tests.adapter.pipeline.sources.prometheus.nativepages import bound, index_of
from tests.adapter.world import World, make_pod, reading

NAME = "vllm:time_to_first_token_seconds"
GROUP = QueryGroup("time_to_first_token", (f"{NAME}_bucket", f"{NAME}_sum", f"{NAME}_count"))
LABELS = {"namespace": "ml", "pod": "a", "engine": "0", "instance": "a:1"}
METRICS = [f"{TTFT}_{statistic}" for statistic in ("p50", "p90", "p95", "p99", "mean")]

Sample = list[Any]


def exponential(time: float, values: Sequence[float]) -> Sample:
    """A sample of a native histogram that counts in exponential buckets."""
    places = sorted({index_of(value) for value in values})
    buckets = [
        [0, repr(bound(at - 1)), repr(bound(at)), str(sum(index_of(v) == at for v in values))]
        for at in places
    ]
    counted = {"count": str(len(values)), "sum": repr(float(sum(values)))}
    return [time, {**counted, "buckets": buckets} if buckets else counted]


def converted(time: float, values: Sequence[float]) -> Sample:
    """A sample of a classic histogram that the store has converted: its own bounds."""
    limits = [float("-inf"), *map(float, BOUNDS), float("inf")]
    buckets = []
    for low, high in pairwise(limits):
        hits = sum(low < value <= high for value in values)
        if hits:
            buckets.append([0, spelled(low), spelled(high), str(hits)])
    return [time, {"count": str(len(values)), "sum": repr(sum(values)), "buckets": buckets}]


def spelled(limit: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf"}.get(str(limit), str(limit))


def classic(values: Sequence[float]) -> str:
    """The same values on a page."""
    lines = [f'{NAME}_bucket{{engine="0",le="{limit}"}} {sum(v <= float(limit) for v in values)}'
             for limit in (*BOUNDS, "Inf")]  # fmt: skip
    return "\n".join([*lines, f'{NAME}_sum{{engine="0"}} {sum(values)}', ""])


def stored(*samples: Sample, memo: SeriesMemo | None = None) -> QueryAnswer:
    row = {"metric": {"__name__": NAME, **LABELS}, "histograms": list(samples)}
    data = {"resultType": "matrix", "result": [row]}
    text = json.dumps({"status": "success", "data": data}).encode()
    return decode(text, SeriesMemo() if memo is None else memo, GROUP)


def asked() -> World:
    world = World(make_pod("a", gpus={}))
    for metric in METRICS:
        world.value("a", metric, 1000.0)
    return world


def ingest(world: World, answer: QueryAnswer, time: float) -> None:
    for origin, samples in answer.samples.items():
        world.store.ingest(ScrapeResult(origin, None, samples, time, answer.rejects))


VALUES = st.lists(st.floats(0.01, 8.0), min_size=12, max_size=40)


@given(st.lists(st.floats(0.01, 8.0), max_size=30), VALUES)
def test_converted_buckets_give_what_the_page_gives(
    before: list[float], during: list[float]
) -> None:
    """Prometheus 3 converts classic histograms, with ``convert_classic_histograms_to_nhcb``."""
    direct, world = asked(), asked()
    for time, values in ((1000.0, before), (1005.0, before + during)):
        direct.scrape(classic(values), time, origin="u", pod=("ml", "a"), serves=True)
        ingest(world, stored(converted(time, values)), time)
    for metric in METRICS:
        answer, wanted = world.read("a", metric, 1006.0), direct.read("a", metric, 1006.0)
        assert reading(answer).value == pytest.approx(reading(wanted).value)


@given(st.lists(st.floats(0.01, 8.0), max_size=30), VALUES)
def test_exponential_buckets_hold_the_quantile_within_their_own_width(
    before: list[float], during: list[float]
) -> None:
    """Buckets that only the later sample has cost no resolution: nothing was in them before."""
    world = asked()
    ingest(world, stored(exponential(1000.0, before), exponential(1005.0, before + during)), 1005.0)
    for metric, share in zip(METRICS[:4], (0.5, 0.9, 0.95, 0.99), strict=True):
        answer = reading(world.read("a", metric, 1006.0))
        (part,) = answer.devices
        assert part.increase is not None
        quantile = part.increase.quantile(share)
        assert quantile is not None
        exact = sorted(during)[max(0, -int(-share * len(during) // 1) - 1)]
        assert quantile.low <= exact * (1 + 1e-9)
        assert quantile.low <= answer.value <= quantile.high
        assert quantile.high <= bound(index_of(exact) + 1) * (1 + 1e-9)
    assert reading(world.read("a", METRICS[4], 1006.0)).value == pytest.approx(
        sum(during) / len(during)
    )


def test_the_resolution_is_that_of_the_native_buckets() -> None:
    world = asked()
    later = exponential(1005.0, [0.3] * 10 + [5.1] * 10)
    ingest(world, stored(exponential(1000.0, []), later), 1005.0)
    answer = reading(world.read("a", METRICS[1], 1006.0))
    assert answer.note == "between 4.75683 s and 5.18736 s; 20 in 5 s"


def test_the_query_asks_for_both_kinds() -> None:
    names = f"{NAME}_bucket|{NAME}_sum|{NAME}_count|{NAME}"
    assert GROUP.promql(60.0) == f'{{__name__=~"{names}"}}[60000ms]'


def test_a_query_of_the_user_is_left_as_it_is() -> None:
    group = QueryGroup("own", ("x_sum",), "sum by (namespace, pod) (x_sum)")
    assert group.names == ("x_sum",)


def test_later_answers_hand_over_what_is_new_and_keep_one_order() -> None:
    memo = SeriesMemo()
    world = asked()
    first, second, third = (exponential(1000.0 + 5 * n, [0.3] * (10 + 10 * n)) for n in range(3))
    answers = [stored(first, memo=memo)]
    for samples in ((first, second), (first, second, third), (second, third)):
        ingest(world, answers[-1], 1010.0)
        memo.turn()
        at_once(answers[-1].accept())
        answers.append(stored(*samples, memo=memo))
    assert [answer.count for answer in answers] == [5, 5, 5, 5]
    assert answers[3].names is answers[2].names
    assert reading(world.read("a", METRICS[0], 1011.0)).note.endswith("20 in 10 s")


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ([1005.0, {"count": "x", "sum": "1", "buckets": [[0, "1", "y", "3"]]}], "bad_series"),
        ([1005.0, {"count": "3", "sum": "1", "buckets": [[0, "1", "2"]]}], "bad_series"),
        ([1005.0, {"count": "3", "sum": "1", "buckets": "all"}], "bad_series"),
        ([1005.0, {"count": "3", "sum": "1", "buckets": [[0, "NaN", "NaN", "3"]]}], "bad_series"),
        ([1005.0, {"count": "9", "sum": "1", "buckets": [[0, "2", "3", "5"], [0, "1", "2", "4"]]}],
         "bad_series"),
        ([1005.0, {"count": "3", "sum": "1", "buckets": [[0, "1", "2", "-3"]]}], "out_of_range"),
        ([1005.0, {"count": "3", "sum": "1", "buckets": [[0, "1", "2", "NaN"]]}], "not_finite"),
        ([1005.0, {"count": "9", "sum": "1", "buckets": [[0, "1", "2", "9"], [0, "2", "3", "-4"]]}],
         "buckets_decrease"),
        ([1005.0, {"count": "9", "sum": "1", "buckets": [
            [0, f"{n}.5", f"{n + 1}", "1"] for n in range(200)]}], "too_many_buckets"),
    ],
)  # fmt: skip
def test_a_flawed_one_is_counted_and_the_rest_stays(sample: Sample, reason: str) -> None:
    world = asked()
    running = {"__name__": "vllm:num_requests_running", **LABELS}
    for time, counted in ((1000.0, exponential(1000.0, [0.3] * 5)), (1005.0, sample)):
        rows = [
            {"metric": {"__name__": NAME, **LABELS}, "histograms": [counted]},
            {"metric": running, "values": [[time, "2"]]},
        ]
        data = {"status": "success", "data": {"resultType": "matrix", "result": rows}}
        ingest(world, decode(json.dumps(data).encode(), SeriesMemo(), GROUP), time)
    assert world.count(reason) == 1
    assert isinstance(world.value("a", METRICS[1], 1006.0), str)
    assert world.value("a", "inference_requests_running", 1006.0) == 2.0


def test_one_whose_client_has_restarted_counts_from_zero() -> None:
    world = asked()
    samples = exponential(1000.0, [0.3] * 50), exponential(1005.0, [2.1] * 20)
    ingest(world, stored(*samples), 1005.0)
    answer = reading(world.read("a", METRICS[1], 1006.0))
    assert answer.note.startswith("between 2 s and 2.18102 s; 20 in")


def test_one_whose_client_now_counts_in_wider_buckets_stays_exact() -> None:
    """client_golang merges pairs of buckets once there are too many."""
    fine = [
        1000.0,
        {
            "count": "12",
            "sum": "12",
            "buckets": [
                [0, "1", "1.0905077326652577", "8"],
                [0, "1.0905077326652577", "1.189207115002721", "4"],
            ],
        },
    ]
    wide = [1005.0, {"count": "32", "sum": "32", "buckets": [
        [0, "1", "1.189207115002721", "22"], [0, "2", "2.378414230005442", "10"]]}]  # fmt: skip
    world = asked()
    ingest(world, stored(fine, wide), 1005.0)
    (part,) = reading(world.read("a", METRICS[1], 1006.0)).devices
    assert part.increase is not None
    assert part.increase.quantile(0.9) == pytest.approx((2.302731, 2.0, 2.378414), rel=1e-5)
    assert part.increase.count == 20.0


def test_a_page_of_a_server_with_native_buckets_only_gives_the_mean() -> None:
    """Text has no native buckets: client_golang then writes +Inf, the sum and the count."""
    world = asked()
    for time, count, total in ((1000.0, 5, 1.0), (1005.0, 25, 9.0)):
        text = f'{NAME}_bucket{{engine="0",le="+Inf"}} {count}\n{NAME}_sum{{engine="0"}} {total}\n'
        world.scrape(text, time, origin="u", pod=("ml", "a"), serves=True)
    assert world.value("a", METRICS[1], 1006.0) == "no_common_buckets"
    assert world.value("a", METRICS[4], 1006.0) == 0.4
