"""One pod of headroom beside pods that wait for a node that nobody has ordered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.learn.forecast import PROMPT, prompt_quantile
from adapter.nodepool.model.capacity import Capacity
from adapter.nodepool.model.demand import JOB_QUEUE, Demand
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order
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
from tests.examples import bounded

LIMITS = Limits(share=0, max_pods=100, max_gpus_per_pool=100)
BOUND = 10


def waiting(pending: int) -> Demand:
    """A calm workload of which more pods than usual were created just now."""
    return demand(BOUND + pending, bound=BOUND, pending=pending, history=past([BOUND] * 60))


def at(booting: int = 0, **fields: Any) -> Capacity:
    full = tuple(node(f"full-{number}", GPU) for number in range(BOUND))
    boots = tuple(node(f"boots-{number}", ready=False) for number in range(booting))
    return capacity(nodes=full + boots, pools=(pool(**fields),))


def made(pending: int, booting: int = 0, **changes: Any) -> Order:
    return order(waiting(pending), at=at(booting), limits=replace_limits(**changes))


def replace_limits(**changes: Any) -> Limits:
    return LIMITS.model_copy(update=changes)


def test_enough_pods_without_a_node_get_one_pod_of_headroom() -> None:
    ordered = made(PROMPT)
    assert (ordered.replicas, codes(ordered)[-1], ordered.nodes) == (1, "prompt", 1)
    assert "5 pods without a node" in ordered.why


def test_fewer_do_not_if_no_more_load_is_expected() -> None:
    ordered = made(PROMPT - 1)
    assert (ordered.replicas, codes(ordered)) == (0, ["enough"])


def test_pods_for_which_nodes_boot_do_not_count() -> None:
    assert made(PROMPT, booting=1).replicas == 0
    assert made(PROMPT + 1, booting=1).replicas == 1


@pytest.mark.parametrize("changes", [{"max_pods": 0}, {"enabled": False}, {"max_gpus_per_pool": 0}])
def test_limits_apply(changes: dict[str, Any]) -> None:
    assert made(PROMPT, **changes).replicas == 0


def test_a_workload_at_its_maximum_gets_none() -> None:
    full = replace(waiting(PROMPT), max_replicas=BOUND + PROMPT)
    assert order(full, at=at(), limits=LIMITS).replicas == 0
    more = replace(waiting(PROMPT), max_replicas=BOUND + PROMPT + 1)
    assert order(more, at=at(), limits=LIMITS).replicas == 1


def test_a_workload_at_its_maximum_gets_none_beside_a_queue_of_jobs() -> None:
    """Headroom of the queue would not be for the pods that wait."""
    full = replace(waiting(PROMPT), max_replicas=BOUND + PROMPT)
    queue = demand(0, name="jobs", most=None)
    queue = replace(queue, workload=queue.workload._replace(kind=JOB_QUEUE))
    assert order(full, queue, at=at(), limits=LIMITS).replicas == 0
    more = replace(full, max_replicas=BOUND + PROMPT + 1)
    assert order(more, queue, at=at(), limits=LIMITS).replicas == 1


def test_a_pool_that_the_autoscaler_has_given_up_gets_none() -> None:
    failed = at(backoff_until=NOW + 60)
    assert order(waiting(PROMPT), at=failed, limits=LIMITS).replicas == 0


def test_karpenter_orders_at_once_without_headroom() -> None:
    assert order(waiting(PROMPT), at=at(waits=False), limits=LIMITS).replicas == 0


def test_placeholders_would_be_new_pods_themselves() -> None:
    assert made(PROMPT, buffers=False).replicas == 0


def test_a_queue_of_jobs_gets_none() -> None:
    jobs = waiting(PROMPT)
    jobs = replace(jobs, workload=jobs.workload._replace(kind=JOB_QUEUE), max_replicas=None)
    assert order(jobs, at=at(), limits=LIMITS).replicas == 0


def test_it_stays_one_while_the_pods_have_no_node() -> None:
    before = replace(at(), headroom=(headroom(1, pods=BOUND + PROMPT),))
    assert order(waiting(PROMPT), at=before, limits=LIMITS).replicas == 1


@bounded(100)
@given(st.floats(0.01, 0.99), st.integers(0, 20))
def test_more_pods_without_a_node_need_less_probable_load(quantile: float, pending: int) -> None:
    raised = prompt_quantile(quantile, pending)
    assert quantile - 1e-9 <= raised <= prompt_quantile(quantile, pending + 1) <= 1
    assert raised == 1 if pending >= PROMPT else raised < 1
