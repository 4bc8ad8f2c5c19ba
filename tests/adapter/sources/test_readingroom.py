"""Bytes of pages under way are bounded, and everybody gets on."""

from __future__ import annotations

import asyncio

from adapter.pagelimits import EXPORTER, PageLimits
from adapter.sources.readingroom import ReadingRoom


def room(places: int = 100, page_bytes: int = 100, label_bytes: int = 100) -> ReadingRoom:
    limits = PageLimits(held=60)
    return ReadingRoom(
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
    assert peak <= 150  # the bound, and the one page that may go beyond it


async def test_a_reader_that_gives_up_gives_everything_back() -> None:
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


def test_labels_are_lent_up_to_what_is_left_of_all() -> None:
    made = room()
    first = made.lend_labels(0)
    assert first.held == 60
    assert first.rows == EXPORTER.rows
    made.return_labels(60, 50)
    assert made.lend_labels(0).held == 50
    made.return_labels(50)
    assert made.lend_labels(50).held == 60  # what a target holds already is its own
    assert made.label_bytes == 60
    made.return_labels(60)
    assert made.label_bytes == 0
