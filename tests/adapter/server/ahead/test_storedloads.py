"""What was learned, in a ConfigMap: it survives a restart, and bad text costs only itself."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import structlog.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodepool.learn.boots import LONGEST
from adapter.nodepool.model.history import EMPTY
from adapter.pipeline.cluster.workload import DEPLOYMENTS
from adapter.server.ahead.expectation import Expectation
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.storedloads import dump, merge
from adapter.server.ahead.workloadload import LoadKey, Present, WorkloadLoad
from apiservice.runtime.steps import at_once
from tests.adapter.server.ahead.service import EXPECTED, MONDAY, Service
from tests.adapter.server.ahead.test_served import NAMES, shared, waves


def started_again(service: Service) -> Learner:
    """A new process over the same values."""
    world = service.world
    learner = Learner(world.catalog, world.store, world.index, 0.7)
    world.store.outlook = service.learner = learner
    return learner


@pytest.fixture
def learned() -> Service:
    service = Service(*NAMES)
    for load in islice(waves(), 130):
        service.minute(*shared(load))
    return service


def test_after_a_restart_the_next_minute_has_the_same_expectation(learned: Service) -> None:
    text = merge(learned.learner, "", learned.now)
    before = learned.pods()
    assert merge(started_again(learned), text, learned.now) == text
    at_once(learned.learner.round(learned.now))
    learned.pods()
    at_once(learned.learner.round(learned.now))
    assert learned.pods() == before


def test_what_was_learned_before_the_text_was_read_is_added(learned: Service) -> None:
    text = merge(learned.learner, "", learned.now)
    known = learned.load.history
    started_again(learned)
    learned.minute(10, 10, 10, 10, 10, 10)
    merge(learned.learner, text, learned.now)
    points = learned.load.history.recent
    assert points[:-1] == known.recent
    assert points[-1].pods == 60
    merge(learned.learner, text, learned.now)
    assert learned.load.history.recent == points


def test_two_replicas_keep_what_each_of_them_knows(learned: Service) -> None:
    text = merge(learned.learner, "", learned.now)
    known = set(learned.learner.loads)
    other = Service()
    other.minute(20, 30)
    other.minute(20, 30)
    (old,) = known
    other.learner.loads = {old._replace(name="other"): other.load}
    text = merge(other.learner, text, learned.now)
    third = started_again(learned)
    merge(third, text, learned.now)
    assert set(third.loads) == known | {old._replace(name="other")}


def test_a_replica_that_is_not_asked_does_not_write_older_text(learned: Service) -> None:
    idle = Service()
    merge(idle.learner, merge(learned.learner, "", learned.now), learned.now)
    learned.minute(10, 10, 10, 10, 10, 90)
    text = merge(learned.learner, "", learned.now)
    assert merge(idle.learner, text, learned.now) == text
    assert merge(learned.learner, text, learned.now) == text


def test_what_nobody_asks_about_for_days_does_not_come_back(learned: Service) -> None:
    text = merge(learned.learner, "", learned.now)
    later = Service()
    assert merge(later.learner, text, learned.now + 8 * 86400.0) == text
    assert later.learner.loads == {}


def test_lines_that_cannot_be_read_cost_only_themselves(learned: Service) -> None:
    good, _ = dump(learned.learner.loads)
    bad = json.loads(good) | {"history": "9:x"}
    learner = started_again(learned)
    merge(learner, "\n".join(["{", json.dumps(bad | {"name": "x"}), "[]", good]), learned.now)
    assert [key.name for key in learner.loads] == ["chat"]


def test_nothing_is_written_where_nobody_asks() -> None:
    service = Service()
    service.minute(20, 30, ask=False)
    assert merge(service.learner, "", service.now) == ""


def test_the_text_is_bounded_and_keeps_what_was_asked_about_last(
    learned: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = learned.learner.loads
    loads = {
        key._replace(name=f"w{number}"): replace(learned.load, asked=learned.now - number)
        for number in reversed(range(10))
    }
    length = len(dump({key: learned.load})[0])
    monkeypatch.setattr("adapter.server.ahead.storedloads._BYTES", 3 * length + 10)
    text, left_out = dump(loads)
    assert [json.loads(line)["name"] for line in text.splitlines()] == ["w0", "w1", "w2"]
    assert left_out == 7


def test_a_namespace_with_many_workloads_takes_no_room_of_another(
    learned: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = learned.learner.loads
    many = {key._replace(name=f"w{number}"): learned.load for number in range(10)}
    few = {key._replace(namespace="few"): replace(learned.load, asked=learned.now - 3000)}
    length = len(dump(few)[0])
    monkeypatch.setattr("adapter.server.ahead.storedloads._BYTES", 3 * length + 10)
    learned.learner.loads = many | few
    with structlog.testing.capture_logs() as logs:
        text = merge(learned.learner, "", learned.now)
    namespaces = [json.loads(line)["namespace"] for line in text.splitlines()]
    assert namespaces == ["ml", "few", "ml"]
    assert [row["left_out"] for row in logs] == [8]


HOUR = 3600.0
BENT = {
    "starts of years": {"starts": [1e300]},
    "starts of no time": {"starts": [0]},
    "starts before the creation": {"starts": [-60]},
    "asked in an hour": {"asked": HOUR},
    "asked in years": {"asked": 1e300},
    "asked never": {"asked": -1e300},
    "replica below 0": {"replica": [-1, 1, 0]},
    "replica too large": {"replica": [1e300, 1, 0]},
    "replica seen in an hour": {"replica": [1, 1, HOUR]},
    "replica seen before 1970": {"replica": [1, 1, -1e300]},
}
"""Fields of a line; times from now."""


@pytest.mark.parametrize("change", BENT.values(), ids=BENT)
def test_a_line_that_cannot_be_meant_is_left_out(learned: Service, change: dict[str, Any]) -> None:
    """Before, a start of 1e300 s made the forecast count slots for ever."""
    good = json.loads(dump(learned.learner.loads)[0])
    bent = copy.deepcopy(change)
    if "asked" in bent:
        bent["asked"] += learned.now
    if "replica" in bent:
        bent["replica"][2] += learned.now
    learner = started_again(learned)
    bad = json.dumps(good | bent | {"name": "x"})
    with structlog.testing.capture_logs() as logs:
        merge(learner, "\n".join([bad, json.dumps(good)]), learned.now)
    assert [key.name for key in learner.loads] == ["chat"]
    assert [row["event"] for row in logs] == ["stored load ignored"]


numbers = st.floats(0, 1e40)


@pytest.fixture(scope="module")
def stored() -> str:
    """The text of an hour."""
    service = Service()
    for load in islice(waves(), 60):
        service.minute(load, load)
    return dump(service.learner.loads)[0]


@given(numbers, numbers, st.lists(st.floats(0, LONGEST, exclude_min=True), max_size=3))
@settings(deadline=None)
def test_every_line_that_is_read_can_be_forecast(
    stored: str, weighted: float, weight: float, starts: list[float]
) -> None:
    row = json.loads(stored) | {"replica": [weighted, weight, MONDAY], "starts": starts}
    learner = Service().learner
    now = row["asked"] + 60
    merge(learner, json.dumps(row), now)
    (load,) = learner.loads.values()
    load.compute(0.7, now)
    if isinstance(load.expectation, Expectation):
        assert load.expectation.present <= load.expectation.most < math.inf


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=5), st.integers(1, 300))
def test_any_load_that_is_learned_survives_a_restart(totals: list[float], pods: int) -> None:
    load = WorkloadLoad(MONDAY)
    for minute, total in enumerate(totals):
        load.learn(Present(total, pods), MONDAY + 60 * minute)
    key = LoadKey("ml", DEPLOYMENTS, "chat", EXPECTED)
    text, left_out = dump({key: load})
    learner = Service().learner
    now = MONDAY + 60 * len(totals)
    merge(learner, text, now)
    again = learner.loads[key]
    assert (again.history, again.replica.mean, left_out) == (load.history, load.replica.mean, 0)


def test_what_was_learned_by_a_clock_that_was_ahead_does_not_end_what_is_known(
    learned: Service,
) -> None:
    known = learned.load.history
    (key,) = learned.learner.loads
    ahead = WorkloadLoad(learned.now)
    ahead.learn(Present(500.0, 2), learned.now + 300 * 86400)
    ahead.replica = learned.load.replica
    text, _ = dump({key: ahead})
    merge(learned.learner, text, learned.now)
    assert learned.load.history == known
    fresh = started_again(learned)
    merge(fresh, text, learned.now)
    assert fresh.loads[key].history == EMPTY
