"""Servers that violate HTTP, or send more than requested."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.scrape.client import _DROPPED, _SHORT, PageClient, _address
from adapter.pipeline.sources.scrape.connection import _MAX_AHEAD, _PIECE, PageConnection
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    hang,
    running,
    settled,
)

PAGE = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="p",namespace="n"} 87\n'
OPTIONS = ScrapeOptions(interval=0.02, timeout=1.0, max_backoff=0.04)
LIMIT = 1 << 20


def raw(text: bytes, *, close: bool = False) -> Reply:
    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()
        if close:
            writer.close()

    return reply


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def for_ever(start: bytes, piece: bytes) -> Reply:
    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return reply


async def fetch(web: Web, path: str = "/metrics", limit: int = LIMIT) -> bytes:
    client = PageClient(idle=10)
    async with client.connected(), asyncio.timeout(30):
        return await client.fetch(ScrapeTarget(web.url(path)), limit)


@contextmanager
def memory_below(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


async def test_a_few_informational_responses_are_skipped(web: Web) -> None:
    web.replies["/metrics"] = raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 8 + whole(PAGE))
    assert await fetch(web) == PAGE


@pytest.mark.parametrize(
    ("start", "piece", "reason"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "protocol"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 1000, "protocol"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: value\r\n" * 1000, "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 10_000, "protocol"),
        (b"", b"noise" * 1000, "protocol"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 10_000, "too_large"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n" * 999,
            "too_large",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"Trailer: x\r\n" * 1000,
            "too_large",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_endless_response_is_abandoned_with_little_memory(
    web: Web, start: bytes, piece: bytes, reason: str
) -> None:
    web.replies["/metrics"] = for_ever(start, piece)
    with memory_below(16 << 20), pytest.raises(SourceError) as caught:
        await fetch(web)
    assert caught.value.reason == reason


async def test_a_page_that_ends_with_its_connection_is_read(web: Web) -> None:
    web.replies["/metrics"] = raw(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE, close=True)
    assert await fetch(web) == PAGE


async def test_a_page_in_chunks_is_read(web: Web) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, PAGE[i : i + 1]) for i in range(len(PAGE)))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    web.replies["/metrics"] = raw(head + chunks + b"0\r\n\r\n")
    assert await fetch(web) == PAGE


@pytest.mark.parametrize(
    "surplus",
    [whole(b"x" * 9), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"\r\n\r\nmore", b"\x00"],
)
@pytest.mark.parametrize("later", [False, True])
async def test_unsolicited_bytes_only_end_the_connection(
    web: Web, surplus: bytes, later: bool
) -> None:
    sent = asyncio.Event()

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(PAGE) + (b"" if later else surplus))
        await writer.drain()
        if later:
            await asyncio.sleep(0.05)
            writer.write(surplus)
        sent.set()

    web.replies["/metrics"] = reply
    client = PageClient(idle=10)
    async with client.connected(), asyncio.timeout(30):
        for _ in range(3):
            assert await client.fetch(ScrapeTarget(web.url()), LIMIT) == PAGE
            await sent.wait()
            sent.clear()
            await asyncio.sleep(0.05)
    assert web.connections == 3


@pytest.mark.parametrize("size", [_SHORT - 1, _SHORT, _SHORT + 1])
@pytest.mark.parametrize("pause", [False, True])
async def test_a_page_of_any_length_is_read(web: Web, size: int, pause: bool) -> None:
    """Also one that arrives in pieces."""
    page = PAGE * (size // len(PAGE)) + b"\n" * (size % len(PAGE))

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        text = whole(page)
        for first in range(0, len(text), len(text) // 3):
            writer.write(text[first : first + len(text) // 3])
            await writer.drain()
            await asyncio.sleep(0.01 if pause else 0)

    web.replies["/metrics"] = reply
    assert await fetch(web, limit=1 << 20) == page


async def test_a_short_page_that_ends_early_is_an_error(web: Web) -> None:
    web.replies["/metrics"] = raw(whole(PAGE)[:-1], close=True)
    with pytest.raises(SourceError) as caught:
        await fetch(web)
    assert caught.value.reason == "truncated"


async def test_a_short_page_in_thousands_of_pieces_is_read(web: Web) -> None:
    """The reader keeps up although each piece takes more memory than its content."""
    page = b"x" * 9_000

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        for byte in whole(page):
            writer.write(bytes((byte,)))
            await writer.drain()

    web.replies["/metrics"] = reply
    with memory_below(16 << 20):
        assert await fetch(web, limit=1 << 20) == page


async def test_a_connection_is_read_again_after_a_page_that_stopped_its_reading(web: Web) -> None:
    """The last piece of the page is the one at which reading pauses."""
    web.replies["/metrics"] = hang
    size = -(-_MAX_AHEAD // (_PIECE + 1))
    address = _address(web.url())
    transport, connection = await asyncio.get_running_loop().create_connection(
        PageConnection, address.host, address.port
    )
    asked = asyncio.create_task(connection.ask(b"GET /metrics HTTP/1.1\r\n\r\n", LIMIT))
    await asyncio.sleep(0)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    await asked
    for _ in range(size):
        connection.data_received(b"x")
    assert not transport.is_reading()
    assert await connection.whole() == b"x" * size
    assert transport.is_reading()
    assert connection.spent
    transport.abort()


async def test_idle_connections_are_closed_a_few_at_a_time(web: Web) -> None:
    targets = [ScrapeTarget(web.url(f"/{number}")) for number in range(8)]
    for number in range(8):
        web.replies[f"/{number}"] = answer(PAGE)
    client = PageClient(idle=0.1)
    async with client.connected(), asyncio.timeout(30):
        for target in targets:
            await client.fetch(target, LIMIT)
        before = len(client._kept)
        await asyncio.sleep(0.2)
        await client.fetch(targets[-1], LIMIT)
        assert len(client._kept) == before - _DROPPED
        client.drop(targets[-1].url)
        assert len(client._kept) == before - _DROPPED - 1


async def test_a_kept_connection_that_the_server_closed_is_replaced(web: Web) -> None:
    web.replies["/metrics"] = raw(whole(PAGE), close=True)
    client = PageClient(idle=10)
    async with client.connected(), asyncio.timeout(30):
        for _ in range(3):
            assert await client.fetch(ScrapeTarget(web.url()), LIMIT) == PAGE
            await asyncio.sleep(0.02)
    assert web.connections == 3


async def test_each_pod_page_uses_its_own_connection(web: Web) -> None:
    web.replies["/metrics"] = answer(PAGE)
    client = PageClient(idle=10)
    async with client.connected(), asyncio.timeout(30):
        for _ in range(3):
            target = ScrapeTarget(web.url(), pod=PodRef("n", "p"), serves=True)
            assert await client.fetch(target, LIMIT) == PAGE
    assert web.connections == 3
    assert {request.headers["connection"] for request in web.requests} == {"close"}


async def test_a_gzip_of_line_feeds_is_abandoned_and_counted(web: Web, sink: Recorder) -> None:
    bomb = gzip.compress(b"\n" * (15 << 20))
    assert len(bomb) < 20_000
    web.replies["/bomb"] = answer(bomb, headers="Content-Encoding: gzip\r\n")
    made = ScrapeSource(replace(OPTIONS, targets=(ScrapeTarget(web.url("/bomb")),)), sink)
    async with running(made.run):
        await settled(lambda: made.failures["too_costly"] > 0)
    assert sink.results == []
    (state,) = made.states.values()
    assert "more lines" in state.last_error


async def test_a_pod_page_has_a_smaller_limit_than_an_exporter_page(
    web: Web, sink: Recorder
) -> None:
    web.replies["/metrics"] = answer(PAGE + b"# x\n" * 1000)
    mine = ScrapeTarget(web.url(), pod=PodRef("n", "p"), serves=True)
    theirs = ScrapeTarget(web.url("/exporter"))
    web.replies["/exporter"] = web.replies["/metrics"]
    made = ScrapeSource(replace(OPTIONS, targets=(mine, theirs), server_max_bytes=1024), sink)
    async with running(made.run):
        await settled(lambda: made.failures["too_large"] > 0)
        await sink.until(lambda: len(sink.results) > 0)
    assert {result.origin for result in sink.results} == {theirs.url}


async def test_silent_pods_of_one_namespace_leave_places_for_others_and_for_exporters(
    web: Web, sink: Recorder
) -> None:
    web.replies["/metrics"] = answer(PAGE)
    web.replies["/mine"] = answer(PAGE)
    targets = [
        ScrapeTarget(web.url()),
        ScrapeTarget(web.url("/mine"), pod=PodRef("other", "p"), serves=True),
    ]
    for number in range(40):
        web.replies[f"/{number}"] = hang
        pod = PodRef("hostile", str(number))
        targets.append(ScrapeTarget(web.url(f"/{number}"), pod=pod, serves=True))
    options = replace(
        OPTIONS, timeout=60.0, interval=0.05, concurrency=16, targets=tuple(reversed(targets))
    )
    made = ScrapeSource(options, sink)
    async with running(made.run):
        for _ in range(3):
            sink.results.clear()
            await sink.until(lambda: len({result.origin for result in sink.results}) == 2)
        hostile = [request for request in web.requests if request.line.split()[1][1:].isdigit()]
        assert len(hostile) == 2
        now = max(state.due for state in made.states.values())
        assert made.count_overdue(now) == 0
        assert made.count_overdue(now + 1000) >= 40


async def test_answering_pods_do_not_settle_a_source_without_exporters(
    web: Web, sink: Recorder
) -> None:
    web.replies["/mine"] = answer(PAGE)
    targets = (
        ScrapeTarget(web.url()),
        ScrapeTarget(web.url("/mine"), pod=PodRef("n", "p"), serves=True),
    )
    made = ScrapeSource(replace(OPTIONS, targets=targets), sink)
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
        problem = made.problem(made.last_success)
    assert problem is not None
    assert "1 of 1 exporters fail" in problem


async def test_the_label_sets_of_all_pods_share_one_budget(web: Web, sink: Recorder) -> None:
    body = b"".join(b'vllm:num_requests_waiting{model_name="m%d"} 1\n' % i for i in range(500))
    targets = []
    for number in range(8):
        web.replies[f"/{number}"] = answer(body)
        pod = PodRef("n", str(number))
        targets.append(ScrapeTarget(web.url(f"/{number}"), pod=pod, serves=True))
    options = replace(OPTIONS, interval=0.2, targets=tuple(targets), server_label_bytes=1_500_000)
    made = ScrapeSource(options, sink)
    async with running(made.run):
        await sink.until(lambda: any(result.rejects.get("over_budget") for result in sink.results))
        assert 0 < made.label_bytes["pod"] <= 1_500_000
        assert made.label_bytes["exporter"] == 0
    assert made.label_bytes["pod"] == 0


async def test_a_silent_pod_does_not_keep_a_source_from_being_settled(
    web: Web, sink: Recorder
) -> None:
    web.replies["/metrics"] = answer(PAGE)
    targets = [ScrapeTarget(web.url())]
    for number in range(40):
        web.replies[f"/{number}"] = hang
        pod = PodRef("hostile", str(number))
        targets.append(ScrapeTarget(web.url(f"/{number}"), pod=pod, serves=True))
    now = 1000.0
    made = ScrapeSource(
        replace(OPTIONS, timeout=30.0, targets=tuple(targets)), sink, clock=lambda: now
    )
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
        assert not made.settled
        now += 61
        assert made.settled


async def test_large_pages_waiting_to_be_read_do_not_take_memory_from_each_other(
    web: Web, sink: Recorder
) -> None:
    lines = (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{n}",UUID="GPU-{"x" * 300}{n}"}} 1\n' for n in range(1000)
    )
    body = "".join(lines).encode()
    arrived = asyncio.Barrier(6)

    async def together(_: Request, writer: asyncio.StreamWriter) -> None:
        await arrived.wait()
        writer.write(whole(body))
        await writer.drain()

    paths = [f"/{number}" for number in range(6)]
    web.replies.update(dict.fromkeys(paths, together))
    targets = tuple(ScrapeTarget(web.url(path)) for path in paths)
    options = replace(OPTIONS, interval=60, timeout=20, targets=targets, label_bytes=33 << 20)
    source = ScrapeSource(options, sink)
    async with running(source.run):
        await settled(lambda: source.settled)
        assert [state.rejects for state in source.states.values()] == [{}] * 6
        assert source.failures == {}
