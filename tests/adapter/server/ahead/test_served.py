"""The expected metrics in all four forms: they only raise, and begin with what is known."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import count, islice

import pytest

from adapter.server.ahead.expectation import Expectation
from apiservice.runtime.steps import at_once
from tests.adapter.server.ahead.service import EXPECTED, RUNNING, Service

FORMS = ("object", "external", "keda")


NAMES = ("a", "b", "c", "d", "e", "f")


def waves(seed: int = 1) -> Iterator[float]:
    """Requests in progress that rise and fall within two hours, with noise."""
    draw = random.Random(seed)
    for minute in count():
        yield max(0.0, draw.gauss(60 + 30 * math.sin(minute * math.tau / 120), 5))


def shared(load: float) -> list[float]:
    """Divide requests among the pods, not evenly."""
    parts = [1, 2, 3, 1, 2, 3]
    return [round(load * part / sum(parts)) for part in parts]


@pytest.fixture(scope="module")
def learned() -> Service:
    service = Service(*NAMES)
    for load in islice(waves(), 250):
        service.minute(*shared(load))
    return service


def test_the_pods_of_a_workload_rise_by_the_same_number(learned: Service) -> None:
    now, then = learned.pods(RUNNING), learned.pods()
    assert isinstance(learned.load.expectation, Expectation)
    more = {name: then[name] - now[name] for name in now}
    assert more["a"] == pytest.approx(more["b"], abs=0.002)
    assert more["a"] > 0.5
    assert sum(then.values()) == pytest.approx(learned.load.expectation.most, abs=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_ask_for_the_same_replicas(learned: Service, form: str) -> None:
    assert getattr(learned, form)() == pytest.approx(sum(learned.pods().values()), abs=0.01)


def test_what_the_value_rests_on_is_said(learned: Service) -> None:
    answer = learned.world.read("a", EXPECTED, learned.now)
    assert "not exceeded within 4 min with 70%" in getattr(answer, "note", "")


def test_a_rise_that_has_come_is_not_added_again(learned: Service) -> None:
    assert isinstance(learned.load.expectation, Expectation)
    most = learned.load.expectation.most
    before = learned.pods(RUNNING)
    learned.serve(*shared(most + 12))
    try:
        assert learned.pods() == learned.pods(RUNNING)
    finally:
        learned.serve(*before.values())


def test_a_pod_without_a_value_has_no_expected_one(learned: Service) -> None:
    later = learned.now + 3600
    assert learned.world.value("a", RUNNING, later) == learned.world.value("a", EXPECTED, later)


def test_it_begins_with_the_first_question_and_says_what_is_missing() -> None:
    service = Service()
    service.minute(20, 30, ask=False)
    assert not service.learner.loads
    assert service.why() == "nothing is known of its load yet"
    service.minute(20, 30)
    assert service.why() == "only 1 min of its demand are known"
    service.minute(20, 30)
    service.minute(20, 30)
    assert service.pods() == {"a": 20, "b": 30}


def test_until_forecasts_are_checked_the_present_value_is_served() -> None:
    service = Service(*NAMES)
    for load in islice(waves(), 60):
        service.minute(*shared(load))
        if len(service.load.history.recent) >= 3:
            assert service.pods() == service.pods(RUNNING)


def test_a_load_that_does_not_change_gets_nothing() -> None:
    service = Service()
    for _ in range(150):
        service.minute(20, 30)
    expectation = service.load.expectation
    assert isinstance(expectation, Expectation)
    assert expectation.stated
    assert service.pods() == {"a": 20, "b": 30}


def test_a_minute_in_which_a_pod_has_no_value_is_unknown_and_no_fall() -> None:
    service = Service()
    service.minute(20, 30)
    service.now += 60
    service.world.scrape("x 1\n", service.now, origin="http://b", pod=("ml", "b"), serves=True)
    service.serve(20, names=("a",))
    service.now += 600
    before = service.load.history if service.learner.loads else None
    at_once(service.learner.round(service.now))
    assert service.load.history == before
