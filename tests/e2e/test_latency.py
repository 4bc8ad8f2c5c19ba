"""An HPA on a latency, with servers that really queue, on the real HPA controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Object
from tests.e2e.process import wait_until
from tests.e2e.queueing import (
    CAPACITY,
    SLOTS,
    QueueingWorkload,
    autoscaler_of,
    metrics_message,
    numbers,
    scaled,
)
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

SPACE = "latency"
TTFT = "inference_time_to_first_token_seconds_p90"
RUNNING = "inference_requests_running"
TARGET = 0.5
"""Seconds."""
MOST = 4


@pytest.fixture
def llm(running_stage: Stage, tmp_path: Path) -> Iterator[QueueingWorkload]:
    """One replica, an HPA on its latency, and no client."""
    with scaled(running_stage, SPACE, _autoscaler(), tmp_path) as workload:
        yield workload


def _autoscaler() -> Object:
    """An HPA on the latency, with the running requests beside it, as docs/inference.md has it.

    No more requests run in a pod than their target, so only the latency adds replicas.
    """
    rows: list[Object] = [
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": name},
                "target": {"type": "AverageValue", "averageValue": goal},
            },
        }
        for name, goal in ((TTFT, f"{TARGET * 1000:.0f}m"), (RUNNING, f"{SLOTS}"))
    ]
    return autoscaler_of(SPACE, rows, MOST, held=3)


def _message(stage: Stage) -> str:
    return metrics_message(stage, SPACE)


def _reasons(stage: Stage) -> list[str]:
    """Why the controller has changed the size."""
    rows = stage.admin.get(f"/api/v1/namespaces/{SPACE}/events")["items"]
    return [row["message"] for row in rows if row["reason"] == "SuccessfulRescale"]


def _seconds(stage: Stage) -> list[float]:
    """The latency of each pod that has one."""
    return list(numbers(stage.values(SPACE, TTFT)).values())


def test_an_hpa_on_a_latency_adds_replicas_while_servers_queue(
    running_stage: Stage, llm: QueueingWorkload
) -> None:
    stage = running_stage
    # Without a request there is no latency, and the other metric cannot scale in for it.
    stage.wait_active(SPACE, "False", "FailedGetPodsMetric")
    assert _seconds(stage) == []

    # Half of what the replica can do: requests find a free slot.
    llm.rate = CAPACITY / 2
    wait_until(lambda: _seconds(stage), "the first replica has a latency")
    stage.wait_active(SPACE, "True")
    assert stage.sizes[SPACE] == [1]
    assert max(_seconds(stage)) < TARGET / 5

    # More than it can do: the queue grows, and its clients wait longer from second to second.
    llm.rate = 2.2 * CAPACITY
    wait_until(lambda: max(_seconds(stage), default=0.0) > TARGET, "requests wait", 180)
    waited = llm.since(60.0)
    wait_until(lambda: stage.sizes[SPACE][-1] >= 3, f"replicas follow; {_message(stage)}", 180)
    assert waited[int(0.97 * len(waited))] > TARGET, "the clients saw it too"
    wait_until(lambda: any(TTFT in text for text in _reasons(stage)), "the latency asked for them")

    # With enough replicas nobody waits, and a minute later the latency says so. It alone would now
    # scale in to one, under the same load: the running requests keep the replicas.
    wait_until(lambda: 0 < max(_seconds(stage), default=0.0) < TARGET / 5, "nobody waits", 240)
    assert max(llm.since(15.0)[:-5]) < TARGET
    assert stage.sizes[SPACE][-1] >= 3

    # A minute after the last request there is no latency.
    llm.rate = 0.0
    stage.wait_active(SPACE, "False", "FailedGetPodsMetric")
    assert _seconds(stage) == []
    assert llm.lost <= 0.05 * len(llm.first_bytes)
