"""A reflector with an API server that answers as a test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import msgspec

from apiservice.kube.clusterclient import ClusterAccess, ClusterClient
from apiservice.kube.reflector import EventType, Reflector, ReflectorOptions

PATH = "/api/v1/pods"


class Thing(msgspec.Struct, frozen=True):
    """An object of the watched collection."""

    name: str
    version: str


class Meta(msgspec.Struct):
    name: str
    resourceVersion: str  # noqa: N815 - as the API spells it


class Raw(msgspec.Struct):
    metadata: Meta
    spec: str = ""


def decode(raw: msgspec.Raw) -> Thing:
    meta = msgspec.json.decode(raw, type=Raw).metadata
    return Thing(meta.name, meta.resourceVersion)


def thing(name: str, version: str) -> dict[str, object]:
    return {"metadata": {"name": name, "resourceVersion": version}}


class Recorder:
    """A collection that queues its events."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()

    def replace(self, items: Sequence[Thing]) -> None:
        self.calls.put_nowait(("REPLACE", [item.name for item in items]))

    def apply(self, event: EventType, item: Thing) -> None:
        self.calls.put_nowait((str(event), [item.name]))

    def lose(self, namespace: str, name: str) -> None:
        self.calls.put_nowait(("LOSE", [name]))

    async def next(self) -> tuple[str, list[str]]:
        return await asyncio.wait_for(self.calls.get(), 10)


@dataclass
class Exchange:
    """One request, and the hands to answer it with."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    writer: asyncio.StreamWriter
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"

    def answer(self, body: bytes, status: str = "200 OK") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        self.done.set()

    def page(self, items: list[dict[str, object]], version: str, token: str = "") -> None:
        metadata = {"resourceVersion": version, "continue": token}
        self.answer(msgspec.json.encode({"metadata": metadata, "items": items}))

    def refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        self.answer(msgspec.json.encode(status), f"{code} {reason}")

    def start(self) -> None:
        self.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    def raw(self, data: bytes) -> None:
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def event(self, kind: str, item: dict[str, object]) -> None:
        self.raw(msgspec.json.encode({"type": kind, "object": item}) + b"\n")

    def finish(self) -> None:
        """End the watch in good order."""
        self.writer.write(b"0\r\n\r\n")
        self.done.set()

    def cut(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()
        self.done.set()


class Api:
    """Hands every request to the test, which answers it when it likes."""

    def __init__(self) -> None:
        self.exchanges: asyncio.Queue[Exchange] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def next(self) -> Exchange:
        return await asyncio.wait_for(self.exchanges.get(), 10)

    async def watch(self) -> Exchange:
        exchange = await self.next()
        assert exchange.is_watch, exchange.query
        exchange.start()
        return exchange

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                url = urlsplit(first.split(" ")[1])
                headers = dict(line.lower().split(": ", 1) for line in lines)
                query = {key: values[-1] for key, values in parse_qs(url.query).items()}
                exchange = Exchange(url.path, query, headers, writer)
                self.exchanges.put_nowait(exchange)
                await exchange.done.wait()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@dataclass
class Rig:
    """A reflector under test and both its ends."""

    api: Api
    client: ClusterClient
    recorder: Recorder
    options: ReflectorOptions
    reflector: Reflector[Thing]
    task: asyncio.Task[None]

    async def listed(self, items: list[dict[str, object]], version: str) -> None:
        """Answer the first list and see it arrive."""
        exchange = await self.api.next()
        exchange.page(items, version)
        assert (await self.recorder.next())[0] == "REPLACE"


@contextlib.asynccontextmanager
async def running(
    options: ReflectorOptions | None = None,
    *,
    field_selector: str = "",
    label_selector: str = "",
    once: bool = False,
) -> AsyncIterator[Rig]:
    api = Api()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = options or ReflectorOptions(backoff_min=0.001, backoff_max=0.002)
    recorder = Recorder()
    async with ClusterClient(ClusterAccess(host=f"http://127.0.0.1:{port}")) as client:
        reflector = Reflector(
            client,
            PATH,
            decode,
            recorder,
            field_selector=field_selector,
            label_selector=label_selector,
            options=options,
            clock=lambda: 1000.0,
        )
        task = asyncio.create_task(reflector.run(once=once))
        try:
            yield Rig(api, client, recorder, options, reflector, task)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            server.close()
            await api.close()
