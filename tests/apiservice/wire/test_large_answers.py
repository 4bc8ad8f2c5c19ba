"""Answers about many objects: prepared in slices, a few at once, and bounded in bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from apiservice.errors import ClientGone, Unavailable
from apiservice.runtime.shares import ASKER, Asker, Shares
from apiservice.runtime.steps import Steps, Unfinished, run_in_slices
from apiservice.wire import metricvalues
from apiservice.wire.answers import PreparedAnswers
from apiservice.wire.largeanswers import LargeAnswers
from apiservice.wire.metricroutes import Asked
from tests.apiservice.world import World, make_world

PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization"
PODS = 10_000


@pytest.fixture
async def crowd() -> AsyncIterator[World]:
    """A server that knows many pods."""
    async for world in make_world():
        world.custom.values_by_name = {f"pod-{number:05}": number for number in range(PODS)}
        world.custom.labels = {name: {} for name in world.custom.values_by_name}
        yield world


async def test_others_have_turns_while_a_large_answer_is_prepared_and_sent(crowd: World) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    answer = await crowd.get(PATH)
    beside.cancel()

    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content) > 1 << 20
    items = msgspec.json.decode(answer.content)["items"]
    assert [item["describedObject"]["name"] for item in items] == sorted(crowd.custom.labels)
    assert turns > len(answer.content) >> 18, "at least one turn for each piece"


async def test_a_large_answer_is_repeated_without_asking_again(crowd: World) -> None:
    first = await crowd.get(PATH)
    asked = len(crowd.custom.queries)
    assert (await crowd.get(PATH)).content == first.content
    assert len(crowd.custom.queries) == asked


async def test_an_answer_beyond_the_bound_is_refused_by_name(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metricvalues, "MAX_BYTES", 1 << 20)
    answer = await crowd.get(PATH)
    assert answer.status_code == 400
    assert "larger than 1 MiB: select fewer objects" in answer.json()["message"]


class Work:
    """Answers that never end, and who works on them."""

    def __init__(self) -> None:
        self.running = self.most = 0

    def source(self, _: float) -> Steps[tuple[float, bytes]]:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            while True:
                yield
        finally:
            self.running -= 1

    def asked(self, number: int) -> Asked:
        return Asked((str(number), b""), lambda: 1, self.source, PreparedAnswers())


class Client:
    """Waits until it leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work() -> None:
    work, large = Work(), LargeAnswers(Shares(2, per_namespace=2))
    clients = [Client() for _ in range(5)]
    tasks = [
        asyncio.create_task(
            large.answer(
                "/", partial(work.asked(at).fresh, lambda: 0.0), client.receive, client.send
            )
        )
        for at, client in enumerate(clients)
    ]
    await turns(20)
    assert (work.running, work.most) == (2, 2)
    for client in clients:
        client.left.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(error) for error in ended} == {ClientGone}
    assert work.running == 0
    assert work.most == 2
    assert not any(client.sent for client in clients)


async def test_a_client_that_does_not_read_holds_no_place_and_is_cut_off() -> None:
    body = b"x" * (1 << 20)
    large = LargeAnswers(Shares(1), patience=0.01)
    answers = PreparedAnswers()
    answers.put(("a", b""), 1, float("inf"), body)
    asked = Asked(("a", b""), lambda: 1, Work().source, answers)
    fresh = partial(asked.fresh, lambda: 0.0)
    slow, quick = Client(), Client()

    async def stuck(message: Any) -> None:
        slow.sent.append(message)
        await asyncio.Event().wait()

    await asyncio.gather(
        large.answer("/", fresh, slow.receive, stuck),
        large.answer("/", fresh, quick.receive, quick.send),
    )
    assert len(slow.sent) == 1
    pieces = [message["body"] for message in quick.sent[1:]]
    assert b"".join(pieces) == body
    assert len(pieces) == 4


async def test_slow_readers_of_one_namespace_displace_only_each_other() -> None:
    body = b"x" * (1 << 20)
    answers = PreparedAnswers()
    answers.put(("a", b""), 1, float("inf"), body)
    asked = Asked(("a", b""), lambda: 1, Work().source, answers)
    fresh = partial(asked.fresh, lambda: 0.0)
    large = LargeAnswers(Shares(4), most=4 * len(body))
    held: dict[str, list[asyncio.Task[None]]] = {"loud": [], "quiet": []}

    async def read_slowly(namespace: str) -> None:
        ASKER.set(Asker(namespace, "u"))

        async def send(_: Any) -> None:
            await asyncio.Event().wait()

        await large.answer("/", fresh, Client().receive, send)

    for namespace in ("quiet", *["loud"] * 6):
        held[namespace].append(asyncio.create_task(read_slowly(namespace)))
        await turns(20)
    assert [task.done() for task in held["quiet"]] == [False]
    assert [task.done() for task in held["loud"]] == [True] * 4 + [False] * 2
    assert large.given_up == 4
    quick = Client()
    await large.answer("/", fresh, quick.receive, quick.send)
    assert b"".join(message["body"] for message in quick.sent[1:]) == body
    for task in (*held["quiet"], *held["loud"]):
        task.cancel()


async def test_an_answer_that_gives_way_ends_also_while_its_client_reads() -> None:
    """The sender runs once more before its time-out, and must not win its deadline back."""
    body = b"x" * (8 << 20)
    answers = PreparedAnswers()
    answers.put(("a", b""), 1, float("inf"), body)
    asked = Asked(("a", b""), lambda: 1, Work().source, answers)
    fresh = partial(asked.fresh, lambda: 0.0)
    large = LargeAnswers(Shares(4), most=len(body))
    reads, quick = Client(), Client()

    async def send(message: Any) -> None:
        reads.sent.append(message)
        await asyncio.sleep(0)

    first = asyncio.create_task(large.answer("/", fresh, reads.receive, send))
    await turns(9)
    assert reads.sent
    second = asyncio.create_task(large.answer("/", fresh, quick.receive, quick.send))
    await asyncio.gather(first, second)
    assert large.given_up == 1
    assert len(reads.sent) < 1 + len(body) // (1 << 18)
    assert b"".join(message["body"] for message in quick.sent[1:]) == body


async def test_a_namespace_with_too_many_waiting_answers_gets_503() -> None:
    work, large = Work(), LargeAnswers(Shares(1, waiting=1))
    clients = [Client() for _ in range(3)]
    tasks = [
        asyncio.create_task(
            large.answer(
                "/", partial(work.asked(at).fresh, lambda: 0.0), client.receive, client.send
            )
        )
        for at, client in enumerate(clients)
    ]
    await turns(20)
    assert [task.done() for task in tasks] == [False, False, True]
    error = tasks[2].exception()
    assert isinstance(error, Unavailable)
    assert error.code == 503
    for client in clients:
        client.left.set()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_work_that_takes_too_many_slices_is_given_up() -> None:
    work = Work()
    with pytest.raises(Unfinished):
        await run_in_slices(work.source(0.0), seconds=0.0, slices=3)
    assert work.running == 0


def test_an_answer_of_older_data_replaces_none() -> None:
    answers = PreparedAnswers()
    newer = answers.put(("a", b""), 2, float("inf"), b"newer")
    assert answers.put(("a", b""), 1, float("inf"), b"older").body["body"] == b"older"
    assert answers.get(("a", b""), 2, 0.0) is newer
