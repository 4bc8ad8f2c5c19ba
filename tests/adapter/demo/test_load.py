"""Arrivals follow their profile, and their seed."""

from __future__ import annotations

import random

import pytest

from adapter.demo.load import Arrivals, LoadPoint, Profile

PROFILE = Profile((LoadPoint(0, 1.0), LoadPoint(10, 1.0), LoadPoint(20, 5.0), LoadPoint(40, 1.0)))


@pytest.mark.parametrize(
    ("now", "rate"),
    [
        (-5, 1.0),
        (0, 1.0),
        (10, 1.0),
        (15, 3.0),
        (20, 5.0),
        (30, 3.0),
        (40, 1.0),
        (55, 3.0),
    ],
)
def test_the_rate_is_linear_between_corners_and_repeats(now: float, rate: float) -> None:
    assert PROFILE.rate(now) == pytest.approx(rate)


def draw(seed: int, seconds: int = 400) -> list[tuple[float, float]]:
    arrivals = Arrivals(
        Profile((LoadPoint(0, 4.0), LoadPoint(1000, 4.0))), 0.5, random.Random(seed)
    )
    requests = [r for second in range(seconds) for r in arrivals.draw(float(second), 1.0)]
    return [(request.arrived, request.left) for request in requests]


def test_the_same_seed_draws_the_same_requests() -> None:
    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_requests_arrive_in_order_within_their_step() -> None:
    arrivals = Arrivals(Profile((LoadPoint(0, 30.0), LoadPoint(9, 30.0))), 0.5, random.Random(3))
    times = [request.arrived for request in arrivals.draw(5.0, 2.0)]
    assert times == sorted(times)
    assert all(5.0 <= time < 7.0 for time in times)


def test_rate_and_work_are_what_was_asked_for() -> None:
    requests = [request for seed in range(20) for request in draw(seed)]
    assert len(requests) / (20 * 400) == pytest.approx(4.0, rel=0.1)
    assert sum(work for _, work in requests) / len(requests) == pytest.approx(0.5, rel=0.05)


def test_nothing_arrives_at_a_rate_of_zero() -> None:
    arrivals = Arrivals(Profile((LoadPoint(0, 0.0), LoadPoint(9, 0.0))), 0.5, random.Random(3))
    assert arrivals.draw(0.0, 1.0) == []
