"""The same requests scaled on a promise, and ahead of demand: what the summary compares."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from adapter.demo import days, story
from adapter.demo.ahead import ExpectedReader, learn_days
from adapter.demo.client import SimulatedReader
from adapter.demo.load import DemoRequest
from adapter.demo.nodepool import DemoNodepool, Past
from adapter.demo.promise import PromiseReader
from adapter.demo.service import FIRST_BOUNDS, DemoService, Totals
from adapter.demo.world import World
from adapter.hpa import Missing
from adapter.pipeline.catalog.promise import parse_promise

Reading = Callable[[World], SimulatedReader] | None


async def played(setup: story.ClusterSetup, seed: int, past: days.Days, reading: Reading) -> Totals:
    world = World(setup.pools, setup.workloads, seed, -story.BEFORE)
    nodepool = DemoNodepool(story.LIMITS, story.BEGIN, past.past)
    reader = reading(world) if reading else None
    await days.play(world, setup.hpas, nodepool, story.LENGTH, reader)
    return world.services["chat"].totals


async def test_on_most_days_a_promise_and_expectations_keep_more_requests_in_time() -> None:
    late = {"utilization": 0, "queue": 0, "expected": 0, "promise": 0}
    begun: dict[int, set[int]] = {}
    for seed in (7, 8, 9):
        past = await days.live(story.EARLIER_DAYS, seed, -story.BEFORE)
        load = await learn_days(story.EARLIER_DAYS, seed, past.past)
        for name, setup, reading in (
            ("utilization", story.WITH_NODEPOOL, None),
            ("queue", story.ON_QUEUE, None),
            ("expected", story.ON_EXPECTED, lambda w, k=load: ExpectedReader(w, k, story.BEGIN)),
            ("promise", story.ON_PROMISE, lambda w: PromiseReader(w, story.PROMISE)),
        ):
            totals = await played(setup, seed, past, reading)
            late[name] += totals.late
            begun.setdefault(seed, set()).add(totals.arrived)
    assert all(len(arrived) == 1 for arrived in begun.values()), "the same requests"
    assert late["promise"] < 0.2 * late["queue"] < 0.2 * late["utilization"]
    assert late["expected"] < 0.7 * late["queue"]


def test_the_promise_is_what_a_late_request_breaks_and_a_bound_of_the_histogram() -> None:
    [bound] = parse_promise(story.PROMISE)
    (chat,) = story.ON_PROMISE.workloads
    assert chat.promised == bound.seconds
    assert bound.seconds in FIRST_BOUNDS
    selector = story.ON_PROMISE.hpas[0]["spec"]["metrics"][0]["pods"]["metric"]["selector"]
    assert selector == {"matchLabels": story.PROMISE}


def test_a_request_has_its_first_token_once_when_the_work_on_it_begins() -> None:
    service = DemoService(random.Random(1), promised=2.5, depth=None)
    service.join("a")
    service.step(0.0, 1.0, [DemoRequest(0.0, 3.0), DemoRequest(0.5, 1.0)])
    service.leave("a")  # the work on the first has begun
    service.join("b")
    for now in range(1, 6):
        service.step(float(now), 1.0, [])
    assert (service.totals.begun, service.totals.late, service.totals.served) == (2, 0, 2)
    assert service.page("b").ended == 2
    # The second one waits from 0.5 to 3.0, which is just in time.
    assert service.page("b").first[FIRST_BOUNDS.index(2.5)] == 1
    assert sum(service.page("b").first) == 1
    assert service.page("b").worked == pytest.approx(3.0)


async def test_without_pages_a_promise_has_no_value() -> None:
    setup = story.ON_PROMISE
    reader = PromiseReader(World(setup.pools, setup.workloads, seed=7), story.PROMISE)
    reader.scrape()
    assert await reader.pods("", "", "app=chat") == Missing("no pod has a value")


async def test_an_unknown_expectation_is_missing_and_leaves_the_measured_value() -> None:
    """As in serve: then the HPA does not scale in."""
    setup = story.ON_EXPECTED
    world = World(setup.pools, setup.workloads, seed=7)
    load = await learn_days(0, 7, Past())
    reader = ExpectedReader(world, load, story.BEGIN)
    world.advance(30)
    reader.scrape()
    measured = await reader.pods("", story.RUNNING, "app=chat")
    assert isinstance(measured, dict)
    expected = await reader.pods("", f"{story.RUNNING}_expected", "app=chat")
    assert isinstance(expected, Missing)
