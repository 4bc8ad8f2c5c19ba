"""What goes over the wire for each way in which an application may answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiservice.http import exchange
from tests.apiservice.rawhttp import GET, connected, serving

OK = b"HTTP/1.1 200 OK\r\n"
Message = dict[str, Any]


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


LENGTH_2 = (b"content-length", b"2")

ANSWERS: dict[str, tuple[Sequence[Message], bytes, bytes]] = {
    "of a known length": (
        [start(200, (b"X-A", b"b"), LENGTH_2), part(b"ok")],
        GET,
        OK + b"x-a: b\r\ncontent-length: 2\r\n\r\nok",
    ),
    "in parts of a known length": (
        [start(200, LENGTH_2), part(b"o", more=True), part(b"k")],
        GET,
        OK + b"content-length: 2\r\n\r\nok",
    ),
    "of an unknown length": (
        [start(200), part(b"ok")],
        GET,
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    "without a body": ([start(304), part(b"")], GET, b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "to HEAD": (
        [start(200, LENGTH_2), part(b"ok")],
        GET.replace(b"GET", b"HEAD"),
        OK + b"content-length: 2\r\n\r\n",
    ),
    "that ends the connection": (
        [start(200, LENGTH_2, (b"connection", b"close")), part(b"ok")],
        GET,
        OK + b"content-length: 2\r\nconnection: close\r\n\r\nok",
    ),
    "where the client ends the connection": (
        [start(200, LENGTH_2), part(b"ok")],
        GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK + b"content-length: 2\r\nconnection: close\r\n\r\nok",
    ),
}


@pytest.mark.parametrize(("messages", "sent", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_an_answer(messages: Sequence[Message], sent: bytes, expected: bytes) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with serving(app) as server, connected(server) as wire:
        await wire.send(sent)
        got = await wire.reader.readexactly(len(expected) + len(DATE))

    head, _, body = got.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"date: ")]
    assert b"\r\n".join(lines) + b"\r\n\r\n" + body == expected


DATE = b"date: Sat, 21 Nov 2026 10:00:00 GMT\r\n"

FAILURES: dict[str, Sequence[Message]] = {
    "nothing": [],
    "a head alone": [start(200, LENGTH_2)],
    "a header that would break out of its line": [
        start(200, (b"x", b"a\r\nx-remote-user: root"), LENGTH_2),
        part(b"ok"),
    ],
    "a header name that would": [start(200, (b"x: y\r\nz", b"a"), LENGTH_2), part(b"ok")],
}


@pytest.mark.parametrize("messages", FAILURES.values(), ids=FAILURES.keys())
async def test_half_an_answer_is_500(messages: Sequence[Message]) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with serving(app) as server, connected(server) as wire:
        status, head, _ = await wire.ask()

    assert status == 500
    assert b"root" not in head


async def test_an_application_that_fails_after_the_head_is_500() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(start(200, LENGTH_2))
        raise ZeroDivisionError

    async with serving(app) as server, connected(server) as wire:
        assert (await wire.ask())[0] == 500


async def test_a_body_of_another_length_than_announced_ends_the_connection() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(start(200, LENGTH_2))
        await send(part(b"long"))

    async with serving(app) as server, connected(server) as wire:
        await wire.send(GET)
        assert b"long" not in await wire.ended()


async def test_the_target_is_decoded_once_and_kept_raw() -> None:
    seen: list[tuple[str, bytes, bytes]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["path"], scope["raw_path"], scope["query_string"]))
        await send(start(200, LENGTH_2))
        await send(part(b"ok"))

    async with serving(app) as server, connected(server) as wire:
        await wire.ask(b"GET /pods/%2A/%252F?labelSelector=a%3Db HTTP/1.1\r\nHost: h\r\n\r\n")
        await wire.ask(b"GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n")

    assert seen == [
        ("/pods/*/%2F", b"/pods/%2A/%252F", b"labelSelector=a%3Db"),
        ("/x", b"/x", b""),
    ]


def test_few_heads_are_kept() -> None:
    for length in range(1500):
        exchange._head(200, ((b"content-length", b"%d" % length),))
    assert exchange._head.cache_info().currsize == 1024
