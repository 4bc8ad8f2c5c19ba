"""A broken API server, or a proxy in front of one, costs its own collection alone."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from itertools import count

import msgspec
import pytest

from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.pages import EndlessListError, Pages
from apiservice.kube.reflector import ReflectorOptions
from tests.apiservice.kube.reflectorrig import Exchange, Rig, running, thing
from tests.apiservice.kubeapi import FakeApiServer

QUICK = ReflectorOptions(backoff_min=0.001, backoff_max=0.002)


async def pages_until_it_is_left(
    rig: Rig, answer: Callable[[Exchange], None], most: int = 100
) -> int:
    """Answer pages until the reflector starts the list again; returns how many it followed."""
    followed = 0
    while followed < most:
        exchange = await rig.api.next()
        if followed and "continue" not in exchange.query:
            return followed
        answer(exchange)
        followed += 1
    return followed


async def test_tokens_without_objects_are_not_followed(rig: Rig) -> None:
    tokens = count()
    followed = await pages_until_it_is_left(
        rig, lambda page: page.page([], "1", f"t{next(tokens)}")
    )
    assert followed == 1
    assert "the list does not end after 0 objects: a page is empty" in rig.reflector.last_error


async def test_new_tokens_with_the_same_objects_are_not_followed(rig: Rig) -> None:
    tokens = count()
    same = [thing("a", "1"), thing("b", "1")]
    followed = await pages_until_it_is_left(
        rig, lambda page: page.page(same, "1", f"t{next(tokens)}")
    )
    assert followed == 2
    assert "a page repeats an earlier one" in rig.reflector.last_error
    assert not rig.reflector.synced


async def test_pages_that_go_round_in_a_circle_are_not_followed(rig: Rig) -> None:
    numbers = count()

    def answer(page: Exchange) -> None:
        number = next(numbers)
        page.page([thing(f"p{number % 3}", "1")], "1", f"t{number}")

    assert await pages_until_it_is_left(rig, answer) == 4


@pytest.mark.parametrize("bound", ["_MOST_OBJECTS", "_MOST_PAGES"])
async def test_ever_new_objects_end_at_a_number(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(f"apiservice.kube.pages.{bound}", 7)
    numbers = count()

    def answer(page: Exchange) -> None:
        number = next(numbers)
        page.page([thing(f"p{number}", "1")], "1", f"t{number}")

    assert await pages_until_it_is_left(rig, answer) == 8
    assert "the list does not end after 8 objects" in rig.reflector.last_error
    assert rig.recorder.calls.empty(), "nothing of such a list is taken"


def test_a_list_with_an_end_is_read_to_it() -> None:
    pages = Pages()
    assert [pages.more(f"t{n}", [{"name": n}]) for n in range(100)] == [True] * 100
    assert not pages.more("", [])
    with pytest.raises(EndlessListError):
        Pages().more("t", [])


async def test_the_pause_grows_while_watches_end_after_their_first_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """339 in 8 seconds, before: each event counted as a recovery."""
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    options = ReflectorOptions(backoff_min=0.5, backoff_max=30)
    slept: list[float] = []
    async with running(QUICK) as rig:
        rig.reflector._options = options
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await real(0)

        monkeypatch.setattr("apiservice.kube.reflector.asyncio.sleep", sleep)
        await rig.listed([], "1")
        for number in range(8):
            watch = await rig.api.watch()
            watch.event("MODIFIED", thing("a", str(number + 2)))
            assert (await rig.recorder.next()) == ("MODIFIED", ["a"])
            watch.finish()
        await rig.api.next()
    assert [seconds for seconds in slept if seconds] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert "ends every watch at once" in rig.reflector.last_error


@pytest.mark.parametrize("line", [b"\n", b" \r\n", b"\n\n\n{", b"\t \n"])
async def test_a_watch_without_an_event_is_bounded(line: bytes) -> None:
    async with running(
        ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_event_bytes=10_000)
    ) as rig:
        await rig.listed([], "1")
        watch = await rig.api.watch()
        watch.event("ADDED", thing("a", "2"))
        assert await rig.recorder.next() == ("ADDED", ["a"])
        for _ in range(12):
            watch.raw(line * (1_000 // len(line)))
        assert not (await rig.api.next()).is_watch
        assert "watch" in rig.reflector.last_error


async def test_a_flood_of_blank_lines_leaves_turns_to_others() -> None:
    async with running(
        ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_event_bytes=1 << 40)
    ) as rig:
        await rig.listed([], "1")
        watch = await rig.api.watch()
        turns = 0
        flood = b"\n" * (1 << 18)
        for _ in range(8):
            watch.raw(flood)
        watch.event("ADDED", thing("a", "2"))
        arrived = asyncio.ensure_future(rig.recorder.next())
        while not arrived.done():
            turns += 1
            await asyncio.sleep(0)
        assert arrived.result() == ("ADDED", ["a"])
        assert turns > 20, "two million lines were read in one piece"


async def test_an_answer_is_bounded_after_decompression(
    client: ClusterClient, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the caller names no bound, such as ``maintain`` and ``nodepool``."""
    monkeypatch.setattr("apiservice.kube.client._MOST_ANSWER", 1 << 12)
    bomb = gzip.compress(b" " * (1 << 20))
    assert len(bomb) < 1 << 12
    api.answers, api.more = [(200, bomb)], [(b"content-encoding", b"gzip")]
    with pytest.raises(ClusterAnswerError, match="longer than 4096 bytes"):
        await call(client, "GET", "/api")


async def test_a_page_of_a_list_is_bounded_after_decompression() -> None:
    async with running(
        ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_page_bytes=1 << 16)
    ) as rig:
        page = await rig.api.next()
        bomb = gzip.compress(msgspec.json.encode({"items": [], "pad": " " * (1 << 22)}))
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
        page.writer.write(head.encode() + bomb)
        page.done.set()
        await rig.listed([thing("a", "2")], "2")
        assert "a page of the list is larger than 65536 bytes" in rig.reflector.last_error
