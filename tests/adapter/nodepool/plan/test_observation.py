"""Conversion of objects and values to demand and capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adapter.hpa import Missing, Values
from adapter.nodepool.learn.boots import BootTimes
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.model.shape import key
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.observation import PlanInput, headroom, observe
from adapter.nodepool.plan.plan import plan
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.targets import pods_by_workload, targets
from tests.adapter.nodepool import orders
from tests.adapter.nodepool.manifests import (
    GPU,
    SPEC,
    T0,
    cluster,
    deployment,
    found,
    hpa,
    job,
    node,
    pod,
    priority_class,
)

NOW = T0 + 60
REF = WorkloadRef("team", "Deployment", "inference")
BUSY: dict[WorkloadRef, tuple[Values, ...]] = {REF: ({"a": 145_000, "b": 145_000},)}


def world(**more: Any) -> ClusterTables:
    """Two busy pods of a Deployment with an HPA, on one of two nodes."""
    return cluster(
        **{
            "nodes": [node("n1"), node("n2")],
            "pods": [pod("a", on="n1"), pod("b", on="n1")],
            "deployments": [deployment(2)],
            "autoscalers": [hpa()],
            **more,
        }
    )


def look(
    seen: ClusterTables, values: Mapping[WorkloadRef, tuple[Values, ...]] = BUSY, **options: Any
) -> PlanInput:
    pods_of = pods_by_workload(seen.pods)
    rows = targets(seen, pods_of).targets
    ledger = options.pop("ledger", Ledger())
    return observe(seen, rows, values, pods_of, ledger, (), NOW, **options)


def only(seen: PlanInput) -> Demand:
    (row,) = seen.demand
    return row


def test_a_busy_workload_wants_what_its_metric_calls_for() -> None:
    row = only(look(world()))
    assert row.workload == REF
    assert (row.bound, row.pending, row.wanted, row.max_replicas) == (2, 0, 6, 8)
    assert (row.asked, row.coming, row.expected) == (2, 4, 4)
    assert (row.known_at, row.pools) == (NOW, {"gput4": 2})


def test_a_missing_value_is_not_zero() -> None:
    ledger = Ledger(known_at={REF: T0})
    row = only(look(world(), {REF: (Missing("503"),)}, ledger=ledger))
    assert (row.wanted, row.known_at) == (None, T0)


def test_pending_and_terminating_pods_are_distinguished() -> None:
    rows = [
        pod("a", on="n1"),
        pod("b", on="n1", deletionTimestamp="2026-01-01T00:00:50Z"),
        pod("c"),
    ]
    row = only(look(world(pods=rows)))
    assert (row.bound, row.pending) == (1, 1)


def test_placeholders_are_not_pods_of_a_workload() -> None:
    rows = [pod("a", on="n1"), pod("h", labels={"gpu-metrics-adapter.io/headroom": "x"})]
    assert only(look(world(pods=rows))).pending == 0


def test_a_workload_without_pods_has_the_shape_and_priority_of_its_template() -> None:
    rows = [priority_class(1000)]
    named = deployment(0, priorityClassName="gpu-metrics-adapter-headroom")
    row = only(look(world(pods=[], deployments=[named], classes=rows)))
    assert dict(row.shape.requests)[GPU] == 1000
    assert row.shape.priority == 1000


def test_the_floor_of_the_hpa_becomes_the_floor_of_the_demand() -> None:
    scaler = hpa(annotations={"gpu-metrics-adapter.io/headroom": "2"})
    assert only(look(world(autoscalers=[scaler]))).floor == 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"autoscalers": [hpa([{"type": "Resource", "resource": {"name": "cpu"}}])]},
            {"no_metric": 1},
        ),
        (
            {"deployments": []},
            {"target_unknown": 1},
        ),
        ({"autoscalers": [hpa(), hpa(name="other")]}, {"second_hpa": 1}),
    ],
    ids=["on CPU alone", "its target is not known", "two on one workload"],
)
def test_objects_that_are_not_planned_for_are_counted(
    changed: dict[str, Any], reason: dict[str, int]
) -> None:
    seen = world(**changed)
    assert targets(seen, pods_by_workload(seen.pods)).left_out == reason


def test_workloads_without_gpus_are_ignored() -> None:
    plain: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    seen = world(pods=[pod("a", on="n1", spec=plain)], deployments=[deployment(1, **plain)])
    assert targets(seen, pods_by_workload(seen.pods)) == ((), {})


def test_only_the_configured_namespaces_are_planned_for() -> None:
    seen = world()
    assert targets(seen, pods_by_workload(seen.pods), ("other",)).targets == ()
    assert look(world(jobs=[job("j")], autoscalers=[]), within=("other",)).demand == ()


def test_jobs_of_one_shape_are_one_queue() -> None:
    rows = [job(f"j{i}") for i in range(50)] + [job("held", suspend=True)]
    theirs = [pod(f"j{i}-x", on="n2", owner=("Job", f"j{i}")) for i in range(3)]
    theirs.append(pod("j3-x", owner=("Job", "j3")))
    seen = look(world(autoscalers=[], jobs=rows, pods=theirs))
    row = only(seen)
    assert row.workload == WorkloadRef("team", "Job", key(row.shape))
    assert (row.bound, row.pending, row.wanted, row.expected) == (3, 1, 4, 4)
    assert row.max_replicas is None
    assert seen.left_out == {"job_suspended": 1}


def test_jobs_are_ignored_if_the_setting_is_off() -> None:
    assert look(world(autoscalers=[], jobs=[job("j")]), jobs=False).demand == ()


def test_an_empty_queue_is_remembered() -> None:
    ledger = Ledger()
    theirs = [pod("j-x", on="n2", owner=("Job", "j"))]
    ledger.learn(look(world(autoscalers=[], jobs=[job("j")], pods=theirs)).demand, T0)
    row = only(look(world(autoscalers=[], pods=[]), ledger=ledger))
    assert (row.wanted, row.history.recent[-1].pods) == (0, 1)


def test_devices_of_a_claim_come_from_its_template() -> None:
    spec = {"containers": [], "resourceClaims": [{"resourceClaimTemplateName": "two"}]}
    seen = world(pods=[pod("a", on="n1", spec=spec)])
    assert only(look(seen)).shape.claim_devices is None


def test_the_larger_of_two_objects_of_one_shape_is_the_headroom() -> None:
    shape = only(look(world())).shape
    rows = [
        found(method, orders.stored(shape, replicas), None)
        for method, replicas in (
            (ProvisioningMethod.BUFFER, 3),
            (ProvisioningMethod.PLACEHOLDER, 1),
        )
    ]
    (row,) = headroom(rows)
    assert (row.replicas, row.shape, row.namespace) == (3, shape, "team")


def test_boot_times_reach_the_pool() -> None:
    ledger = Ledger(boots=BootTimes({"gput4": (60.0, 90.0)}))
    assert look(world(), ledger=ledger).capacity.pools["gput4"].boot_seconds == 90.0


def test_manifests_become_a_plan() -> None:
    """Six pods are needed, two exist, the HPA adds two: headroom is two."""
    seen = look(world())
    (order,) = plan(seen.demand, seen.capacity, Limits(share=0), NOW).orders
    assert (order.namespace, order.pool, order.replicas, order.ready) == ("team", "gput4", 2, 2)


def test_pods_of_a_shape_are_counted_with_the_amounts_of_their_limits() -> None:
    assert SPEC["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert dict(only(look(world())).shape.requests) == {"cpu": 1000, GPU: 1000, "pods": 1000}
