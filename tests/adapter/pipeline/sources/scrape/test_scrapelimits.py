"""Bytes of pages in progress are bounded, and all targets make progress."""

from __future__ import annotations

import asyncio

from adapter.pipeline.exposition.limits import PageLimits
from adapter.pipeline.sources.scrape.scrapelimits import LabelMemory, ScrapeLimits


def room(places: int = 100, page_bytes: int = 100, label_bytes: int = 100) -> ScrapeLimits:
    limits = PageLimits(held=60)
    return ScrapeLimits(
        places,
        None,
        page_bytes=page_bytes,
        label_bytes=label_bytes,
        limits=limits,
        max_bytes=50,
    )


async def test_beyond_the_bytes_pages_are_read_one_after_another() -> None:
    made = room()
    held, peak, done = 0, 0, 0

    async def read() -> None:
        nonlocal held, peak, done
        async with made.place("") as hold:
            mine = 0
            for _ in range(5):
                await hold.take(10)
                mine += 10
                held += 10
                peak = max(peak, held)
                await asyncio.sleep(0)
            held -= mine
        done += 1

    async with asyncio.timeout(30):
        await asyncio.gather(*(read() for _ in range(50)))
    assert done == 50
    assert peak <= 150  # the limit, and the one page that may exceed it


async def test_a_cancelled_reader_releases_everything() -> None:
    made = room()
    full = asyncio.Event()

    async def read() -> None:
        async with made.place("") as hold:
            await hold.take(100)
            await hold.take(100)
            full.set()
            await asyncio.Event().wait()

    async def wait() -> None:
        async with made.place("") as hold:
            await hold.take(50)

    async with asyncio.timeout(30):
        first = asyncio.create_task(read())
        await full.wait()
        second = asyncio.create_task(wait())
        await asyncio.sleep(0)
        third = asyncio.create_task(wait())
        await asyncio.sleep(0)
        second.cancel()
        first.cancel()
        await third
        await asyncio.gather(first, second, return_exceptions=True)
        async with made.place("") as hold:
            await hold.take(100)
    assert made.labels.used == 0
    assert third.exception() is None


def test_labels_are_reserved_up_to_the_free_memory() -> None:
    made = room().labels
    assert made.reserve("a", 0) == 60
    made.release("a", 60, 50)
    assert made.reserve("a", 0) == 50
    made.release("a", 50)
    assert made.reserve("a", 50) == 60  # a target keeps the bytes that it already holds
    assert made.used == 60
    made.release("a", 60)
    assert made.used == 0


def test_pages_of_one_namespace_leave_memory_for_those_of_another() -> None:
    made = LabelMemory(3200, 100)
    held = {("a", number): 0 for number in range(100)}

    def scrape(namespace: str, number: int, needed: int) -> int:
        key = namespace, number
        reserved = made.reserve(namespace, held.get(key, 0))
        held[key] = min(reserved, needed)
        made.release(namespace, reserved, held[key])
        return held[key]

    def fill() -> None:
        for number in range(100):
            scrape("a", number, 100)

    fill()
    fill()
    assert made.used == 3100
    for turn in range(1, 5):
        for number in range(10 * turn):
            scrape("b", number, 10)
        fill()
    assert [scrape("b", number, 10) for number in range(40)] == [10] * 40
    assert made.used <= 3200
    assert made.used == sum(held.values())


def test_a_single_namespace_keeps_the_memory_of_its_pages() -> None:
    made = LabelMemory(3200, 100)
    reserved = [made.reserve("a", 0) for _ in range(40)]
    assert reserved[:31] == [100] * 31
    assert reserved[31:] == [0] * 9
    assert made.reserve("a", 100) == 100


async def test_one_large_and_one_small_page_are_parsed_at_the_same_time() -> None:
    made = room()
    large, small = made.limits.large, made.limits.large - 1
    parsing: list[int] = []
    most = 0

    async def parse(size: int) -> None:
        nonlocal most
        async with made.reading_lock(size):
            parsing.append(size)
            assert parsing.count(size) == 1
            most = max(most, len(parsing))
            await asyncio.sleep(0)
            parsing.remove(size)

    async with asyncio.timeout(30):
        await asyncio.gather(*(parse(size) for size in (large, small) * 20))
    assert most == 2
