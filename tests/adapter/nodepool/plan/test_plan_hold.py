"""How long a plan keeps headroom: after demand, after consumption, and with unknown demand."""

from __future__ import annotations

import pytest

from adapter.nodepool.plan.limits import Limits
from tests.adapter.nodepool.planning import (
    NOW,
    capacity,
    codes,
    demand,
    headroom,
    order,
)

LONG_AGO = NOW - 10_000

# Scale-down


def test_headroom_is_held_after_it_was_needed() -> None:
    made = order(demand(2, bound=2), at=capacity(headroom(4, pods=2, needed=NOW - 599)))
    assert (made.replicas, codes(made)) == (4, ["held"])
    assert made.needed_at == NOW - 599


DECAY = {
    "at the end of the hold": (600, 4),
    "just before the second halving": (899, 4),
    "the second": (900, 2),
    "the third": (1200, 1),
    "the last": (1500, 0),
    "long after": (86400, 0),
}


@pytest.mark.parametrize(("age", "left"), DECAY.values(), ids=DECAY)
def test_after_the_hold_headroom_halves(age: float, left: int) -> None:
    made = order(demand(2, bound=2), at=capacity(headroom(8, pods=2, needed=NOW - age)))
    assert (made.replicas, codes(made)) == (left, ["decayed"])


def test_halvings_do_not_depend_on_the_number_of_rounds() -> None:
    at = capacity(headroom(8, pods=2, needed=NOW))
    replicas = []
    for second in range(0, 1501, 15):
        made = order(demand(2, bound=2), at=at, now=NOW + second)
        at = capacity(headroom(made.replicas, made.pods, made.needed_at))
        if second % 300 == 0:
            replicas.append(made.replicas)
    assert replicas == [8, 8, 4, 2, 1, 0]


@pytest.mark.parametrize(("age", "every"), [(4.4, 1.1), (2.8, 0.7), (8.8, 2.2)])
def test_a_halving_that_is_due_exactly_now_happens_once(age: float, every: float) -> None:
    limits = Limits(share=0, hold_seconds=every, decay_seconds=every)
    row = demand(0, bound=1)
    first = order(row, at=capacity(headroom(64, pods=1, needed=NOW - age)), limits=limits)
    held = headroom(first.replicas, first.pods, first.needed_at)
    assert order(row, at=capacity(held), limits=limits).replicas == first.replicas > 0


def test_a_clock_that_was_ahead_does_not_extend_the_hold() -> None:
    at = capacity(headroom(8, pods=2, needed=NOW + 86400))
    made = order(demand(2, bound=2), at=at)
    assert (made.replicas, made.needed_at) == (8, NOW + 1)
    later = capacity(headroom(8, made.pods, made.needed_at))
    assert order(demand(2, bound=2), at=later, now=NOW + 601).replicas == 4


def test_headroom_never_decays_below_what_is_wanted() -> None:
    made = order(demand(5, bound=2), at=capacity(headroom(8, pods=2, needed=LONG_AGO)))
    assert (made.replicas, made.needed_at) == (3, NOW)


def test_headroom_that_a_limit_cuts_to_the_need_counts_as_needed_now() -> None:
    at = capacity(headroom(4, needed=NOW - 100))
    made = order(demand(1), at=at, limits=Limits(share=0, max_pods=1))
    assert (made.replicas, made.needed_at) == (1, NOW)


def test_headroom_grows_immediately() -> None:
    assert order(demand(5, bound=2), at=capacity(headroom(1, pods=2))).replicas == 3


# Consumed headroom


def test_headroom_taken_by_pods_is_not_ordered_again() -> None:
    made = order(demand(4, bound=4), at=capacity(headroom(2, pods=2)))
    assert (made.replicas, made.nudge) == (0, False)
    assert codes(made) == ["consumed", "enough"]


def test_a_partly_consumed_buffer_is_nudged() -> None:
    made = order(demand(4, bound=4), at=capacity(headroom(3, pods=2)))
    assert (made.replicas, made.nudge) == (1, True)
    assert "consumed" in codes(made)


def test_a_buffer_is_nudged_if_its_replicas_do_not_change() -> None:
    made = order(demand(6, bound=4), at=capacity(headroom(2, pods=2)))
    assert (made.replicas, made.was, made.nudge) == (2, 2, True)


def test_deleted_pods_do_not_increase_kept_headroom() -> None:
    assert order(demand(1, bound=1), at=capacity(headroom(2, pods=6))).replicas == 2


# Unknown demand


def test_unknown_demand_freezes_headroom() -> None:
    row = demand(None, bound=2, known=NOW - 299)
    made = order(row, at=capacity(headroom(4, pods=2, needed=LONG_AGO)))
    assert (made.replicas, codes(made)) == (4, ["frozen"])


def test_frozen_headroom_is_still_consumed() -> None:
    row = demand(None, bound=5, known=NOW - 10)
    assert order(row, at=capacity(headroom(4, pods=2))).replicas == 1


def test_frozen_headroom_never_exceeds_max_replicas() -> None:
    row = demand(None, bound=5, most=6, known=NOW - 10)
    assert order(row, at=capacity(headroom(4, pods=5))).replicas == 1


def test_stale_demand_lets_headroom_decay_from_the_end_of_the_freeze() -> None:
    at = capacity(headroom(8, pods=2, needed=NOW))
    by_second = {}
    for second in range(0, 1216, 15):
        made = order(demand(None, bound=2, known=NOW), at=at, now=NOW + second)
        at = capacity(headroom(made.replicas, made.pods, made.needed_at))
        by_second[second] = made.replicas
    assert [by_second[time] for time in (0, 285, 300, 600, 900, 1200)] == [8, 8, 4, 2, 1, 0]


def test_a_clock_that_was_ahead_when_demand_was_known_freezes_nothing() -> None:
    row = demand(None, bound=2, known=NOW + 86400)
    made = order(row, at=capacity(headroom(4, pods=2, needed=NOW - 600)))
    assert (made.replicas, codes(made)) == (2, ["stale"])


def test_demand_that_was_never_known_holds_nothing_beyond_the_hold() -> None:
    row = demand(None, bound=2, known=None)
    assert order(row, at=capacity(headroom(4, pods=2))).replicas == 4
    made = order(row, at=capacity(headroom(4, pods=2, needed=NOW - 900)))
    assert (made.replicas, codes(made)) == (1, ["stale"])


def test_unknown_demand_orders_nothing_new() -> None:
    made = order(demand(None, bound=2))
    assert (made.replicas, codes(made)) == (0, ["unknown"])
    assert made.reasons[0].text == "no metric of Deployment/inference could be read"


def test_a_workload_with_unknown_demand_does_not_limit_another() -> None:
    rows = demand(None, bound=2, name="a"), demand(9, bound=4, name="b")
    assert order(*rows, at=capacity(headroom(2, pods=6))).replicas == 5


def test_headroom_of_a_deleted_workload_is_deleted_immediately() -> None:
    made = order(at=capacity(headroom(4)))
    assert (made.replicas, codes(made)) == (0, ["gone"])
