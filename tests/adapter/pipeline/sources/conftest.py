"""A web server with configurable answers, a sink that records, and a real Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from adapter.pipeline.exposition.samples import ScrapeResult
from apiservice.runtime.steps import Steps


@dataclass
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes


Reply = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def answer(
    body: bytes, status: str = "200 OK", *, headers: str = "", length: int | None = None
) -> Reply:
    """A whole answer; ``length`` may lie."""

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        size = len(body) if length is None else length
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n{headers}\r\n".encode())
        writer.write(body)
        await writer.drain()
        if length is not None:
            writer.close()

    return reply


def large(make: Callable[[], Reply]) -> Reply:
    """An answer that is made at the first request, not when the tests are collected."""
    made = functools.cache(make)

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        await made()(request, writer)

    return reply


async def hang(_: Request, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def drip(_: Request, writer: asyncio.StreamWriter) -> None:
    """Sends a byte from time to time, without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.005)


@dataclass
class Web:
    """A server on loopback: path -> reply."""

    port: int = 0
    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, path: str = "/metrics") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.suppress(
            asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError
        ):
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *rest = head.decode().strip().split("\r\n")
                headers = {k.lower(): v for k, v in (part.split(": ", 1) for part in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                request = Request(line, headers, body)
                self.requests.append(request)
                path = line.split(" ")[1].partition("?")[0]
                await self.replies.get(path, answer(b"", "404 Not Found"))(request, writer)
        # A client that keeps its connection never answers TLS' goodbye.
        writer.close() if reader.at_eof() else writer.transport.abort()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    """A server without any page yet."""
    made = Web()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
    await asyncio.sleep(0)  # the transports' turn to close


class Recorder:
    """A sink that keeps scrape results and wakes waiting tests."""

    def __init__(self) -> None:
        self.results: list[ScrapeResult] = []
        self.forgotten: list[str] = []
        self._changed = asyncio.Event()

    def ingest(self, result: ScrapeResult) -> None:
        self.results.append(result)
        self._changed.set()

    def steps(self, result: ScrapeResult) -> Steps[None]:
        yield
        self.ingest(result)

    def forget(self, origin: str) -> None:
        self.forgotten.append(origin)
        self._changed.set()

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until received results make ``done`` true."""
        async with asyncio.timeout(90):
            while not done():
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def sink() -> Recorder:
    return Recorder()


@contextlib.asynccontextmanager
async def running(run: Callable[[], Awaitable[None]]) -> AsyncIterator[asyncio.Task[None]]:
    """Runs a source within the block."""
    task = asyncio.ensure_future(run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def settled(done: Callable[[], bool]) -> None:
    """Poll for a state without a notification, with increasing pauses."""
    pause = 0.002
    async with asyncio.timeout(90):
        while not done():
            await asyncio.sleep(pause)
            pause = min(pause * 1.25, 0.05)
