"""The reflector against a server that plays the watch protocol on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from kubernetes.aio.client import ApiClient, Configuration

from apiservice.kube.reflector import EventType, Reflector, ReflectorOptions

PATH = "/api/v1/pods"


class Thing(msgspec.Struct, frozen=True):
    """An object of the watched collection."""

    name: str
    version: str


class _Meta(msgspec.Struct):
    name: str
    resourceVersion: str  # noqa: N815 - as the API spells it


class _Raw(msgspec.Struct):
    metadata: _Meta


def decode(raw: msgspec.Raw) -> Thing:
    meta = msgspec.json.decode(raw, type=_Raw).metadata
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
    client: ApiClient
    recorder: Recorder
    options: ReflectorOptions
    reflector: Reflector[Thing]
    task: asyncio.Task[None]

    async def listed(self, items: list[dict[str, object]], version: str) -> None:
        """Answer the first list and see it arrive."""
        exchange = await self.api.next()
        exchange.page(items, version)
        assert (await self.recorder.next())[0] == "REPLACE"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as made:
        yield made


@contextlib.asynccontextmanager
async def running(
    options: ReflectorOptions | None = None, *, field_selector: str = "", label_selector: str = ""
) -> AsyncIterator[Rig]:
    api = Api()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = options or ReflectorOptions(backoff_min=0.001, backoff_max=0.002)
    recorder = Recorder()
    async with ApiClient(Configuration(host=f"http://127.0.0.1:{port}")) as client:
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
        task = asyncio.create_task(reflector.run())
        try:
            yield Rig(api, client, recorder, options, reflector, task)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            server.close()
            await api.close()


async def test_pages_are_joined_into_one_replacement(rig: Rig) -> None:
    first = await rig.api.next()
    assert (first.path, first.query) == (PATH, {"limit": "500"})
    assert rig.reflector.age(1003.0) == float("inf")
    first.page([thing("a", "1")], "7", token="more")
    second = await rig.api.next()
    assert second.query == {"limit": "500", "continue": "more"}
    second.page([thing("b", "2")], "7")
    assert await rig.recorder.next() == ("REPLACE", ["a", "b"])
    watch = await rig.api.watch()
    assert watch.query["resourceVersion"] == "7"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert rig.reflector.synced
    assert rig.reflector.age(1003.0) == 3.0


async def test_selectors_go_with_the_list_and_with_the_watch() -> None:
    async with running(field_selector="metadata.name=x", label_selector="a in (b)") as rig:
        exchange = await rig.api.next()
        assert exchange.query["fieldSelector"] == "metadata.name=x"
        exchange.page([], "1")
        watch = await rig.api.next()
        assert watch.query["labelSelector"] == "a in (b)"


async def test_events_are_applied_in_order(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    for number, kind in enumerate(("ADDED", "MODIFIED", "DELETED")):
        watch.event(kind, thing("a", str(number)))
    assert [await rig.recorder.next() for _ in range(3)] == [
        ("ADDED", ["a"]),
        ("MODIFIED", ["a"]),
        ("DELETED", ["a"]),
    ]
    assert rig.reflector.events == 3


async def test_an_event_split_over_chunks_is_one_event(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    line = msgspec.json.encode({"type": "ADDED", "object": thing("a", "2")}) + b"\n"
    for byte in line:
        watch.raw(bytes([byte]))
    assert await rig.recorder.next() == ("ADDED", ["a"])


async def test_a_watch_ended_in_good_order_resumes_after_its_last_event(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "5"))
    watch.finish()
    assert (await rig.api.watch()).query["resourceVersion"] == "5"
    assert rig.reflector.lists == 1


async def test_a_bookmark_moves_the_point_of_resumption_only(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("BOOKMARK", {"metadata": {"resourceVersion": "90"}})
    watch.finish()
    assert (await rig.api.watch()).query["resourceVersion"] == "90"
    assert rig.recorder.calls.empty()


async def test_a_cut_connection_resumes_without_listing(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "5"))
    await rig.recorder.next()
    watch.cut()
    assert (await rig.api.watch()).query["resourceVersion"] == "5"


async def test_an_event_cut_in_half_is_not_applied(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    line = msgspec.json.encode({"type": "ADDED", "object": thing("a", "2")})
    watch.raw(line)  # no line feed: the object may go on
    watch.finish()
    again = await rig.api.watch()
    assert again.query["resourceVersion"] == "1"
    assert rig.recorder.calls.empty()


async def test_a_second_failure_in_a_row_lists_again_so_that_deletions_are_noticed(
    rig: Rig,
) -> None:
    await rig.listed([thing("a", "1"), thing("b", "1")], "1")
    (await rig.api.watch()).cut()
    (await rig.api.watch()).cut()
    again = await rig.api.next()
    assert not again.is_watch
    again.page([thing("b", "1")], "9")
    assert await rig.recorder.next() == ("REPLACE", ["b"])
    assert (await rig.api.watch()).query["resourceVersion"] == "9"


async def test_cuts_of_quiet_watches_that_stood_do_not_add_up_to_a_long_pause() -> None:
    # With 0.05 s doubling, ten failures in a row would pause for 25 s or more.
    async with running(ReflectorOptions(backoff_min=0.05, backoff_max=60)) as rig:
        await rig.listed([], "1")
        async with asyncio.timeout(60):
            cuts = 0
            while cuts < 10:
                exchange = await rig.api.exchanges.get()
                if exchange.is_watch:
                    exchange.start()
                    await asyncio.sleep(0.1)
                    exchange.cut()
                    cuts += 1
                else:
                    exchange.page([], "1")
            await rig.api.exchanges.get()
        assert rig.reflector._pauses <= 1


async def test_failures_without_a_watch_that_stood_double_the_pause() -> None:
    async with running(ReflectorOptions(backoff_min=0.05, backoff_max=60)) as rig:
        loop, asked = asyncio.get_running_loop(), []
        for _ in range(5):
            exchange = await rig.api.next()
            asked.append(loop.time())
            exchange.refuse(500, "InternalError", "no")
        assert asked[4] - asked[0] >= 0.5 * (0.05 + 0.1 + 0.2 + 0.4)


async def test_a_flood_of_events_leaves_turns_to_others(rig: Rig) -> None:
    def slow(raw: msgspec.Raw) -> Thing:
        time.sleep(0.001)
        return decode(raw)

    rig.reflector._decode = slow
    await rig.listed([], "1")
    watch = await rig.api.watch()
    lines = (
        msgspec.json.encode({"type": "ADDED", "object": thing(f"p{number}", str(number + 2))})
        for number in range(300)
    )
    watch.raw(b"\n".join(lines) + b"\n")
    turns = 0
    while rig.reflector.events < 300:
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20


@pytest.mark.parametrize("how", ["answer", "event"])
async def test_410_lists_again(rig: Rig, how: str) -> None:
    await rig.listed([], "1")
    watch = await rig.api.next()
    if how == "answer":
        watch.refuse(410, "Expired", "too old resource version: 1 (2)")
    else:
        watch.start()
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        watch.event("ERROR", status)
    again = await rig.api.next()
    assert not again.is_watch
    again.page([thing("z", "3")], "3")
    assert await rig.recorder.next() == ("REPLACE", ["z"])


async def test_410_in_the_middle_of_a_list_starts_the_list_over(rig: Rig) -> None:
    (await rig.api.next()).page([thing("a", "1")], "7", token="old")
    (await rig.api.next()).refuse(410, "Expired", "the provided continue parameter is too old")
    again = await rig.api.next()
    assert "continue" not in again.query
    again.page([thing("b", "2")], "8")
    assert await rig.recorder.next() == ("REPLACE", ["b"])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"<html>proxy error</html>\n", id="html"),
        pytest.param(b'{"type":"ADDED"}\n', id="no object"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":[]}}\n', id="metadata of another type"),
        pytest.param(b'{"type":"RENAMED","object":{"metadata":{}}}\n', id="unknown event"),
        pytest.param(b"\xff\xfe\n", id="bytes"),
    ],
)
async def test_garbage_in_a_watch_lists_again_because_events_may_be_lost(
    rig: Rig, line: bytes
) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.raw(line)
    again = await rig.api.next()
    assert not again.is_watch
    assert PATH in rig.reflector.last_error


async def test_an_error_event_lists_again_and_is_named(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ERROR", {"code": 500, "reason": "InternalError", "message": "etcd is unavailable"})
    assert not (await rig.api.next()).is_watch
    assert "etcd is unavailable" in rig.reflector.last_error


async def test_one_object_that_cannot_be_read_costs_that_object_alone(rig: Rig) -> None:
    bad: dict[str, object] = {"metadata": {"name": 7, "resourceVersion": "2"}}
    await rig.listed([thing("a", "1"), bad], "2")
    watch = await rig.api.watch()
    watch.event("ADDED", bad)
    watch.event("ADDED", thing("b", "3"))
    assert await rig.recorder.next() == ("ADDED", ["b"])
    assert rig.reflector.rejected == 2


async def test_a_missing_right_is_named_with_its_fix(rig: Rig) -> None:
    (await rig.api.next()).refuse(403, "Forbidden", 'pods is forbidden: User "u" cannot list')
    again = await rig.api.next()
    assert (rig.reflector.denied, rig.reflector.synced) == (True, False)
    assert 'User "u" cannot list' in rig.reflector.last_error
    assert "RBAC" in rig.reflector.last_error
    again.page([], "1")
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "2"))
    await rig.recorder.next()
    assert (rig.reflector.denied, rig.reflector.last_error) == (False, "")


async def test_html_in_place_of_a_list_is_survived(rig: Rig) -> None:
    (await rig.api.next()).answer(b"<html>login</html>")
    again = await rig.api.next()
    assert "not a response of a Kubernetes API server" in rig.reflector.last_error
    again.page([thing("a", "1")], "1")
    assert await rig.recorder.next() == ("REPLACE", ["a"])


async def test_a_silent_connection_is_given_up_and_resumed() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, watch_seconds=0.0, grace=0.5)
    async with running(options) as rig:
        await rig.listed([], "4")
        await rig.api.watch()
        assert (await rig.api.next()).query["resourceVersion"] == "4"
        assert "no answer in time" in rig.reflector.last_error


async def test_a_watch_that_the_server_does_not_end_is_given_up_although_bytes_come() -> None:
    options = ReflectorOptions(
        backoff_min=0.001, backoff_max=0.002, watch_seconds=0.1, grace=0.2, request_timeout=0.2
    )
    async with running(options) as rig:
        await rig.listed([], "4")
        watch = await rig.api.watch()
        while rig.api.exchanges.empty():
            watch.raw(b"\n")
            await asyncio.sleep(0.02)
        assert (await rig.api.next()).query["resourceVersion"] == "4"
        assert "did not end the watch" in rig.reflector.last_error


async def test_an_unsolicited_answer_does_not_hold_up_the_collection() -> None:
    options = ReflectorOptions(
        backoff_min=0.001, backoff_max=0.002, watch_seconds=0.1, grace=0.2, request_timeout=0.2
    )
    async with running(options) as rig:
        exchange = await rig.api.next()
        exchange.page([], "4")
        await exchange.writer.drain()
        exchange.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(3):
            exchange = await rig.api.next()
        exchange.writer.close()
        assert rig.recorder.calls.qsize() >= 1


async def test_a_page_that_does_not_end_is_given_up() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, request_timeout=0.2)
    async with running(options) as rig:
        exchange = await rig.api.next()
        exchange.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while rig.api.exchanges.empty():
            exchange.writer.write(b" ")
            await asyncio.sleep(0.02)
        assert "no answer in time" in rig.reflector.last_error


async def test_a_stream_without_line_ends_is_bounded() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_event_bytes=1000)
    async with running(options) as rig:
        await rig.listed([], "1")
        watch = await rig.api.watch()
        watch.raw(b"x" * 2000)
        assert not (await rig.api.next()).is_watch


async def test_a_page_of_a_list_is_bounded() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_page_bytes=1000)
    async with running(options) as rig:
        (await rig.api.next()).page([thing("x" * 2000, "1")], "1")
        await rig.listed([thing("a", "2")], "2")
        assert "a page of the list is larger than 1000 bytes" in rig.reflector.last_error


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered_in_vain(rig: Rig) -> None:
    await rig.listed([], "1")
    (await rig.api.watch()).finish()
    (await rig.api.watch()).finish()
    assert not (await rig.api.next()).is_watch
    assert "ends every watch" in rig.reflector.last_error


async def test_an_unreachable_server_is_tried_until_cancelled() -> None:
    recorder = Recorder()
    async with ApiClient(Configuration(host="http://127.0.0.1:1")) as client:
        options = ReflectorOptions(backoff_min=0.001, backoff_max=0.001)
        reflector = Reflector(client, PATH, decode, recorder, options=options)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(60):
            while not reflector.last_error:  # noqa: ASYNC110 - there is no event for a failure
                await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert PATH in reflector.last_error
    assert reflector.age(5.0) == float("inf")
