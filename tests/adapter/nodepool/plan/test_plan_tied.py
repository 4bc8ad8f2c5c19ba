"""Buffers of the cluster-autoscaler are tied to the nodes that exist, so that none comes twice."""

from __future__ import annotations

from typing import Any

from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order, Tie
from tests.adapter.nodepool.planning import GPU, NOW, capacity, demand, headroom, node, order, pool

LIMITS = Limits(share=0, max_pods=100, max_gpus_per_pool=100)
FULL = node("full", GPU)


def made(*free: str, booting: int = 0, limits: Limits = LIMITS, **fields: Any) -> Order:
    """The order of a workload with one pod that has two pods of headroom."""
    nodes = [FULL, *(node(name) for name in free)]
    nodes += [node(f"boots-{number}", ready=False) for number in range(booting)]
    at = capacity(nodes=tuple(nodes), pools=(pool(**fields),))
    return order(demand(1, bound=1, asked=1, coming=1, floor=2), at=at, limits=limits)


def test_an_order_that_needs_a_node_may_add_it() -> None:
    """Those that exist may be taken before the autoscaler looks: it orders only the missing one."""
    assert (made("a").nodes, made("a").tie) == (1, Tie(False, ("a",), 1))
    assert (made().nodes, made().tie) == (2, None)
    assert made("a", booting=1, limits=LIMITS.model_copy(update={"min_pods": 4})).tie == Tie(
        False, ("a",), 3
    )


def test_while_the_autoscaler_refuses_nodes_an_order_keeps_those_that_exist() -> None:
    assert made("a", backoff_until=NOW + 60).tie is None


def test_an_order_whose_nodes_exist_is_tied_to_those_that_are_ready() -> None:
    assert made("a", "b", "c").tie == Tie(True, ("a", "b"), 2)
    assert made("a", booting=1).tie == Tie(True, ("a",), 2)
    assert made(booting=2).tie == Tie(True, (), 2)


def test_a_node_that_the_autoscaler_has_requested_is_enough() -> None:
    assert made("a", coming=1).tie == Tie(True, ("a",), 2)


def test_karpenter_collects_pods_before_it_orders_and_placeholders_are_pods() -> None:
    assert made("a", "b", waits=False).tie is None
    placeholders = LIMITS.model_copy(update={"buffers": False})
    assert made("a", "b", limits=placeholders).tie is None


def test_placeholders_of_pods_that_are_about_to_come_are_removed_before() -> None:
    """With a buffer, and with Karpenter, they wait for the pods."""
    held = capacity(headroom(4, pods=1), nodes=(FULL,))
    row = demand(8, bound=1, asked=1, coming=4, most=8)
    placeholders = LIMITS.model_copy(update={"buffers": False})
    before, after = (order(row, at=held, limits=limits) for limits in (LIMITS, placeholders))
    assert (before.replicas, after.replicas) == (7, 4)
    assert "3 pods will be created soon: room is left for them" in after.why
    assert after.reckoned == 4
