"""Jobs of GPU pods as demand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.demand import JOB_QUEUE, Demand, WorkloadRef
from adapter.nodepool.model.history import DemandHistory, DemandPoint
from adapter.nodepool.model.shape import key
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.observation import JobPods, queues
from adapter.nodepool.seen.jobs import pods_left
from tests.adapter.nodepool.planning import (
    GPU,
    NOW,
    capacity,
    codes,
    demand,
    headroom,
    order,
    pod,
)

LEFT = {
    "one pod by default": ("spec: {}", 1),
    "parallelism": ("spec: {parallelism: 3, completions: 9}", 3),
    "fewer completions are left": (
        "{spec: {parallelism: 3, completions: 9}, status: {succeeded: 8}}",
        1,
    ),
    "all completions are there": (
        "{spec: {parallelism: 3, completions: 9}, status: {succeeded: 9}}",
        0,
    ),
    "completions without parallelism": ("spec: {completions: 5}", 1),
    "a work queue": ("spec: {parallelism: 4}", 4),
    "a work queue that ends": ("{spec: {parallelism: 4}, status: {succeeded: 1, active: 2}}", 2),
    "no parallelism at all": ("spec: {parallelism: 0}", 0),
    "suspended": ("spec: {parallelism: 4, suspend: true}", 0),
    "complete": (
        "{spec: {parallelism: 4}, status: {conditions: [{type: Complete, status: 'True'}]}}",
        0,
    ),
    "about to fail": (
        "{spec: {parallelism: 4}, status: {conditions: [{type: FailureTarget, status: 'True'}]}}",
        0,
    ),
    "not failed": (
        "{spec: {parallelism: 4}, status: {conditions: [{type: Failed, status: 'False'}]}}",
        4,
    ),
    "being deleted": (
        "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {parallelism: 4}}",
        0,
    ),
}


@pytest.mark.parametrize(("text", "left"), LEFT.values(), ids=LEFT)
def test_pods_that_a_job_should_have(text: str, left: int) -> None:
    assert pods_left(yaml.safe_load(text)) == left


def burst(jobs: int, bound: int, pending: int) -> list[JobPods]:
    """Jobs with one pod each, some of which exist already."""
    rows = [JobPods("ml", GPU, 1, 1, 0, {"gpu": 1})] * bound + [
        JobPods("ml", GPU, 1, 0, 1)
    ] * pending
    return rows + [JobPods("ml", GPU, 1, 0, 0)] * (jobs - bound - pending)


def test_jobs_of_one_shape_and_namespace_are_one_queue() -> None:
    other = pod(gpus=2)
    rows = queues(
        [*burst(50, 10, 30), JobPods("ml", other, 2, 0, 0), JobPods("b", GPU, 1, 0, 1)], {}, NOW
    )
    by_place = {(row.workload.namespace, row.workload.name): row for row in rows}
    assert {place: row.wanted for place, row in by_place.items()} == {
        ("b", key(GPU)): 1,
        ("ml", key(GPU)): 40,
        ("ml", key(other)): 0,
    }
    whole = by_place["ml", key(GPU)]
    assert (whole.bound, whole.pending, whole.max_replicas) == (10, 30, None)
    assert whole.pools == {"gpu": 10}


def test_a_queue_is_named_by_its_jobs() -> None:
    (one,) = queues([JobPods("ml", GPU, 1, 0, 1, name="train")], {}, NOW)
    assert one.name == f"Job queue {key(GPU)} (Job train)"
    (many,) = queues([JobPods("ml", GPU, 1, 0, 1, name=name) for name in "cab"], {}, NOW)
    assert many.name == f"Job queue {key(GPU)} (Job a and 2 more)"
    (past,) = queues([JobPods("ml", GPU, 0, 0, 0)], {}, NOW)
    assert past.name == f"Job queue {key(GPU)} (no Jobs now)"


def test_a_queue_keeps_its_history() -> None:
    history = DemandHistory((DemandPoint(NOW, 5),))
    (row,) = queues(
        [JobPods("ml", GPU, 1, 0, 0)], {WorkloadRef("ml", "Job", key(GPU)): history}, NOW
    )
    assert row.history is history


def test_pods_that_the_job_controller_is_about_to_create_are_not_ordered() -> None:
    """They will soon be pending, and trigger the autoscaler themselves."""
    (queue,) = queues(burst(50, 0, 3), {}, NOW)
    made = order(queue)
    assert (made.replicas, codes(made)) == (0, ["enough"])


def test_a_pod_that_has_ended_before_its_jobs_status_says_so_is_not_ordered_again() -> None:
    """Ended pods leave the watch immediately; ``status.succeeded`` follows up to seconds later."""
    running = [JobPods("ml", GPU, 1, 1, 0, {"gpu": 1})] * 4
    ended = [JobPods("ml", GPU, 1, 0, 0)] * 4
    at = capacity()
    for jobs in (running, ended, [], ended):
        for queue in queues(jobs, {}, NOW):
            assert order(queue, at=at).replicas == 0


def test_a_stream_of_short_jobs_leaves_no_more_in_the_history_than_there_were_pods() -> None:
    """Each minute two Jobs run, and two have just ended."""
    lagging = [JobPods("ml", GPU, 1, 1, 0)] * 2 + [JobPods("ml", GPU, 1, 0, 0)] * 2
    ledger = Ledger()
    for minute in range(60):
        ledger.learn(queues(lagging, ledger.histories, NOW + 60 * minute), NOW + 60 * minute)
    (history,) = ledger.histories.values()
    assert {point.pods for point in history.recent} == {2}
    (queue,) = queues(lagging, ledger.histories, NOW + 3600)
    assert order(queue, now=NOW + 3600).replicas == 0


def test_jobs_that_have_just_ended_keep_no_headroom_beyond_its_hold() -> None:
    """Regardless of the length of the stream, the hold starts when the headroom was last needed."""
    lagging = [JobPods("ml", GPU, 1, 0, 0)] * 4
    (queue,) = queues(lagging, {}, NOW)
    made = order(queue, at=capacity(headroom(4, pods=4, needed=NOW - 1000)))
    assert (made.replicas, codes(made)) == (0, ["ended"])


BESIDE = {
    "alone": (),
    "beside an HPA that needs none": (demand(3, bound=3),),
    "beside an HPA that grows": (demand(5, bound=3, coming=3),),
    "beside two HPAs": (demand(2, bound=2), demand(3, bound=1, name="other", coming=1)),
}


@pytest.mark.parametrize("boot", [60.0, 120.0, 300.0, 900.0])
@pytest.mark.parametrize("hold", [30.0, 120.0, 600.0])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_after_the_last_job_headroom_falls_to_the_need_within_one_lead(
    boot: float, hold: float, beside: tuple[Demand, ...]
) -> None:
    """In rounds of 15 s. An order that has gone does not come back."""
    limits = Limits(share=0, hold_seconds=hold, decay_seconds=120, boot_seconds=boot)
    queue = replace(demand(0, most=None), workload=WorkloadRef("ml", JOB_QUEUE, "q"))
    needed = order(*beside, limits=limits).replicas if beside else 0
    pods = sum(row.real for row in beside)
    at, replicas = capacity(headroom(8, pods)), []
    for second in range(0, 1801, 15):
        made = order(queue, *beside, at=at, limits=limits, now=NOW + second)
        at = capacity(headroom(made.replicas, made.reckoned, made.needed_at))
        replicas.append(made.replicas)
    within = int(boot // 15)
    assert replicas[0] == 8
    assert set(replicas[within:]) == {needed}
    assert replicas == sorted(replicas, reverse=True)


def test_headroom_beside_an_ended_queue_is_kept_while_the_demand_of_an_hpa_is_unknown() -> None:
    queue = replace(demand(0, most=None), workload=WorkloadRef("ml", JOB_QUEUE, "q"))
    unknown = demand(None, bound=3, known=NOW - 60)
    made = order(queue, unknown, at=capacity(headroom(4, pods=3, needed=NOW - 1000)))
    assert (made.replicas, codes(made)) == (4, ["frozen"])


def test_once_a_bursts_pods_are_there_nothing_is_ordered_for_them_twice() -> None:
    (queue,) = queues(burst(50, 3, 47), {}, NOW)
    made = order(queue, at=capacity(headroom(8, pods=3)))
    assert made.replicas == 0
    assert "consumed" in codes(made)


def test_headroom_of_a_forecast_waits_for_the_pods_of_a_burst() -> None:
    """Headroom is kept between the creation of Jobs and of their pods."""
    (jobs,) = queues(burst(6, 0, 0), {}, NOW)
    made = order(jobs, at=capacity(headroom(4, pods=0)))
    assert made.replicas == 4
    (created,) = queues(burst(6, 0, 6), {}, NOW)
    assert order(created, at=capacity(headroom(4, pods=made.reckoned))).replicas == 0
