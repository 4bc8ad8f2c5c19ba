"""The rules of the plan: size of orders, hold, and limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.capacity import Pool, PoolNode, Taint, Trap
from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.history import EMPTY, DemandPoint
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.plan.poolchoice import TRAPS
from tests.adapter.nodepool.planning import (
    GPU,
    NOW,
    applied,
    capacity,
    codes,
    demand,
    headroom,
    node,
    order,
    pod,
    pool,
)

LONG_AGO = NOW - 10_000

# Size


def test_headroom_is_the_wanted_pods_minus_the_existing_pods() -> None:
    made = order(demand(6, bound=3, pending=1))
    assert (made.replicas, made.pods, made.was) == (2, 4, 0)
    assert made.needed_at == NOW
    assert made.reasons[0].text.startswith("Deployment/inference has 4 pods of 6")


def test_pending_pods_are_not_ordered_again() -> None:
    assert order(demand(6, bound=2, pending=4)).replicas == 0


def test_headroom_never_exceeds_max_replicas() -> None:
    made = order(demand(20, bound=4, most=6))
    assert made.replicas == 2
    assert "max_replicas" in codes(made)


def test_a_workload_at_max_replicas_gets_no_headroom() -> None:
    assert order(demand(20, bound=6, most=6), at=capacity(headroom(2, pods=4))).replicas == 0


def test_headroom_is_not_negative_if_fewer_pods_are_wanted_than_exist() -> None:
    made = order(demand(1, bound=5))
    assert (made.replicas, codes(made)) == (0, ["enough"])


def test_workloads_of_one_shape_in_one_namespace_are_added_up() -> None:
    made = order(demand(3, bound=1, name="b"), demand(4, bound=1, name="a"))
    assert made.replicas == 5
    assert [each.name for each in made.workloads] == ["a", "b"]


def test_the_surplus_of_one_workload_does_not_reduce_the_headroom_of_another() -> None:
    assert order(demand(1, bound=9, name="a"), demand(3, bound=1, name="b")).replicas == 2


def test_each_namespace_and_shape_has_its_own_order() -> None:
    rows = [demand(1), demand(2, namespace="other"), demand(3, shape=pod(cpu="2"), name="small")]
    made = plan(rows, capacity(), Limits(), NOW).orders
    assert sorted((each.namespace, each.replicas) for each in made) == [
        ("ml", 1),
        ("ml", 3),
        ("other", 2),
    ]


def test_growth_that_was_observed_before_is_ordered_ahead() -> None:
    history = EMPTY
    for minute in range(360):
        pods = 2 if minute // 5 % 2 else 6
        history = learn(history, DemandPoint(NOW - (360 - minute) * 60, pods))
    made = order(demand(2, bound=2, history=history), limits=Limits(quantile=0.9))
    assert made.replicas > 0


def test_the_lead_is_the_boot_time_of_the_pool() -> None:
    history = EMPTY
    for minute in range(360):
        history = learn(history, DemandPoint(NOW - (360 - minute) * 60, 2 + minute // 30))
    row = demand(14, bound=14, history=history)
    limits = Limits(boot_seconds=60, quantile=0.9)
    slow = order(row, at=capacity(pools=(pool(boot_seconds=3600),)), limits=limits)
    assert slow.replicas >= order(row, limits=limits).replicas


# Pods that the HPA creates itself

SLOW = demand(9, bound=2, coming=4)


def test_pods_that_the_hpa_creates_at_its_next_sync_are_not_ordered() -> None:
    made = order(demand(4, bound=2, coming=4))
    assert (made.replicas, codes(made)) == (0, ["coming"])


def test_pods_that_the_hpa_may_not_create_yet_are_ordered() -> None:
    made = order(SLOW)
    assert (made.replicas, made.pods, made.reckoned) == (5, 2, 4)
    assert made.why == "Deployment/inference has 2 pods, soon 4, of 9: its metrics ask for 9 pods"


def test_the_total_is_constant_while_the_hpa_creates_pods_step_by_step() -> None:
    """9 pods are needed: existing pods, expected pods and headroom always add up to 9."""
    at, plans = capacity(), []
    for bound, coming in ((2, 4), (4, 4), (4, 8), (8, 8), (8, 9), (9, 9)):
        row = demand(9, bound=bound, coming=coming)
        made = plan([row], at, Limits(), NOW)
        at = applied(made, at)
        plans.append(made.orders[0])
        assert made.orders[0].reckoned + made.orders[0].replicas == 9
    assert [each.replicas for each in plans] == [5, 5, 5, 1, 1, 0]


def test_headroom_is_lowered_when_the_workload_requests_the_pods() -> None:
    """``spec.replicas`` is raised some milliseconds before the pods exist."""
    at = capacity(headroom(5, pods=4))
    assert order(demand(9, bound=4, coming=8, asked=8), at=at).replicas == 1


def test_headroom_is_added_for_pods_that_the_hpa_delays() -> None:
    at = capacity(headroom(2, pods=4))
    made = plan([demand(9, bound=4, coming=8)], at, Limits(), NOW)
    (first,) = made.orders
    assert (first.replicas, first.reckoned) == (3, 6), "2 for those that come, 1 for the last"
    later = order(demand(9, bound=8, coming=9), at=applied(made, at))
    assert later.replicas == 1


def test_pods_and_headroom_together_do_not_exceed_max_replicas() -> None:
    at = capacity(headroom(4, pods=4))
    made = order(demand(20, bound=4, coming=8, most=8), at=at)
    assert (made.replicas, made.reckoned) == (4, 4)
    assert order(demand(20, bound=8, coming=8, most=8), at=at).replicas == 0


def test_pods_about_to_be_created_do_not_raise_a_floor() -> None:
    at = capacity(headroom(4, pods=2))
    made = order(demand(4, bound=2, coming=4, floor=4), at=at)
    assert made.replicas == 4
    then = order(demand(4, bound=4, floor=4), at=capacity(headroom(4, pods=made.reckoned)))
    assert (then.replicas, then.nudge) == (4, True)


def test_an_order_has_all_reasons() -> None:
    """Not only the last one: growth made the order, the limit cut it."""
    made = order(demand(9, bound=1, most=8), limits=Limits(max_pods=3))
    assert made.why == (
        "Deployment/inference has 1 pod of 8: its metrics ask for 9 pods; "
        "Deployment/inference may have at most 8 pods; limits.max_pods allows 3 pods"
    )


def test_new_nodes_of_a_pool_that_never_had_one_are_unknown() -> None:
    at = capacity(pools=(pool(example=None),))
    made = order(demand(4), at=at)
    assert (made.replicas, made.ready, made.nodes) == (4, 0, None)


# A floor


def test_a_floor_is_kept_regardless_of_demand() -> None:
    made = order(demand(2, bound=2), limits=Limits(min_pods=2))
    assert (made.replicas, codes(made)) == (2, ["min_pods"])


def test_a_workload_may_have_its_own_floor() -> None:
    made = order(demand(2, bound=2, floor=3, name="a"), demand(1, bound=1, name="b"))
    assert (made.replicas, codes(made)) == (3, ["floor"])


def test_a_floor_does_not_exceed_max_replicas() -> None:
    assert order(demand(2, bound=2, floor=3, most=3)).replicas == 1
    assert order(demand(2, bound=2, most=3), limits=Limits(min_pods=3)).replicas == 1


def test_a_target_scaled_to_0_has_its_floor_and_no_forecast() -> None:
    history = EMPTY
    for minute in range(60):
        history = learn(history, DemandPoint(NOW - (60 - minute) * 60, minute))
    parked = demand(0, history=history, parked=True)
    assert order(parked).replicas == 0
    assert order(replace(parked, floor=2)).replicas == 2
    assert order(parked, limits=Limits(min_pods=2)).replicas == 0, "no HPA scales it now"


def test_queues_of_jobs_have_no_floor() -> None:
    assert order(demand(0, most=None), limits=Limits(min_pods=2)).replicas == 0


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
    seen = []
    for second in range(0, 1501, 15):
        made = order(demand(2, bound=2), at=at, now=NOW + second)
        at = capacity(headroom(made.replicas, made.pods, made.needed_at))
        if second % 300 == 0:
            seen.append(made.replicas)
    assert seen == [8, 8, 4, 2, 1, 0]


@pytest.mark.parametrize(("age", "every"), [(4.4, 1.1), (2.8, 0.7), (8.8, 2.2)])
def test_a_halving_that_is_due_exactly_now_happens_once(age: float, every: float) -> None:
    limits = Limits(hold_seconds=every, decay_seconds=every)
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
    made = order(demand(1), at=at, limits=Limits(max_pods=1))
    assert (made.replicas, made.needed_at) == (1, NOW)


def test_headroom_grows_immediately() -> None:
    assert order(demand(5, bound=2), at=capacity(headroom(1, pods=2))).replicas == 3


# Consumed headroom


def test_headroom_taken_by_pods_is_not_ordered_again() -> None:
    made = order(demand(4, bound=4), at=capacity(headroom(2, pods=2)))
    assert (made.replicas, made.nudge) == (0, False)


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
    seen = {}
    for second in range(0, 1216, 15):
        made = order(demand(None, bound=2, known=NOW), at=at, now=NOW + second)
        at = capacity(headroom(made.replicas, made.pods, made.needed_at))
        seen[second] = made.replicas
    assert [seen[at] for at in (0, 285, 300, 600, 900, 1200)] == [8, 8, 4, 2, 1, 0]


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


# Limits and budgets

FULL = tuple(node(f"full-{number}", used=GPU) for number in range(3))


def test_the_kill_switch_removes_all_headroom() -> None:
    made = order(demand(6), at=capacity(headroom(4)), limits=Limits(enabled=False))
    assert (made.replicas, codes(made)[-1]) == (0, "stopped")


def test_the_limit_of_a_shape() -> None:
    made = order(demand(50), limits=Limits(max_pods=3))
    assert (made.replicas, codes(made)[-1]) == (3, "max_pods")


def test_the_limit_of_a_pool_counts_gpus() -> None:
    big = pod(gpus=4, cpu="2")
    at = capacity(pools=(pool(example=node("example", gpus=8)),))
    made = order(demand(50, shape=big), at=at, limits=Limits(max_gpus_per_pool=10))
    assert (made.replicas, codes(made)[-1]) == (2, "max_gpus")


def test_shapes_share_the_limit_of_their_pool_in_turn() -> None:
    rows = [demand(50, name="a"), demand(2, namespace="z", name="b")]
    made = plan(rows, capacity(), Limits(max_gpus_per_pool=5), NOW).orders
    assert [each.replicas for each in made] == [3, 2]


def test_gpus_that_a_shape_cannot_use_go_to_the_others_in_the_same_round() -> None:
    four = pod(gpus=4, cpu="1")
    at = capacity(
        headroom(2, shape=four),
        nodes=(node("n", used=GPU, gpus=8),),
        pools=(pool(example=node("example", gpus=8), high=1),),
    )
    rows = [demand(0, name="large", shape=four), demand(5, name="small")]
    limits = Limits(max_gpus_per_pool=10)
    made = plan(rows, at, limits, NOW)
    given = {each.workloads[0].name: each.replicas for each in made.orders}
    assert given == {"large": 1, "small": 3}
    again = plan(rows, applied(made, at), limits, NOW)
    assert [each.replicas for each in again.orders] == [each.replicas for each in made.orders]


def test_a_budget_pays_for_headroom_until_the_lifeline_expires() -> None:
    limits = Limits(gpu_hours_per_day=10, lifeline_seconds=1800)
    made = order(demand(8), at=capacity(spent={"gpu": 8.4}), limits=limits)
    assert (made.replicas, codes(made)[-1]) == (3, "budget")
    assert made.reasons[-1].text == "the budget pays for 3 GPUs: 8.4 GPU-hours are used"


def test_an_exhausted_budget_removes_headroom() -> None:
    at = capacity(headroom(4), spent={"gpu": 10.0})
    assert order(demand(8), at=at, limits=Limits(gpu_hours_per_day=10)).replicas == 0


def test_a_budget_in_money_uses_the_price_of_the_pool() -> None:
    limits = Limits(cost_per_day=20, gpu_hour_prices={"gpu": 4, "*": 1}, lifeline_seconds=3600)
    made = order(demand(8), at=capacity(spent={"gpu": 3}), limits=limits)
    assert (made.replicas, codes(made)[-1]) == (2, "budget")


def test_a_budget_in_money_orders_nothing_without_a_price() -> None:
    made = order(demand(8), limits=Limits(cost_per_day=20, gpu_hour_prices={"other": 4}))
    assert (made.replicas, codes(made)[-1]) == (0, "no_price")


def test_the_smaller_budget_decides() -> None:
    limits = Limits(
        cost_per_day=100, gpu_hours_per_day=2, gpu_hour_prices={"*": 1}, lifeline_seconds=3600
    )
    assert order(demand(8), limits=limits).replicas == 2


def test_a_pool_at_its_maximum_gets_no_order_that_does_not_fit() -> None:
    made = order(demand(9, bound=3), at=capacity(nodes=FULL, pools=(pool(high=5),)))
    assert (made.replicas, made.nodes, codes(made)[-1]) == (2, 2, "pool_full")
    assert made.reasons[-1].text == "pool gpu has no room for more within its maximum of 5 nodes"


def test_pending_pods_come_before_headroom() -> None:
    at = capacity(nodes=FULL, pools=(pool(high=5),))
    assert order(demand(9, bound=3, pending=1), at=at).replicas == 1


def test_the_limits_of_a_karpenter_pool_apply() -> None:
    at = capacity(nodes=FULL, pools=(pool(limits={"nvidia.com/gpu": 4000}),))
    made = order(demand(9, bound=3), at=at)
    assert (made.replicas, codes(made)[-1]) == (1, "pool_full")


def test_nodes_that_boot_for_an_order_do_not_reduce_it() -> None:
    booting = tuple(node(f"new-{number}", ready=False) for number in range(2))
    at = capacity(headroom(2, pods=3), nodes=FULL + booting, pools=(pool(high=5),))
    made = order(demand(5, bound=3), at=at)
    assert (made.replicas, made.ready, made.nodes) == (2, 0, 0)


# Existing capacity


def test_room_on_ready_nodes_counts_as_ready_and_is_still_ordered() -> None:
    free = node("free")
    made = order(demand(5, bound=3), at=capacity(nodes=(*FULL, free)))
    assert (made.replicas, made.ready, made.nodes) == (2, 1, 1)


OTHER_TAINT = Taint("other", "", "NoSchedule")
NOT_FREE: dict[str, tuple[PoolNode, int]] = {
    "the node is not ready": (node("x", ready=False), 0),
    "a pod uses it": (node("x", used=GPU), 1),
    "its taint is not tolerated": (node("x", taints=(OTHER_TAINT,)), 1),
    "it is another pool's": (node("x", pool="other"), 1),
}


@pytest.mark.parametrize(("found", "nodes"), NOT_FREE.values(), ids=NOT_FREE)
def test_occupied_room_does_not_count_as_ready(found: PoolNode, nodes: int) -> None:
    made = order(demand(1), at=capacity(nodes=(found,)))
    assert (made.replicas, made.ready, made.nodes) == (1, 0, nodes)


def test_pending_pods_get_free_room_first() -> None:
    made = order(demand(2, pending=1), at=capacity(nodes=(node("free"),)))
    assert (made.replicas, made.ready, made.nodes) == (1, 0, 1)


# Pools

BACKED_OFF = pool(backoff_until=NOW + 60)


def test_headroom_is_not_raised_while_a_pool_is_backed_off() -> None:
    at = capacity(headroom(2, pods=1), pools=(BACKED_OFF,))
    made = order(demand(6, bound=1), at=at)
    assert (made.replicas, codes(made)[-1]) == (2, "backoff")


def test_existing_headroom_is_kept_while_a_pool_is_backed_off() -> None:
    at = capacity(headroom(2, pods=1), pools=(BACKED_OFF,))
    assert order(demand(1, bound=1), at=at).replicas == 2


def test_after_the_backoff_headroom_is_raised() -> None:
    at = capacity(headroom(2, pods=1), pools=(pool(backoff_until=NOW),))
    assert order(demand(6, bound=1), at=at).replicas == 5


@pytest.mark.parametrize("trap", [Trap.MIG_MIXED, Trap.RENAMED_SHARED])
def test_a_pool_that_would_block_the_autoscaler_gets_no_headroom(trap: Trap) -> None:
    at = capacity(headroom(2), pools=(pool(traps=frozenset({trap})),))
    made = plan([demand(6)], at, Limits(), NOW)
    (only,) = made.orders
    assert (only.replicas, codes(only)[-1]) == (0, "trap")
    assert [(note.pool, note.reason) for note in made.notes] == [
        ("gpu", Reason("trap", TRAPS[trap]))
    ]


def test_a_time_sliced_pool_gets_a_note_and_headroom() -> None:
    at = capacity(pools=(pool(traps=frozenset({Trap.TIME_SLICED})),))
    made = plan([demand(2)], at, Limits(), NOW)
    assert [each.replicas for each in made.orders] == [2]
    assert [note.reason.text for note in made.notes] == [TRAPS[Trap.TIME_SLICED]]


def test_a_backoff_is_noted() -> None:
    made = plan([], capacity(pools=(BACKED_OFF,)), Limits(), NOW)
    assert [note.reason.text for note in made.notes] == [
        "the autoscaler has backed off for 60 s more: headroom is not raised"
    ]


ANY = replace(GPU, node_selector=())
A, B = pool("a"), pool("b")
NEW = Pool("new")
CHOICES: dict[str, tuple[Demand, tuple[Pool, ...], str]] = {
    "where most of its pods are": (demand(1, shape=ANY, pools={"a": 1, "b": 2}), (A, B), "b"),
    "else the first": (demand(1, shape=ANY), (B, A), "a"),
    "not one whose nodes do not take it": (demand(1, shape=pod(pool="b")), (A, B), "b"),
    "not one in a backoff": (
        demand(1, shape=ANY),
        (replace(A, backoff_until=NOW + 1), B),
        "b",
    ),
    "not one in a trap": (
        demand(1, shape=ANY),
        (replace(A, traps=frozenset({Trap.MIG_MIXED})), B),
        "b",
    ),
    "one that is known before one that is not": (demand(1, shape=ANY), (NEW, pool("z")), "z"),
    "one that never had a node, by its name": (
        demand(1, shape=pod(pool="new")),
        (Pool("aaa"), NEW, A),
        "new",
    ),
}


@pytest.mark.parametrize(("row", "pools", "chosen"), CHOICES.values(), ids=CHOICES)
def test_an_order_goes_to_the_right_pool(row: Demand, pools: tuple[Pool, ...], chosen: str) -> None:
    made = order(row, at=capacity(pools=pools))
    assert (made.pool, made.replicas) == (chosen, 1)


REFUSED: dict[str, tuple[Shape, str]] = {
    "it fits no node": (pod(gpus=2), "no_pool"),
    "no pool has its labels": (pod(pool="other"), "no_pool"),
    "it holds no GPU": (replace(GPU, requests=(("cpu", 1000), ("pods", 1000))), "no_gpu"),
    "its claims are of unknown size": (
        replace(GPU, claims=("one-gpu",), claim_devices=None),
        "claims",
    ),
    "its claims are of a namespace that is not listed": (
        replace(GPU, claims=("one-gpu",), claim_devices=1),
        "claim_namespace",
    ),
}


@pytest.mark.parametrize(("shape", "code"), REFUSED.values(), ids=REFUSED)
def test_an_order_of_0_has_a_reason(shape: Shape, code: str) -> None:
    made = order(demand(3, shape=shape), at=capacity(headroom(2, shape=shape)))
    assert made.replicas == 0
    assert code in codes(made)


def test_claims_count_as_gpus_and_their_ready_part_is_unknown() -> None:
    shape = replace(GPU, claims=("two",), claim_devices=2)
    limits = Limits(claim_namespaces=frozenset({"ml"}))
    made = order(demand(9, shape=shape), at=capacity(nodes=(node("free"),)), limits=limits)
    assert (made.replicas, made.ready, made.nodes) == (2, None, None)


def test_a_pool_that_never_had_a_node_gets_headroom_within_the_limits() -> None:
    made = order(demand(20), at=capacity(pools=(Pool("gpu"),)), limits=Limits(max_pods=4))
    assert (made.pool, made.replicas) == ("gpu", 4)
