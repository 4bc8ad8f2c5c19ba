"""A connection that was closed is freed at once, without the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from adapter.pipeline.sources.scrape.connection import PageConnection

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nx 1\n"


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
async def test_a_closed_connection_is_freed_at_once() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(ANSWER)
        writer.close()  # else a collection in a later test warns of it

    freed = asyncio.Event()

    async def scrape(address: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(PageConnection, *address)
        for _ in range(2):
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n", 1000)
            assert [piece async for piece in connection.body()] == [b"x 1\n"]
        connection.close()
        weakref.finalize(connection, freed.set)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        await scrape(server.sockets[0].getsockname())
        await asyncio.wait_for(freed.wait(), 10)
