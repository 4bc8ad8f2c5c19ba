"""Laws of increases: any pages, any order, any number of servers."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.catalog.increases import Increase, increase_between, sum_increases
from adapter.pipeline.devices.options import TelemetryOptions
from tests.adapter.world import World, make_pod, reading

BOUNDS = st.lists(
    st.sampled_from((0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)), min_size=1, unique=True
).map(sorted)
METRIC = "inference_time_to_first_token_seconds_p90"


@st.composite
def increases(draw: st.DrawFn) -> Increase:
    bounds = tuple(draw(BOUNDS))
    hits = st.lists(
        st.integers(0, 1000).map(float), min_size=len(bounds) + 1, max_size=len(bounds) + 1
    )
    return Increase(0.0, 60.0, bounds, tuple(draw(hits)), float(draw(st.integers(0, 1000))))


@given(increases(), st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_a_higher_share_has_no_lower_quantile(one: Increase, shares: list[float]) -> None:
    low, high = (one.quantile(share) for share in shares)
    assert (low is None) is (one.count == 0)
    if low is not None and high is not None:
        assert low.value <= high.value
        assert low.low <= low.value <= low.high


@given(st.lists(increases(), min_size=1, max_size=5), st.randoms())
def test_a_sum_has_every_request_once_in_any_order(some: list[Increase], random: object) -> None:
    whole = sum_increases(some)
    assert whole is not None
    assert whole.count == sum(one.count for one in some)
    assert sum_increases(reversed(some)) == whole
    assert sum_increases([sum_increases(some[:2]) or whole, *some[2:]]) == whole
    asked = [one for one in some if one.count] or some
    every = set().union(*(one.bounds for one in asked))
    known = {bound for bound in every if all(one.below(bound) is not None for one in asked)}
    assert set(whole.bounds) == known
    for bound in known:
        assert whole.below(bound) == sum(one.below(bound) or 0.0 for one in asked)


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_increase_is_the_sum_of_what_came_between_the_pages(steps: list[list[int]]) -> None:
    totals = list(accumulate(steps, lambda a, b: [x + y for x, y in zip(a, b, strict=True)]))
    rows = [(0.0, [0.0, 0.0, 0.0], 0.0)]
    rows += [(float(n), list(accumulate(map(float, t))), 0.0) for n, t in enumerate(totals, 1)]
    assert increase_between(rows, (1.0, 2.0)).counts == tuple(map(float, totals[-1]))


@given(increases())
def test_with_fewer_bounds_no_request_is_lost(one: Increase) -> None:
    fewer = one.at(one.bounds[::2])
    assert (fewer.count, fewer.total) == (one.count, one.total)


def page(*hits: int, le: tuple[str, ...] = ("0.1", "1", "+Inf"), name: str = "") -> str:
    name = name or "vllm:time_to_first_token_seconds"
    below = accumulate(hits)
    lines = [
        f'{name}_bucket{{model_name="m",le="{bound}"}} {count}\n'
        for bound, count in zip(le, below, strict=True)
    ]
    return "".join(lines) + f'{name}_sum{{model_name="m"}} 5\nvllm:num_requests_running 2\n'


def served(*pages: str, least: int = 1) -> World:
    world = World(make_pod("p", gpus={}), options=TelemetryOptions(min_requests=least))
    world.value("p", METRIC, 1000.0)
    for number, text in enumerate(pages):
        time = 1000.0 + 5 * number
        world.scrape(text, time, origin="http://p:8000", pod=("ml", "p"), serves=True)
    return world


@pytest.mark.parametrize(
    ("flawed", "reason"),
    [
        (page(9, -1, 1), "buckets_decrease"),
        (page(1, 1, le=("0.1", "1")), "no_inf_bucket"),
        (page(1, 1, 1).replace(" 2\n", " NaN\n", 1), "not_finite"),
        (page(1, 1, 1).replace(" 1\n", " 1e300\n", 1), "out_of_range"),
        (page(1, 1, 1, le=("0.1", "x", "+Inf")), "bad_bucket_bound"),
        (page(1, 1, 1).replace('le="1"', 'vmrange="0.1...1"'), "bad_bucket_bound"),
        (page(*[1] * 400, le=(*(f"{n}" for n in range(399)), "+Inf")), "too_many_buckets"),
    ],
)
def test_a_flawed_histogram_is_counted_and_the_rest_of_the_page_stays(
    flawed: str, reason: str
) -> None:
    world = served(page(0, 0, 0), flawed)
    assert world.count(reason) == 1
    assert isinstance(world.value("p", METRIC, 1006.0), str)
    assert world.value("p", "inference_requests_running", 1006.0) == 2.0
    world.scrape(page(20, 0, 0), 1010.0, origin="http://p:8000", pod=("ml", "p"), serves=True)
    assert world.value("p", METRIC, 1011.0) == 0.09


def test_one_bound_may_be_written_in_two_ways() -> None:
    world = served(page(0, 0, 0), page(0, 20, 0, le=("0.1", "1.0", "+Inf")))
    assert world.value("p", METRIC, 1006.0) == 0.91


def test_other_bounds_after_a_restart_are_those_of_the_new_process() -> None:
    world = served(page(50, 0, 0), page(60, 0, 0), page(0, 20, 0, le=("0.1", "0.5", "+Inf")))
    answer = reading(world.read("p", METRIC, 1011.0))
    (part,) = answer.devices
    assert part.increase is not None
    assert (part.increase.bounds, part.increase.count) == ((0.1, 0.5, 1.0), 30.0)
    assert part.increase.counts == (10.0, 20.0, 0.0, 0.0)


def test_two_programs_on_one_page_do_not_mix() -> None:
    other = "sglang:time_to_first_token_seconds"
    both = [page(n, 0, 0) + page(0, n, 0, name=other) for n in (0, 20)]
    assert reading(served(*both).read("p", METRIC, 1006.0)).value == 0.09


def test_a_counter_that_rests_is_a_true_zero_and_a_missing_one_is_not() -> None:
    metric = "inference_output_tokens_per_second"
    world = World(make_pod("p", gpus={}))
    world.value("p", metric, 1000.0)
    text = 'vllm:generation_tokens_total{model_name="m"} 700\n'
    for time in (1000.0, 1005.0):
        world.scrape(text, time, origin="u", pod=("ml", "p"), serves=True)
    assert world.value("p", metric, 1006.0) == 0.0
    assert world.value("p", "inference_prompt_tokens_per_second", 1006.0) == "reading_begins"
    assert world.value("p", "inference_prompt_tokens_per_second", 1200.0) != 0.0
