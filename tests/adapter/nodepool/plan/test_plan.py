"""The rules of the plan: the size of orders, and floors."""

from __future__ import annotations

from dataclasses import replace

from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from tests.adapter.nodepool.planning import (
    NOW,
    applied,
    capacity,
    codes,
    demand,
    headroom,
    order,
    past,
    pod,
    pool,
)

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


def test_max_replicas_that_a_workload_just_needs_give_no_reason() -> None:
    made = order(demand(6, bound=4, most=6))
    assert made.replicas == 2
    assert "max_replicas" not in codes(made)


def test_a_workload_at_max_replicas_gets_no_headroom() -> None:
    assert order(demand(20, bound=6, most=6), at=capacity(headroom(2, pods=4))).replicas == 0


def test_headroom_is_not_negative_if_fewer_pods_are_wanted_than_exist() -> None:
    made = order(demand(1, bound=5))
    assert (made.replicas, codes(made)) == (0, ["enough"])


def test_workloads_of_one_shape_in_one_namespace_are_added_up() -> None:
    made = order(demand(3, bound=1, name="b"), demand(4, bound=1, name="a"))
    assert made.replicas == 5
    assert [workload.name for workload in made.workloads] == ["a", "b"]


def test_the_surplus_of_one_workload_does_not_reduce_the_headroom_of_another() -> None:
    assert order(demand(1, bound=9, name="a"), demand(3, bound=1, name="b")).replicas == 2


def test_each_namespace_and_shape_has_its_own_order() -> None:
    rows = [demand(1), demand(2, namespace="other"), demand(3, shape=pod(cpu="2"), name="small")]
    made = plan(rows, capacity(), Limits(share=0), NOW).orders
    assert sorted((ordered.namespace, ordered.replicas) for ordered in made) == [
        ("ml", 1),
        ("ml", 3),
        ("other", 2),
    ]


def test_growth_that_was_observed_before_is_ordered_ahead() -> None:
    history = past([6, 6, 6, 6, 6, 2, 2, 2, 2, 2] * 36)
    made = order(demand(2, bound=2, history=history), limits=Limits(share=0, quantile=0.9))
    assert made.replicas > 0


def test_the_lead_is_the_boot_time_of_the_pool() -> None:
    history = past([2 + minute // 30 for minute in range(360)])
    row = demand(14, bound=14, history=history)
    limits = Limits(share=0, boot_seconds=60, quantile=0.9)
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
        made = plan([row], at, Limits(share=0), NOW)
        at = applied(made, at)
        plans.append(made.orders[0])
        assert made.orders[0].reckoned + made.orders[0].replicas == 9
    assert [ordered.replicas for ordered in plans] == [5, 5, 5, 1, 1, 0]


def test_headroom_is_lowered_when_the_workload_requests_the_pods() -> None:
    """``spec.replicas`` is raised some milliseconds before the pods exist."""
    at = capacity(headroom(5, pods=4))
    assert order(demand(9, bound=4, coming=8, asked=8), at=at).replicas == 1


def test_headroom_is_added_for_pods_that_the_hpa_delays() -> None:
    at = capacity(headroom(2, pods=4))
    made = plan([demand(9, bound=4, coming=8)], at, Limits(share=0), NOW)
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
    made = order(demand(9, bound=1, most=8), limits=Limits(share=0, max_pods=3))
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
    made = order(demand(2, bound=2), limits=Limits(share=0, min_pods=2))
    assert (made.replicas, codes(made)) == (2, ["min_pods"])


def test_a_workload_may_have_its_own_floor() -> None:
    made = order(demand(2, bound=2, floor=3, name="a"), demand(1, bound=1, name="b"))
    assert (made.replicas, codes(made)) == (3, ["floor"])


def test_a_floor_does_not_exceed_max_replicas() -> None:
    assert order(demand(2, bound=2, floor=3, most=3)).replicas == 1
    assert order(demand(2, bound=2, most=3), limits=Limits(share=0, min_pods=3)).replicas == 1


def test_a_target_scaled_to_0_has_its_floor_and_no_forecast() -> None:
    parked = demand(0, history=past(range(60)), parked=True)
    assert order(parked).replicas == 0
    assert order(replace(parked, floor=2)).replicas == 2
    assert order(parked, limits=Limits(share=0, min_pods=2)).replicas == 0, "no HPA scales it now"


def test_queues_of_jobs_have_no_floor() -> None:
    assert order(demand(0, most=None), limits=Limits(share=0, min_pods=2)).replicas == 0
