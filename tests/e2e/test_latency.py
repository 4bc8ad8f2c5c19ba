"""An HPA on a latency, with servers that really queue, on the real HPA controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.pipeline.cluster.optin import PREFIX
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object
from tests.e2e.process import wait_until
from tests.e2e.queueing import CAPACITY, QueueingWorkload
from tests.e2e.stage import Stage, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SPACE = "latency"
TTFT = "inference_time_to_first_token_seconds_p90"
RUNNING = "inference_requests_running"
TARGET = 0.5
"""Seconds."""
MOST = 4


@pytest.fixture
def llm(running_stage: Stage, tmp_path: Path) -> Iterator[QueueingWorkload]:
    """One replica, an HPA on its latency, and no client."""
    admin = running_stage.admin
    ensure_namespace(admin, SPACE)
    with QueueingWorkload(running_stage, SPACE, tmp_path) as found:
        made = deployment(SPACE, 1)
        template = made["spec"]["template"]
        words = {"scrape": "true", "port": str(found.port)}
        template["metadata"]["annotations"] = {
            f"{PREFIX}{key}": word for key, word in words.items()
        }
        template["spec"]["containers"][0].pop("resources")
        admin.create(made)
        admin.create(_autoscaler())
        yield found
        admin.delete(f"{HPAS.format(ns=SPACE)}/inference")
        admin.delete(f"{DEPLOYMENTS.format(ns=SPACE)}/inference")


def _autoscaler() -> Object:
    """An HPA on the latency, with the running requests beside it, as docs/inference.md has it."""
    rows = [
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": name},
                "target": {"type": "AverageValue", "averageValue": goal},
            },
        }
        for name, goal in ((TTFT, f"{TARGET * 1000:.0f}m"), (RUNNING, "100"))
    ]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "inference", "namespace": SPACE},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": 1,
            "maxReplicas": MOST,
            "metrics": rows,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3}},
        },
    }


def _message(stage: Stage) -> str:
    """What the controller says of its metrics."""
    rows = stage.hpa(SPACE).get("status", {}).get("conditions") or ()
    return " ".join(row["message"] for row in rows if row["type"] == "ScalingActive")


def _seconds(stage: Stage) -> list[float]:
    """The latency of each pod that has one."""
    found = stage.values(SPACE, TTFT).values()
    return [float(v[:-1]) / 1000 if v.endswith("m") else float(v) for v in found]


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

    # With enough replicas nobody waits, and a minute later the latency says so.
    wait_until(lambda: 0 < max(_seconds(stage), default=0.0) < TARGET / 5, "nobody waits", 240)
    assert max(llm.since(15.0)[:-5]) < TARGET

    # Without clients there is no latency, and while a metric has no value, no HPA scales in.
    size = stage.sizes[SPACE][-1]
    llm.rate = 0.0
    stage.wait_active(SPACE, "False", "FailedGetPodsMetric")
    assert _seconds(stage) == []
    assert stage.sizes[SPACE][-1] == size

    # With a few clients there is one again.
    llm.rate = CAPACITY / 6
    wait_until(lambda: stage.sizes[SPACE][-1] == 1, f"it scales in; {_message(stage)}", 240)
    assert llm.lost <= 0.05 * len(llm.first_bytes)
