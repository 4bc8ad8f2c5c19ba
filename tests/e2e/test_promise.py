"""An HPA on a latency promise, with servers that really queue, on the real HPA controller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.answers.promises.capacity import StepCounts
from adapter.answers.promises.memory import Lesson, Topic
from adapter.config.settings.memory import MemorySettings
from adapter.pipeline.catalog.promise import parse_promise
from adapter.pipeline.cluster.lookup import PODS
from adapter.pipeline.cluster.workload import Workload
from adapter.server.serve.memory import MemoryPart, cluster_memory
from apiservice.kube.connection import connect
from tests.adapter.world import World, make_pod
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import HPAS, Object
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

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE = "promise"
KEY = "promises"
RATIO = "inference_slo_ratio"
PROMISE = {"ttft_p90": "500ms"}
TARGET = 0.8
MOST = 4


@pytest.fixture
def llm(running_stage: Stage, tmp_path: Path) -> Iterator[QueueingWorkload]:
    """One replica, an HPA on its promise, and no client."""
    with scaled(running_stage, SPACE, _autoscaler(PROMISE), tmp_path) as workload:
        yield workload


def _autoscaler(promise: dict[str, str]) -> Object:
    """The HPA of docs/inference.md, with a short window for scale-in."""
    metric = {"name": RATIO, "selector": {"matchLabels": promise}}
    target = {"type": "AverageValue", "averageValue": f"{TARGET * 1000:.0f}m"}
    return autoscaler_of(
        SPACE, [{"type": "Pods", "pods": {"metric": metric, "target": target}}], MOST, held=30
    )


def _message(stage: Stage) -> str:
    return metrics_message(stage, SPACE)


def _values(stage: Stage) -> dict[str, float]:
    """The ratio of each pod that has one, as the HPA gets it."""
    selector = ",".join(f"{key}={value}" for key, value in PROMISE.items())
    return numbers(stage.values(SPACE, RATIO, selector))


def test_a_promise_is_learned_kept_and_remembered(
    running_stage: Stage, llm: QueueingWorkload
) -> None:
    stage = running_stage
    # Nothing is known: the HPA gets no value, and keeps the size. The event names the reason.
    stage.wait_active(SPACE, "False", "FailedGetPodsMetric")
    assert stage.sizes[SPACE] == [1]

    # Half of what the replica can do gives no reason for a second one.
    llm.rate = CAPACITY / 2
    wait_until(lambda: _values(stage), f"a capacity is known; {_message(stage)}", 240)
    stage.wait_active(SPACE, "True")

    # More than it can do: requests are late, the capacity is below that load, and replicas follow.
    llm.rate = 2.2 * CAPACITY
    wait_until(lambda: max(_values(stage).values(), default=0.0) > 1, "the promise breaks", 180)
    wait_until(lambda: stage.sizes[SPACE][-1] >= 3, f"replicas follow; {_message(stage)}", 240)

    # With enough replicas the promise is kept again, under the same load.
    def kept() -> bool:
        late = [seconds for seconds in llm.since(20.0) if seconds > 0.5]
        return len(late) <= 0.1 * len(llm.since(20.0))

    wait_until(kept, "nine of ten requests have their first token in time", 240)
    assert SLOTS * stage.sizes[SPACE][-1] > 2.2 * SLOTS

    # The load falls, and so does the size.
    llm.rate = CAPACITY / 4
    wait_until(lambda: stage.sizes[SPACE][-1] == 1, f"scales in; {_message(stage)}", 240)


async def test_what_was_learned_is_kept_in_the_charts_configmap_with_the_charts_rights(
    running_stage: Stage,
) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{SERVICE}-memory"
    before = running_stage.admin.get(path)
    settings = MemorySettings(configmap=f"{NAMESPACE}/{SERVICE}-memory")
    client = await connect(running_stage.kubeconfig())
    try:
        replicas = [World(make_pod("a", gpus={})) for _ in range(2)]
        memories = []
        for number, world in enumerate(replicas):
            ratios = world.custom._ratios
            part = MemoryPart(KEY, ratios.merge)
            memory = cluster_memory(settings, client, [part])
            assert memory is not None
            memories.append(memory)
            ratios._recall("ml", Workload(PODS, "a"), parse_promise(PROMISE), time.time())
            topic = Topic("ml", Workload(PODS, "a"), parse_promise(PROMISE), "")
            counts = StepCounts([100.0 * (number + 1)], [0.0], [0.0])
            ratios.recall({topic: Lesson(time.time(), {9: counts})}, time.time())
        for memory in (*memories, memories[0]):
            await memory.round()
            assert memory.problem == ""
        for world in replicas:
            (lesson,) = world.custom._ratios.lessons(time.time()).values()
            assert 199 < lesson.evidence(time.time()) <= 200
    finally:
        await client.close()
    stored = running_stage.admin.get(path)
    assert stored["metadata"]["labels"] == before["metadata"]["labels"]
    assert '"ttft_p90":"0.5s"' in stored["data"][KEY]


def test_a_promise_that_cannot_be_meant_is_named_in_the_event(
    running_stage: Stage, llm: QueueingWorkload
) -> None:
    stage = running_stage
    wrong = _autoscaler({"ttft_p90": "soon"})
    stage.admin.patch(f"{HPAS.format(ns=SPACE)}/inference", {"spec": wrong["spec"]})
    wait_until(
        lambda: "'soon' is not a duration: write such as ttft_p90: 1s" in _message(stage),
        "the condition says what to write",
    )
