"""The queueing model conserves work, and more replicas are less busy ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.demo.load import Arrivals, DemoRequest, LoadPoint, Profile
from adapter.demo.service import DemoService

STEPS = st.lists(
    st.tuples(
        st.lists(st.floats(0.001, 5.0), max_size=6),
        st.sampled_from(["", "", "", "join", "leave"]),
    ),
    max_size=60,
)


@given(steps=STEPS, seed=st.integers(0, 99))
def test_work_and_requests_are_conserved_when_replicas_join_and_leave(
    steps: Sequence[tuple[list[float], str]], seed: int
) -> None:
    service = DemoService(random.Random(seed))
    service.join("r0")
    replicas, number, busy_seconds = ["r0"], 1, 0.0
    requests: list[DemoRequest] = []
    for now, (works, change) in enumerate(steps):
        if change == "join":
            replicas.append(f"r{number}")
            service.join(f"r{number}")
            number += 1
        elif change == "leave" and replicas:
            service.leave(replicas.pop(0))
        arrivals = [DemoRequest(float(now), work) for work in works]
        requests += arrivals
        busy = service.step(float(now), 1.0, arrivals)
        assert set(busy) == set(replicas)
        assert all(0.0 <= share <= 1.0 for share in busy.values())
        busy_seconds += sum(busy.values())
    left = [request.left for request in requests]
    assert service.totals.arrived == len(requests)
    assert service.totals.served == sum(work < 1e-8 for work in left)
    work_arrived = sum(sum(works) for works, _ in steps)
    assert work_arrived == pytest.approx(busy_seconds + sum(left), abs=1e-6)


def utilisation(replicas: int, rate: float, seed: int) -> float:
    service = DemoService(random.Random(seed))
    profile = Profile((LoadPoint(0, rate), LoadPoint(1000, rate)))
    arrivals = Arrivals(profile, 0.5, random.Random(seed))
    for number in range(replicas):
        service.join(f"r{number}")
    shares = 0.0
    for now in range(300):
        busy = service.step(float(now), 1.0, arrivals.draw(float(now), 1.0))
        shares += sum(busy.values()) / replicas
    return shares / 300


@given(
    replicas=st.integers(1, 8), more=st.integers(1, 6), rate=st.floats(0.5, 12), seed=st.integers()
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_more_replicas_are_less_busy_under_the_same_load(
    replicas: int, more: int, rate: float, seed: int
) -> None:
    # A hundredth for what is still queued when the clock stops.
    assert utilisation(replicas + more, rate, seed) <= utilisation(replicas, rate, seed) + 0.01


@pytest.mark.parametrize(
    ("replicas", "rate", "expected"), [(2, 2.0, 0.5), (4, 2.0, 0.25), (2, 20.0, 1.0)]
)
def test_utilisation_is_load_over_capacity(replicas: int, rate: float, expected: float) -> None:
    mean = sum(utilisation(replicas, rate, seed) for seed in range(10)) / 10
    assert mean == pytest.approx(expected, rel=0.12)


def test_without_replicas_requests_wait_and_are_all_served_later() -> None:
    service = DemoService(random.Random(1))
    assert service.step(0.0, 1.0, [DemoRequest(0.5, 0.25), DemoRequest(0.6, 0.25)]) == {}
    assert (service.queue, service.totals.peak_queue) == (2, 2)
    service.join("a")
    assert service.step(1.0, 1.0, []) == {"a": 0.5}
    assert list(service.latencies) == pytest.approx([0.75, 0.9])
    assert service.totals.served == 2


def test_a_request_is_not_worked_on_before_it_arrives() -> None:
    service = DemoService(random.Random(1))
    service.join("a")
    assert service.step(0.0, 1.0, [DemoRequest(0.75, 1.0)]) == {"a": 0.25}


def test_a_leaving_replicas_requests_go_to_the_head_of_the_queue() -> None:
    service = DemoService(random.Random(1))
    service.join("a")
    service.step(
        0.0, 1.0, [DemoRequest(0.0, 2.0)] + [DemoRequest(0.1 * i, 0.5) for i in range(1, 7)]
    )
    service.leave("a")
    assert service.queue == 7
    service.join("b")
    assert service.step(1.0, 1.0, []) == {"b": 1.0}
    assert list(service.latencies) == [2.0], "the one that was under way is finished first"
