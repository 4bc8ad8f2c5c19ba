"""The state of the page: revisions, and what a client that has seen some still needs."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapter.tools.ui.parts import PageParts


def after(parts: PageParts, revision: int) -> list[tuple[str, int]]:
    """What a client with a revision is sent, in order."""
    sent_parts = []
    while (part := parts.after(revision)) is not None:
        sent_parts.append((part.name, part.revision))
        revision = part.revision
    return sent_parts


def test_a_client_gets_each_part_once_in_its_newest_version() -> None:
    parts = PageParts()
    for content in (b'{"n":1}', b'{"n":2}'):
        parts.publish("a", content)
    parts.publish("b", b"{}")
    parts.publish("a", b'{"n":3}')
    assert after(parts, 0) == [("b", 3), ("a", 4)]
    assert after(parts, 3) == [("a", 4)]
    assert after(parts, 4) == []


def test_a_part_that_did_not_change_keeps_its_revision() -> None:
    parts = PageParts()
    first = parts.publish("gpus", b'{"rows":[]}', numbered=True)
    load = parts.publish("load", b'{"util":[]}', of=first)
    assert parts.publish("gpus", b'{"rows":[]}', numbered=True) == first
    assert parts.publish("load", b'{"util":[]}', of=first) == load
    assert json.loads(parts.get("gpus") or b"") == {"revision": first, "rows": []}
    assert json.loads(parts.get("load") or b"") == {"of": first, "util": []}


@pytest.mark.parametrize("odd", ["", "x", "-", "other-3", "{epoch}-", "{epoch}-x", "{epoch}--1"])
def test_an_unknown_last_event_is_as_none(odd: str) -> None:
    parts = PageParts()
    parts.publish("a", b"{}")
    assert parts.seen_revision(odd.format(epoch=parts.epoch)) == 0
    assert parts.seen_revision(f"{parts.epoch}-99") == 0
    assert parts.seen_revision(f"{parts.epoch}-{'9' * 5000}") == 0
    assert parts.seen_revision(f"{parts.epoch}-²") == 0
    assert parts.seen_revision(f"{parts.epoch}-1") == 1


async def test_a_change_wakes_everyone_who_waits() -> None:
    parts = PageParts()
    waiting = [asyncio.create_task(parts.wait_for_change()) for _ in range(3)]
    await asyncio.sleep(0)
    parts.publish("a", b"{}")
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)
    end = asyncio.create_task(parts.wait_for_change())
    await asyncio.sleep(0)
    parts.close()
    async with asyncio.timeout(10):
        await end
    assert parts.closed
