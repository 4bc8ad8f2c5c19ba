"""The limits of a plan: budgets, existing capacity and pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.nodepool.model.capacity import Pool, PoolNode, Trap
from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.plan.poolchoice import TRAPS
from adapter.pipeline.cluster.taints import Taint
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

# Limits and budgets

FULL = tuple(node(f"full-{number}", used=GPU) for number in range(3))


def test_the_kill_switch_removes_all_headroom() -> None:
    made = order(demand(6), at=capacity(headroom(4)), limits=Limits(share=0, enabled=False))
    assert (made.replicas, codes(made)[-1]) == (0, "stopped")


def test_the_limit_of_a_shape() -> None:
    made = order(demand(50), limits=Limits(share=0, max_pods=3))
    assert (made.replicas, codes(made)[-1]) == (3, "max_pods")


def test_the_limit_of_a_pool_counts_gpus() -> None:
    big = pod(gpus=4, cpu="2")
    at = capacity(pools=(pool(example=node("example", gpus=8)),))
    made = order(demand(50, shape=big), at=at, limits=Limits(share=0, max_gpus_per_pool=10))
    assert (made.replicas, codes(made)[-1]) == (2, "max_gpus")


def test_shapes_share_the_limit_of_their_pool_in_turn() -> None:
    rows = [demand(50, name="a"), demand(2, namespace="z", name="b")]
    made = plan(rows, capacity(), Limits(share=0, max_gpus_per_pool=5), NOW).orders
    assert [ordered.replicas for ordered in made] == [3, 2]


def test_gpus_that_a_shape_cannot_use_go_to_the_others_in_the_same_round() -> None:
    four = pod(gpus=4, cpu="1")
    at = capacity(
        headroom(2, shape=four),
        nodes=(node("n", used=GPU, gpus=8),),
        pools=(pool(example=node("example", gpus=8), high=1),),
    )
    rows = [demand(0, name="large", shape=four), demand(5, name="small")]
    limits = Limits(share=0, max_gpus_per_pool=10)
    made = plan(rows, at, limits, NOW)
    replicas = {ordered.workloads[0].name: ordered.replicas for ordered in made.orders}
    assert replicas == {"large": 1, "small": 3}
    again = plan(rows, applied(made, at), limits, NOW)
    assert [ordered.replicas for ordered in again.orders] == [
        ordered.replicas for ordered in made.orders
    ]


def test_a_budget_pays_for_headroom_until_the_lifeline_expires() -> None:
    limits = Limits(share=0, gpu_hours_per_day=10, lifeline_seconds=1800)
    made = order(demand(8), at=capacity(spent={"gpu": 8.4}), limits=limits)
    assert (made.replicas, codes(made)[-1]) == (3, "budget")
    assert made.reasons[-1].text == "the budget pays for 3 GPUs: 8.4 GPU-hours are used"


def test_an_exhausted_budget_removes_headroom() -> None:
    at = capacity(headroom(4), spent={"gpu": 10.0})
    assert order(demand(8), at=at, limits=Limits(share=0, gpu_hours_per_day=10)).replicas == 0


def test_a_budget_in_money_uses_the_price_of_the_pool() -> None:
    limits = Limits(
        share=0, cost_per_day=20, gpu_hour_prices={"gpu": 4, "*": 1}, lifeline_seconds=3600
    )
    made = order(demand(8), at=capacity(spent={"gpu": 3}), limits=limits)
    assert (made.replicas, codes(made)[-1]) == (2, "budget")


def test_a_budget_in_money_orders_nothing_without_a_price() -> None:
    made = order(demand(8), limits=Limits(share=0, cost_per_day=20, gpu_hour_prices={"other": 4}))
    assert (made.replicas, codes(made)[-1]) == (0, "no_price")


def test_the_smaller_budget_decides() -> None:
    limits = Limits(
        share=0,
        cost_per_day=100,
        gpu_hours_per_day=2,
        gpu_hour_prices={"*": 1},
        lifeline_seconds=3600,
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
    made = plan([demand(6)], at, Limits(share=0), NOW)
    (only,) = made.orders
    assert (only.replicas, codes(only)[-1]) == (0, "trap")
    assert [(note.pool, note.reason) for note in made.notes] == [
        ("gpu", Reason("trap", TRAPS[trap]))
    ]


def test_a_time_sliced_pool_gets_a_note_and_headroom() -> None:
    at = capacity(pools=(pool(traps=frozenset({Trap.TIME_SLICED})),))
    made = plan([demand(2)], at, Limits(share=0), NOW)
    assert [ordered.replicas for ordered in made.orders] == [2]
    assert [note.reason.text for note in made.notes] == [TRAPS[Trap.TIME_SLICED]]


def test_a_backoff_is_noted() -> None:
    made = plan([], capacity(pools=(BACKED_OFF,)), Limits(share=0), NOW)
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
    limits = Limits(share=0, claim_namespaces=frozenset({"ml"}))
    made = order(demand(9, shape=shape), at=capacity(nodes=(node("free"),)), limits=limits)
    assert (made.replicas, made.ready, made.nodes) == (2, None, None)


def test_a_pool_that_never_had_a_node_gets_headroom_within_the_limits() -> None:
    made = order(demand(20), at=capacity(pools=(Pool("gpu"),)), limits=Limits(share=0, max_pods=4))
    assert (made.pool, made.replicas) == ("gpu", 4)
