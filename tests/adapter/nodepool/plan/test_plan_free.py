"""Free nodes that exist are kept for loads for which no node would be ordered."""

from __future__ import annotations

import math
import random

import pytest

from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.history import DemandHistory
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order
from adapter.nodepool.plan.plan import plan
from tests.adapter.nodepool.planning import (
    GPU,
    NOW,
    capacity,
    codes,
    demand,
    headroom,
    node,
    order,
    past,
    pool,
)

LIMITS = Limits(share=0, quantile=0.5, max_pods=100, max_gpus_per_pool=100)


def noisy(mean: float = 20, minutes: int = 360) -> DemandHistory:
    draw = random.Random(1)
    return past([max(0.0, draw.gauss(mean, math.sqrt(mean))) for _ in range(minutes)])


ROW = demand(20, bound=20, history=noisy())


def with_nodes(free: int, *, row: Demand = ROW, limits: Limits = LIMITS, booting: int = 0) -> Order:
    full = tuple(node(f"full-{number}", GPU) for number in range(row.bound))
    empty = tuple(node(f"free-{number}") for number in range(free))
    boots = tuple(node(f"boots-{number}", ready=False) for number in range(booting))
    return order(row, at=capacity(nodes=full + empty + boots), limits=limits)


BARE = with_nodes(0)


def test_free_nodes_are_kept_beyond_what_would_be_ordered() -> None:
    made = with_nodes(BARE.replicas + 1)
    assert made.replicas == BARE.replicas + 1
    assert codes(made) == ["forecast", "free"]
    assert "free nodes are kept for 1 pod more" in made.why
    assert (made.ready, made.nodes) == (made.replicas, 0)


def test_a_booting_node_is_kept_too() -> None:
    assert with_nodes(BARE.replicas, booting=1).replicas == BARE.replicas + 1


def test_no_more_free_nodes_are_kept_than_the_load_may_need() -> None:
    most = with_nodes(50).replicas
    assert BARE.replicas < most < 50
    assert with_nodes(49).replicas == most


def test_a_surer_order_keeps_more() -> None:
    surer = Limits(share=0, quantile=0.9, max_pods=100, max_gpus_per_pool=100)
    assert with_nodes(50, limits=surer).replicas > with_nodes(50).replicas


LIMITED = {
    "of the shape": (LIMITS.model_copy(update={"max_pods": BARE.replicas}), "max_pods"),
    "of the pool": (LIMITS.model_copy(update={"max_gpus_per_pool": BARE.replicas}), ""),
    "kill switch": (LIMITS.model_copy(update={"enabled": False}), "stopped"),
}


@pytest.mark.parametrize(("limits", "code"), LIMITED.values(), ids=LIMITED)
def test_limits_hold_for_free_nodes(limits: Limits, code: str) -> None:
    made = with_nodes(BARE.replicas + 3, limits=limits)
    assert made.replicas == (0 if code == "stopped" else BARE.replicas)
    assert "free" not in codes(made)


def test_the_last_gpu_that_the_limit_of_the_pool_allows_may_be_kept() -> None:
    limits = LIMITS.model_copy(update={"max_gpus_per_pool": BARE.replicas + 1})
    assert with_nodes(BARE.replicas + 3, limits=limits).replicas == BARE.replicas + 1


def test_free_nodes_are_kept_only_up_to_max_replicas() -> None:
    row = demand(20, bound=20, most=20 + BARE.replicas + 1, history=noisy())
    assert with_nodes(50, row=row).replicas == BARE.replicas + 1


def test_no_free_node_is_kept_for_a_workload_with_more_pods_than_it_may_need() -> None:
    made = with_nodes(5, row=demand(20, bound=80, history=noisy()))
    assert (made.replicas, "free" in codes(made)) == (0, False)


def test_two_workloads_do_not_keep_the_same_free_node() -> None:
    """Both workloads may need one more, and one node is free beyond their orders."""
    other = demand(20, bound=20, name="other", namespace="other", history=noisy())
    full = tuple(node(f"full-{number}", GPU) for number in range(40))
    empty = tuple(node(f"free-{number}") for number in range(2 * BARE.replicas + 1))
    at = capacity(nodes=full + empty, pools=(pool(),))
    made = plan((ROW, other), at, LIMITS, NOW).orders
    assert sum(ordered.replicas for ordered in made) == 2 * BARE.replicas + 1


def test_what_is_only_kept_does_not_extend_the_hold() -> None:
    pods = ROW.bound + BARE.replicas
    row = demand(20, bound=pods, history=noisy())
    full = tuple(node(f"full-{number}", GPU) for number in range(pods))
    at = capacity(headroom(1, pods=pods, needed=NOW - 5000), nodes=(*full, node("free")))
    made = order(row, at=at, limits=LIMITS)
    assert (made.replicas, codes(made)[-1]) == (1, "free")
    assert made.needed_at < NOW
