"""A cheap load client, in a process of its own: a closed loop, or requests that are due at times.

Reads a :class:`~load.plan.Plan` from standard input, connects and warms up, writes ``ready``, waits
for a line, drives the load, writes an :class:`~load.plan.Outcome`. Between the two lines the driver
samples what every other process uses.

The answers are parsed as far as the count of bytes and the status need, so that on one
core the server is exhausted long before the client.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from array import array
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from apiservice.runtime.servertrust import client_context
from load.plan import Outcome, Plan

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_CHUNKED_END = b"\r\n0\r\n\r\n"
_CHECK_EVERY = 64
_connections = count()
"""Numbers connections, so that no two send the same Audit-ID."""


class LoadError(RuntimeError):
    """An answer was not the one expected, or the connection was lost."""


class Connection(asyncio.Protocol):
    """One keep-alive connection that has at most one request under way."""

    def __init__(self, plan: Plan, targets: list[str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in plan.headers)
        # kube-apiserver gives every request that it proxies an Audit-ID of its own.
        self._requests = [
            f"GET {target} HTTP/1.1\r\nHost: {plan.server_name}\r\n{lines}Audit-Id: ".encode()
            for target in targets
        ]
        self._audit = next(_connections) << 32
        self._plan = plan
        self.done = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._missing = -1
        self._count = 0
        self._sent = 0.0
        self._until = 0.0
        self._due = self._apart = 0.0
        self.latencies = array("L")
        self.body = 0
        self.error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to ask."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Losing it before the end is a failure."""
        if not self.done.is_set():
            self._fail(f"connection lost after {self._count} answers: {exc}")

    def close(self) -> None:
        """End the connection."""
        self.done.set()
        if self._transport is not None:
            self._transport.close()

    def start(self, begin: float, until: float, due: float = 0.0, apart: float = 0.0) -> None:
        """Ask until the time ``until`` of ``perf_counter``; ``done`` is set then.

        Args:
            due: seconds after ``begin`` at which the first request is due.
            apart: seconds from each request to the next; 0 asks as soon as there is an answer.
        """
        self._due, self._apart, self._until = begin + due, apart, until
        self.latencies = array("L")
        self.done.clear()
        self._next()

    def _next(self) -> None:
        """Ask now, or when the next request is due."""
        now, loop = time.perf_counter(), asyncio.get_running_loop()
        if not self._apart:
            self._ask(now)
        elif self._due >= self._until:  # the pause after the last request is a part of the rate
            loop.call_later(self._until - now, self.done.set)
        else:
            due, self._due = self._due, self._due + self._apart
            loop.call_later(due - now, self._ask, due)

    def _ask(self, due: float) -> None:
        """Send the next request; its latency counts from ``due``, late requests included."""
        transport = self._transport
        if transport is None:
            return
        self._sent = due
        self._audit += 1
        head = self._requests[self._count % len(self._requests)]
        transport.write(b"%b00000000-0000-4000-8000-%012x\r\n\r\n" % (head, self._audit))

    def data_received(self, data: bytes) -> None:
        """Collect until the answer is whole."""
        self._parts.append(data)
        if self._missing < 0:
            self._head()
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self._finish_answer()

    def _head(self) -> None:
        text = b"".join(self._parts)
        end = text.find(_HEAD_END)
        if end < 0:
            return
        if not text.startswith(b"HTTP/1.1 200"):
            self._fail(f"not 200: {text[:400]!r}")
            return
        head = text[:end].lower() + b"\r\n"
        position = head.find(_LENGTH)
        if position < 0:  # chunked, as Go answers what it has not counted
            self._parts = [text]
            if text.endswith(_CHUNKED_END):
                self.body = len(text) - end - 4
                self._missing = 0
            return
        self.body = int(head[position + len(_LENGTH) : head.find(b"\r\n", position)])
        self._missing = self.body - (len(text) - end - 4)

    def _finish_answer(self) -> None:
        now = time.perf_counter()
        self.latencies.append(int((now - self._sent) * 1e6))
        if self._count % _CHECK_EVERY == 0:
            items = self._items()
            if items != self._plan.expected:
                self._fail(f"{items} items in an answer instead of {self._plan.expected}")
                return
        self._count += 1
        self._parts.clear()
        self._missing = -1
        goes_on = self._count < len(self._requests) if self._plan.once else now < self._until
        if goes_on or self._apart:
            self._next()
        else:
            self.done.set()

    def _items(self) -> int:
        """How often the marker is in the answer just received."""
        head, _, body = b"".join(self._parts).partition(_HEAD_END)
        if _LENGTH not in head.lower():
            body = _join_chunks(body)
        return body.count(self._plan.marker.encode())

    def _fail(self, text: str) -> None:
        self.error = self.error or LoadError(text)
        self.done.set()
        if self._transport is not None:
            self._transport.abort()


def _join_chunks(chunked: bytes) -> bytes:
    """The body that ``chunked`` is the HTTP/1.1 chunked form of."""
    parts = []
    position = 0
    while (end := chunked.find(b"\r\n", position)) >= 0:
        size = int(chunked[position:end], 16)
        parts.append(chunked[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
    return b"".join(parts)


def _itself(connection: Connection) -> Connection:
    return connection


def _context(plan: Plan) -> ssl.SSLContext:
    context = client_context(plan.ca)
    context.load_cert_chain(plan.cert, plan.key)
    return context


class Load:
    """The connections of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        count = plan.connections
        targets = plan.targets or [plan.target] * count
        if plan.every and len(targets) % count:
            raise ValueError(f"{len(targets)} targets cannot be parted evenly among {count}")
        self._connections = [Connection(plan, targets[index::count]) for index in range(count)]
        self._spacing = plan.every / len(targets)

    async def connect(self) -> None:
        """Open every connection, each with its own handshake."""
        loop = asyncio.get_running_loop()
        context = _context(self._plan)
        for connection in self._connections:
            await loop.create_connection(
                partial(_itself, connection),
                self._plan.host,
                self._plan.port,
                ssl=context,
                server_hostname=self._plan.server_name,
            )

    async def drive(self, seconds: float) -> Outcome:
        """Ask on every connection for ``seconds``.

        Raises:
            LoadError: naming what came instead of the expected answer.
        """
        begin, cpu = time.perf_counter(), time.process_time()
        apart = self._spacing * len(self._connections)
        for index, connection in enumerate(self._connections):
            connection.start(begin, begin + seconds, index * self._spacing, apart)
        for connection in self._connections:
            await connection.done.wait()
            if connection.error:
                raise connection.error
        latencies: list[int] = []
        for connection in self._connections:
            latencies += connection.latencies
        return Outcome(
            elapsed=time.perf_counter() - begin,
            cpu=time.process_time() - cpu,
            body=self._connections[0].body,
            latencies=latencies,
        )

    def close(self) -> None:
        """End every connection."""
        for connection in self._connections:
            connection.close()


async def _main(plan: Plan) -> Outcome:
    load = Load(plan)
    await load.connect()
    if not plan.once:
        await load.drive(plan.warm_up)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    # Blocking is right: nothing else is to run until the word to go comes.
    sys.stdin.buffer.readline()
    return await load.drive(plan.seconds)


def main() -> None:
    """Serve one plan."""
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    for file in (plan.ca, plan.cert, plan.key):
        if not Path(file).is_file():
            raise SystemExit(f"{file} is not there")
    outcome = uvloop.run(_main(plan))
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")


if __name__ == "__main__":
    main()
