"""A real server on a loopback port, and a client that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from apiservice.http.acceptor import Context
from apiservice.http.options import ServingOptions
from apiservice.http.peer import Peer
from apiservice.http.server import Server

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE = 60.0
"""Seconds after which a test that waits for an event fails."""


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answers every request with two bytes, and never reads a body."""
    await answer(send, b"ok")


async def answer(send: Any, body: bytes) -> None:
    length = str(len(body)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain"), (b"content-length", length)],
        }
    )
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(
    app: Any = hello,
    context: Context | None = None,
    proven: Callable[[Peer], bool] | None = None,
    **limits: Any,
) -> AsyncIterator[Server]:
    """A server with short times; it is stopped at the end unless the test did it."""
    settings = {"drain_seconds": 0.0, "shutdown_seconds": 2.0, "linger": 0.05} | limits
    options = ServingOptions(host="127.0.0.1", port=0, **settings)
    server = Server(app, options, context, proven=proven, sweep_seconds=0.02)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@dataclass
class Wire:
    """One client connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def response(self) -> tuple[int, bytes, bytes]:
        """Status, head in lower case and body of one answer with a Content-Length."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            return int(head.split()[1]), head, await self.reader.readexactly(length)

    async def ask(self, data: bytes = GET) -> tuple[int, bytes, bytes]:
        await self.send(data)
        return await self.response()

    async def ended(self) -> bytes:
        """Return all bytes until the server ends the connection, normally or not."""
        got = b""
        async with asyncio.timeout(PATIENCE):
            try:
                while chunk := await self.reader.read(1 << 16):
                    got += chunk
            except (ConnectionError, ssl.SSLError):
                pass
        return got

    async def close(self) -> None:
        self.writer.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass


class Listens(Protocol):
    """A server, or another object with its port."""

    @property
    def port(self) -> int: ...


@asynccontextmanager
async def connected(
    server: Listens, context: ssl.SSLContext | None = None, source: str = "127.0.0.1"
) -> AsyncIterator[Wire]:
    """A connection from ``source``, closed at the end in every case."""
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=context, server_hostname=name, local_addr=(source, 0)
    )
    wire = Wire(reader, writer)
    try:
        yield wire
    finally:
        await wire.close()
