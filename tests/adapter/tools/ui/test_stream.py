"""Server-sent events: whole parts, resumed and coalesced, bounded, and ended with the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from adapter.tools.ui.stream import MOST_STREAMS
from tests.adapter.tools.ui.page import Event, Served, eventually, serving


async def read(answer: httpx.Response, last: str) -> list[Event]:
    """The events up to one of a name."""
    stream_events: list[Event] = []
    rows: dict[str, str] = {}
    async with asyncio.timeout(60):
        async for line in answer.aiter_lines():
            key, _, value = line.partition(": ")
            if line:
                rows[key] = value
            elif "event" in rows:
                stream_events.append(Event(rows["event"], rows["id"], rows["data"]))
                rows = {}
                if stream_events[-1].name == last:
                    return stream_events
    raise AssertionError(f"the stream ended without {last}: {stream_events}")


async def events(page: Served, last: str, last_id: str = "") -> list[Event]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with (
        page.client() as client,
        client.stream("GET", "/api/events", headers=headers) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        return await read(answer, last)


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


async def test_a_client_that_comes_again_gets_what_changed_since(page: Served) -> None:
    page.parts.publish("a", b"1")
    page.parts.publish("b", b"2")
    page.parts.publish("end", b"0")
    first = await events(page, "end")
    assert [(event.name, event.data) for event in first] == [("a", "1"), ("b", "2"), ("end", "0")]
    page.parts.publish("a", b"3")
    page.parts.publish("end", b"4")
    again = await events(page, "end", first[-1].id)
    assert [(event.name, event.data) for event in again] == [("a", "3"), ("end", "4")]
    other = await events(page, "end", f"0000-{again[-1].id.partition('-')[2]}")
    assert [(event.name, event.data) for event in other] == [("b", "2"), ("a", "3"), ("end", "4")]


async def test_a_slow_client_skips_versions(page: Served) -> None:
    """The client reads nothing until the connection's buffers are full."""
    large = b'"%b"' % (b"x" * (4 << 20))
    page.parts.publish("large", large)
    async with page.client() as client, client.stream("GET", "/api/events") as answer:
        for count in range(200):
            page.parts.publish("count", b"%d" % count)
            await asyncio.sleep(0)
        page.parts.publish("end", b"0")
        got = await read(answer, "end")
    assert [(event.name, event.data) for event in got if event.name != "large"] == [
        ("count", "199"),
        ("end", "0"),
    ]


async def test_a_stream_without_news_says_that_it_lives() -> None:
    async with (
        serving(alive=0.05) as page,
        page.client() as client,
        client.stream("GET", "/api/events") as answer,
    ):
        lines = answer.aiter_lines()
        first_lines = [await anext(lines) for _ in range(6)]
    assert first_lines == ["retry: 2000", "", ": alive", "", ": alive", ""]


async def test_a_client_that_reads_nothing_is_left() -> None:
    async with serving(write_timeout=0.2) as page:
        page.parts.publish("large", b'"%b"' % (b"x" * (32 << 20)))
        reader, writer = await asyncio.open_connection("127.0.0.1", page.access.port, limit=1024)
        cookie = f"Cookie: {page.access.cookie}={page.access.token}"
        head = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{page.access.port}\r\n{cookie}\r\n\r\n"
        writer.write(head.encode())
        await reader.readline()
        await eventually(lambda: not page.streams.open)
        writer.transport.abort()


async def test_the_seventeenth_stream_gets_a_sentence(page: Served) -> None:
    page.parts.publish("end", b"0")
    reading = []
    async with AsyncExitStack() as stack:
        for _ in range(MOST_STREAMS):
            client = await stack.enter_async_context(page.client())
            answer = await stack.enter_async_context(client.stream("GET", "/api/events"))
            reading.append(answer.aiter_lines())
            await anext(reading[-1])
        async with page.client() as client:
            refused = await client.get("/api/events")
        assert refused.status_code == 503
        assert refused.text == "The page is open 16 times: close one of its tabs.\n"
    await eventually(lambda: not page.streams.open)
    await events(page, "end")


async def test_streams_end_with_the_process(page: Served) -> None:
    async with page.client() as client, client.stream("GET", "/api/events") as answer:
        page.parts.close()
        async with asyncio.timeout(60):
            assert [line async for line in answer.aiter_lines()] == ["retry: 2000", ""]
