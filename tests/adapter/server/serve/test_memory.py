"""The ConfigMap of what was learned: read at the start, shared by replicas, written with more."""

from __future__ import annotations

import json
from typing import Any

from structlog.testing import capture_logs

from adapter.answers.promises.capacity import StepCounts
from adapter.answers.promises.memory import Lesson, Topic, dump_lessons, load_lessons
from adapter.answers.promises.ratios import PromisedRatios
from adapter.config.settings.memory import MemorySettings
from adapter.pipeline.catalog.promise import parse_promise
from adapter.pipeline.cluster.lookup import PODS
from adapter.pipeline.cluster.workload import Workload
from adapter.server.serve.memory import ClusterMemory, MemoryPart, cluster_memory
from apiservice.kube.client import ClusterAnswerError
from tests.adapter.world import World, make_pod

KEY = "promises"
NOW = 1_700_000_000.0
PROMISE = parse_promise({"ttft_p90": "1s"})


class ConfigMap:
    """An API server with one ConfigMap, which other programs change too."""

    def __init__(self) -> None:
        self.version = 1
        self.data: dict[str, str] | None = None
        self.failure: ClusterAnswerError | None = None
        self.overtaken = False
        self.asked: list[str] = []

    async def send(self, method: str, body: Any) -> bytes:
        self.asked.append(method)
        if self.failure is not None:
            raise self.failure
        if method == "PATCH":
            if self.overtaken or body["metadata"]["resourceVersion"] != str(self.version):
                raise ClusterAnswerError("PATCH /x: 409 changed", 409, "Conflict")
            self.version += 1
            self.data = (self.data or {}) | body["data"]
        labels = {"labels": {"helm": "yes"}, "name": "x", "resourceVersion": str(self.version)}
        return json.dumps({"kind": "ConfigMap", "metadata": labels, "data": self.data}).encode()


class Replica:
    """One process: what it has learned of pod ``ml/a``, and its memory."""

    def __init__(self, stored: ConfigMap) -> None:
        self.now = NOW
        self.world = World(make_pod("a", gpus={}))
        self.ratios = PromisedRatios(self.world.index)
        part = MemoryPart(KEY, self.ratios.merge)
        self.memory = ClusterMemory(stored.send, [part], 300.0, lambda: self.now)

    def ask(self) -> None:
        """Be asked as by an HPA, for a pod that has shown a page."""
        self.ratios._recall("ml", Workload(PODS, "a"), PROMISE, self.now)

    def learn(self, requests: float) -> None:
        """Have learned something."""
        self.ask()
        self.ratios.recall(lessons(requests), self.now)

    @property
    def evidence(self) -> float:
        """Requests behind what it knows."""
        return sum(lesson.evidence(self.now) for lesson in self.ratios.lessons(self.now).values())


def lessons(requests: float) -> dict[Topic, Lesson]:
    """What is known of pod ``ml/a``."""
    topic = Topic("ml", Workload(PODS, "a"), PROMISE, "")
    return {topic: Lesson(NOW, {9: StepCounts([requests], [0.0], [0.0])})}


async def test_a_restart_knows_what_the_process_before_knew() -> None:
    stored = ConfigMap()
    stored.data = {"other": "kept"}
    first = Replica(stored)
    first.learn(400)
    await first.memory.round()
    assert stored.data["other"] == "kept"
    second = Replica(stored)
    await second.memory.round()
    second.ask()
    assert second.evidence == 400


async def test_nothing_is_written_while_nobody_promises_anything() -> None:
    stored = ConfigMap()
    replica = Replica(stored)
    for _ in range(3):
        await replica.memory.round()
    assert stored.asked == ["GET"] * 3


async def test_a_replica_takes_what_another_one_knows_better_and_keeps_what_it_knows_better() -> (
    None
):
    stored = ConfigMap()
    one, other = Replica(stored), Replica(stored)
    one.learn(400)
    other.learn(900)
    await one.memory.round()
    await other.memory.round()
    await one.memory.round()
    assert (one.evidence, other.evidence) == (900, 900)
    assert load_lessons((stored.data or {})[KEY]) == (lessons(900), 0)


async def test_what_does_not_change_is_not_written_again() -> None:
    stored = ConfigMap()
    replica = Replica(stored)
    replica.learn(400)
    for _ in range(3):
        await replica.memory.round()
    assert stored.asked == ["GET", "PATCH", "GET", "GET"]


async def test_an_update_that_was_overtaken_is_made_in_the_next_round() -> None:
    stored = ConfigMap()
    replica = Replica(stored)
    replica.learn(400)
    stored.overtaken = True
    with capture_logs() as logs:
        await replica.memory.round()
    assert (stored.data, replica.memory.problem, logs) == (None, "", [])
    stored.overtaken = False
    await replica.memory.round()
    assert stored.data is not None


async def test_a_missing_right_is_said_once_and_the_end_of_it_too() -> None:
    stored = ConfigMap()
    replica = Replica(stored)
    replica.learn(400)
    stored.failure = ClusterAnswerError("GET /x: 403 not allowed", 403, "Forbidden")
    with capture_logs() as logs:
        await replica.memory.round()
        await replica.memory.round()
        stored.failure = None
        await replica.memory.round()
    assert [row["event"] for row in logs] == [
        "what was learned is not stored",
        "what was learned is stored",
    ]
    assert logs[0]["error"] == "GET /x: 403 not allowed"
    assert replica.memory.problem == ""


async def test_lines_that_cannot_be_read_are_counted_and_do_not_survive() -> None:
    stored = ConfigMap()
    stored.data = {KEY: "broken\n" + dump_lessons(lessons(300), NOW)[0]}
    replica = Replica(stored)
    replica.ask()
    with capture_logs() as logs:
        await replica.memory.round()
    assert logs[0]["lines"] == 1
    assert replica.evidence == 300
    assert load_lessons(stored.data[KEY]) == (lessons(300), 0)


async def test_a_configmap_without_data_or_a_foreign_answer_ends_nothing() -> None:
    stored = ConfigMap()
    replica = Replica(stored)
    await replica.memory.round()
    assert replica.memory.problem == ""

    async def html(method: str, body: Any) -> bytes:
        return b"<html>"

    replica.memory._send = html
    replica.ask()
    await replica.memory.round()
    assert "JSON" in replica.memory.problem


def test_without_a_name_or_a_cluster_there_is_no_memory() -> None:
    assert cluster_memory(MemorySettings(), object(), []) is None
    assert cluster_memory(MemorySettings(configmap="a/b"), None, []) is None


async def test_parts_are_kept_beside_each_other_and_only_what_changes_is_written() -> None:
    stored = ConfigMap()
    stored.data = {"one": "1", "two": "2"}
    sent: list[Any] = []

    async def send(method: str, body: Any) -> bytes:
        sent.append(body)
        return await stored.send(method, body)

    parts = [
        MemoryPart("one", lambda text, _: text),
        MemoryPart("two", lambda text, _: text + "+"),
    ]
    memory = ClusterMemory(send, parts, 300.0, lambda: NOW)
    await memory.round()
    assert stored.data == {"one": "1", "two": "2+"}
    assert sent[-1]["data"] == {"two": "2+"}
