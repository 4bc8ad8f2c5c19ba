"""The reflector against a server that plays the watch protocol on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec
import pytest

from tests.apiservice.kube.reflectorrig import PATH, Rig, Thing, decode, running, thing


async def test_pages_are_joined_into_one_replacement(rig: Rig) -> None:
    first = await rig.api.next()
    assert (first.path, first.query) == (PATH, {"limit": "500"})
    assert rig.reflector.age(1003.0) == float("inf")
    first.page([thing("a", "1")], "7", token="more")
    second = await rig.api.next()
    assert second.query == {"limit": "500", "continue": "more"}
    second.page([thing("b", "2")], "7")
    assert await rig.recorder.next() == ("REPLACE", ["a", "b"])
    watch = await rig.api.watch()
    assert watch.query["resourceVersion"] == "7"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert rig.reflector.synced
    assert rig.reflector.age(1003.0) == 3.0


async def test_a_list_consists_of_the_objects_that_the_collection_has(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a list of a large collection would need the memory of a second one."""
    own, lists = Thing("a", "1"), asyncio.Queue[Sequence[Thing]]()
    known = {own: own}
    monkeypatch.setattr(rig.recorder, "intern", lambda item: known.get(item, item), raising=False)
    monkeypatch.setattr(rig.recorder, "replace", lists.put_nowait)
    (await rig.api.next()).page([thing("a", "1"), thing("b", "2")], "7")
    first, second = await asyncio.wait_for(lists.get(), 10)
    assert first is own
    assert second == Thing("b", "2")


async def test_selectors_go_with_the_list_and_with_the_watch() -> None:
    async with running(field_selector="metadata.name=x", label_selector="a in (b)") as rig:
        exchange = await rig.api.next()
        assert exchange.query["fieldSelector"] == "metadata.name=x"
        exchange.page([], "1")
        watch = await rig.api.next()
        assert watch.query["labelSelector"] == "a in (b)"


async def test_a_single_look_repeats_a_failed_list_and_never_watches() -> None:
    async with running(once=True) as rig:
        (await rig.api.next()).refuse(503, "ServiceUnavailable", "not yet")
        (await rig.api.next()).page([thing("a", "1")], "7")
        assert await rig.recorder.next() == ("REPLACE", ["a"])
        await rig.task
        assert (rig.reflector.synced, rig.reflector.last_error) == (True, "")


async def test_events_are_applied_in_order(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    for number, kind in enumerate(("ADDED", "MODIFIED", "DELETED")):
        watch.event(kind, thing("a", str(number)))
    assert [await rig.recorder.next() for _ in range(3)] == [
        ("ADDED", ["a"]),
        ("MODIFIED", ["a"]),
        ("DELETED", ["a"]),
    ]
    assert rig.reflector.events == 3


async def test_an_event_split_over_chunks_is_one_event(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    line = msgspec.json.encode({"type": "ADDED", "object": thing("a", "2")}) + b"\n"
    for byte in line:
        watch.raw(bytes([byte]))
    assert await rig.recorder.next() == ("ADDED", ["a"])


async def test_a_watch_ended_in_good_order_resumes_after_its_last_event(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "5"))
    watch.finish()
    assert (await rig.api.watch()).query["resourceVersion"] == "5"
    assert rig.reflector.lists == 1


async def test_a_bookmark_moves_the_point_of_resumption_only(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("BOOKMARK", {"metadata": {"resourceVersion": "90"}})
    watch.finish()
    assert (await rig.api.watch()).query["resourceVersion"] == "90"
    assert rig.recorder.calls.empty()


async def test_a_flood_of_events_leaves_turns_to_others(rig: Rig) -> None:
    def slow(raw: msgspec.Raw) -> Thing:
        time.sleep(0.001)
        return decode(raw)

    rig.reflector._decode = slow
    await rig.listed([], "1")
    watch = await rig.api.watch()
    lines = (
        msgspec.json.encode({"type": "ADDED", "object": thing(f"p{number}", str(number + 2))})
        for number in range(300)
    )
    watch.raw(b"\n".join(lines) + b"\n")
    turns = 0
    while rig.reflector.events < 300:
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20


@pytest.mark.parametrize("how", ["answer", "event"])
async def test_410_lists_again(rig: Rig, how: str) -> None:
    await rig.listed([], "1")
    watch = await rig.api.next()
    if how == "answer":
        watch.refuse(410, "Expired", "too old resource version: 1 (2)")
    else:
        watch.start()
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        watch.event("ERROR", status)
    again = await rig.api.next()
    assert not again.is_watch
    again.page([thing("z", "3")], "3")
    assert await rig.recorder.next() == ("REPLACE", ["z"])


async def test_410_in_the_middle_of_a_list_starts_the_list_over(rig: Rig) -> None:
    (await rig.api.next()).page([thing("a", "1")], "7", token="old")
    (await rig.api.next()).refuse(410, "Expired", "the provided continue parameter is too old")
    again = await rig.api.next()
    assert "continue" not in again.query
    again.page([thing("b", "2")], "8")
    assert await rig.recorder.next() == ("REPLACE", ["b"])
