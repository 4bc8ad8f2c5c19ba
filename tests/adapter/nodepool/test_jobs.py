"""Jobs of GPU pods as demand."""

from __future__ import annotations

import pytest
import yaml

from adapter.nodepool.demand import WorkloadRef
from adapter.nodepool.history import History, Point
from adapter.nodepool.jobs import Job, pods_left, queues
from adapter.nodepool.shape import key
from tests.adapter.nodepool.planning import GPU, NOW, capacity, codes, headroom, order, pod

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


def burst(jobs: int, bound: int, pending: int) -> list[Job]:
    """Jobs of one pod each, of which some have one already."""
    rows = [Job("ml", GPU, 1, 1, 0, {"gpu": 1})] * bound + [Job("ml", GPU, 1, 0, 1)] * pending
    return rows + [Job("ml", GPU, 1, 0, 0)] * (jobs - bound - pending)


def test_jobs_of_one_shape_and_namespace_are_one_queue() -> None:
    other = pod(gpus=2)
    rows = queues([*burst(50, 10, 30), Job("ml", other, 2, 0, 0), Job("b", GPU, 1, 0, 0)], {}, NOW)
    assert {(row.workload.namespace, row.workload.name): row.wanted for row in rows} == {
        ("b", key(GPU)): 1,
        ("ml", key(GPU)): 50,
        ("ml", key(other)): 2,
    }
    (whole,) = [row for row in rows if row.workload == WorkloadRef("ml", "Job", key(GPU))]
    assert (whole.bound, whole.pending, whole.max_replicas) == (10, 30, None)
    assert whole.pools == {"gpu": 10}


def test_a_queue_keeps_its_history() -> None:
    history = History((Point(NOW, 5),))
    (row,) = queues([Job("ml", GPU, 1, 0, 0)], {WorkloadRef("ml", "Job", key(GPU)): history}, NOW)
    assert row.history is history


def test_pods_that_a_burst_has_not_yet_created_are_headroom_up_to_the_cap() -> None:
    (queue,) = queues(burst(50, 0, 3), {}, NOW)
    made = order(queue)
    assert made.replicas == 8
    assert codes(made)[-1] == "max_pods"


def test_once_a_bursts_pods_are_there_nothing_is_ordered_for_them_twice() -> None:
    (queue,) = queues(burst(50, 3, 47), {}, NOW)
    made = order(queue, at=capacity(headroom(8, pods=3)))
    assert made.replicas == 0
    assert "consumed" in codes(made)
