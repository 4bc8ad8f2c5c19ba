"""What was learned, in a ConfigMap: it survives a restart, and bad text costs only itself."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from adapter.server.ahead.learner import Learner
from adapter.server.ahead.stored import dump, merge
from apiservice.runtime.steps import at_once
from tests.adapter.server.ahead.service import EXPECTED, Service
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
    good = dump(learned.learner.loads)
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
    load = learned.load
    loads = {key._replace(name=f"w{number}"): load for number in range(10)}
    one = len(dump({key: load}))
    monkeypatch.setattr("adapter.server.ahead.stored._BYTES", 3 * one + 10)
    assert len(dump(loads).splitlines()) == 3
    assert EXPECTED.endswith("_expected")
