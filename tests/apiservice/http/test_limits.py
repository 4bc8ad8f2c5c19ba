"""What a client may not do to the server, over real sockets on both event loops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiservice.loops import Run
from tests.apiservice.rawhttp import GET, answer, connected, hello, serving

Body = Callable[[], Awaitable[None]]


def test_a_connection_serves_many_requests(run: Run) -> None:
    async def body() -> None:
        async with serving() as server, connected(server) as wire:
            for _ in range(3):
                status, head, content = await wire.ask()
                assert (status, content) == (200, b"ok")
                assert b"date: " in head
                assert b"server:" not in head

    run(body)


def test_pipelined_requests_are_answered_in_order(run: Run) -> None:
    async def body() -> None:
        async with serving(_path, stranger_pipelined=32) as server, connected(server) as wire:
            await wire.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % n for n in range(9)))
            assert [(await wire.response())[2] for _ in range(9)] == [b"/%d" % n for n in range(9)]

    run(body)


HEAD = b"GET / HTTP/1.1\r\nHost: h\r\n"
REFUSED: dict[str, tuple[bytes, int, str]] = {
    "a target longer than the limit": (
        b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
        414,
        "RequestURITooLong",
    ),
    "a target that never ends": (b"GET /" + b"a" * 20_000, 414, "RequestURITooLong"),
    "a header longer than the limit": (
        HEAD + b"X: " + b"a" * 9000 + b"\r\n\r\n",
        431,
        "RequestHeaderFieldsTooLarge",
    ),
    "a header that never ends": (HEAD + b"X: " + b"a" * 20_000, 431, "RequestHeaderFieldsTooLarge"),
    "many small headers": (
        HEAD + b"A: b\r\n" * 2000 + b"\r\n",
        431,
        "RequestHeaderFieldsTooLarge",
    ),
    "too many header lines": (
        HEAD + b"A: b\r\n" * 101 + b"\r\n",
        431,
        "RequestHeaderFieldsTooLarge",
    ),
    "one large header line": (
        HEAD + b"X: " + b"a" * 5000 + b"\r\n\r\n",
        431,
        "RequestHeaderFieldsTooLarge",
    ),
    "no Host": (b"GET / HTTP/1.1\r\n\r\n", 400, "BadRequest"),
    "two Hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "BadRequest"),
    "two equal Hosts in HTTP/1.0": (
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        400,
        "BadRequest",
    ),
    "a chunked POST": (
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        405,
        "MethodNotAllowed",
    ),
    "a header name that never ends": (HEAD + b"x" * 20_000, 431, "RequestHeaderFieldsTooLarge"),
    "a large body announced": (
        HEAD + b"Content-Length: 1000000\r\n\r\n",
        413,
        "RequestEntityTooLarge",
    ),
    "both lengths (smuggling)": (
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "BadRequest",
    ),
    "both lengths, the other way round": (
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
        "BadRequest",
    ),
    "two different lengths": (
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        400,
        "BadRequest",
    ),
    "two equal lengths": (
        HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        400,
        "BadRequest",
    ),
    "a length with a sign": (HEAD + b"Content-Length: +5\r\n\r\nhello", 400, "BadRequest"),
    "an encoding that does not end in chunked": (
        HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        400,
        "BadRequest",
    ),
    "an unknown encoding": (
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        400,
        "BadRequest",
    ),
    "a group in a trailer": (
        HEAD + b"X-Remote-User: bob\r\nTransfer-Encoding: chunked\r\nTrailer: X-Remote-Group\r\n"
        b"\r\n0\r\nX-Remote-Group: system:masters\r\nX-A: b\r\n\r\n",
        400,
        "BadRequest",
    ),
    "a chunked body, in HTTP/1.0": (
        b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "BadRequest",
    ),
    "a tunnel": (b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BadRequest"),
    "a length of digits without end": (
        HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
        400,
        "BadRequest",
    ),
    "a list of lengths": (HEAD + b"Content-Length: 5, 5\r\n\r\nhello", 400, "BadRequest"),
    "a blank before the colon": (HEAD + b"X-Remote-User : root\r\n\r\n", 400, "BadRequest"),
    "a folded header": (HEAD + b"X-A: b\r\n X-Remote-User: root\r\n\r\n", 400, "BadRequest"),
    "a bare line feed in the head": (HEAD + b"X-A: b\nX-B: c\r\n\r\n", 400, "BadRequest"),
    "a null in a header": (HEAD + b"X-A: b\x00c\r\n\r\n", 400, "BadRequest"),
    "no HTTP": (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 400, "BadRequest"),
    "no version": (b"GET /\r\n\r\n", 400, "BadRequest"),
    "HTTP/2 in clear": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "BadRequest"),
    "a target that is not a path": (b"GET http:// HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BadRequest"),
    "bytes above ASCII in the target": (
        b"GET /\xc3\xbc HTTP/1.1\r\nHost: h\r\n\r\n",
        400,
        "BadRequest",
    ),
}


@pytest.mark.parametrize(("sent", "code", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_a_status_and_the_connection_ends(
    run: Run, sent: bytes, code: int, reason: str
) -> None:
    async def body() -> None:
        async with (
            serving(
                max_target=2048,
                max_headers=8192,
                max_header_lines=100,
                max_header_line=4096,
                max_body=1000,
            ) as server,
            connected(server) as wire,
        ):
            status, head, content = await wire.ask(sent)
            answered = json.loads(content)

            assert (status, answered["code"], answered["reason"]) == (code, code, reason)
            assert answered["kind"] == "Status"
            assert b"connection: close" in head
            assert await wire.ended() == b""
            assert sum(server.stats.refused.values()) == 1

    run(body)


def test_headers_up_to_the_limit_pass(run: Run) -> None:
    async def body() -> None:
        async with serving(max_headers=8192) as server, connected(server) as wire:
            assert (await wire.ask(HEAD + b"X: " + b"a" * 8000 + b"\r\n\r\n"))[0] == 200

    run(body)


def test_a_burst_of_pipelined_requests_is_not_mistaken_for_one_large_head(run: Run) -> None:
    async def body() -> None:
        async with (
            serving(max_headers=1024, max_pipelined=99, stranger_pipelined=99) as server,
            connected(server) as wire,
        ):
            burst = GET * 40
            await wire.send(burst + GET[:10])
            await wire.send(GET[10:])
            assert [(await wire.response())[0] for _ in range(41)] == [200] * 41

    run(body)


def test_a_small_body_is_thrown_away(run: Run) -> None:
    async def body() -> None:
        async with serving(_path) as server, connected(server) as wire:
            sent = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"
            assert (await wire.ask(sent + b"hello"))[2] == b"/x"
            assert (await wire.ask(sent))[2] == b"/x"
            assert (await wire.ask(b"hello" + GET))[2] == b"/"

    run(body)


def test_what_follows_a_head_is_never_taken_for_part_of_it(run: Run) -> None:
    """No application sees any bytes behind the head of a refused request."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["headers"])
        await hello(scope, receive, send)

    async def body() -> None:
        async with serving(app) as server, connected(server) as wire:
            await wire.send(
                HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Remote-User: root\r\n\r\n" + GET
            )
            assert (await wire.ended()).count(b"HTTP/1.1 ") == 1
            assert seen == []

    run(body)


def test_a_client_that_expects_100_is_given_its_answer_and_no_100(run: Run) -> None:
    async def body() -> None:
        async with serving(_path, header_timeout=0.1) as server, connected(server) as wire:
            await wire.send(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n")
            await wire.send(b"Expect: 100-continue\r\n\r\n")
            assert (await wire.response())[::2] == (200, b"/x")
            assert await wire.ended() == b""

    run(body)


def test_a_body_that_dribbles_in_is_cut_off(run: Run) -> None:
    async def body() -> None:
        async with serving(header_timeout=0.1) as server, connected(server) as wire:
            await wire.ask(HEAD + b"Content-Length: 500\r\n\r\na")
            assert await wire.ended() == b""
            assert server.stats.refused["slow-request"] == 1

    run(body)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD + b"X: y"])
def test_a_head_that_dribbles_in_is_cut_off(run: Run, sent: bytes) -> None:
    async def body() -> None:
        async with serving(header_timeout=0.1) as server, connected(server) as wire:
            await wire.send(sent)
            assert await wire.ended() == b""
            assert server.stats.refused["slow-request"] == 1

    run(body)


def test_a_dribble_does_not_extend_the_time_for_the_head(run: Run) -> None:
    async def body() -> None:
        async with serving(header_timeout=0.2) as server, connected(server) as wire:
            dribble = asyncio.create_task(_dribble(wire))
            assert await wire.ended() == b""
            dribble.cancel()
            await asyncio.gather(dribble, return_exceptions=True)
            assert server.stats.refused["slow-request"] == 1

    run(body)


def test_an_idle_connection_is_closed_in_good_order(run: Run) -> None:
    async def body() -> None:
        async with serving(keep_alive=0.1) as server, connected(server) as wire:
            await wire.ask()
            assert await wire.ended() == b""
            assert not server.stats.refused

    run(body)


def test_a_slow_reader_is_cut_off_while_others_are_served(run: Run) -> None:
    async def body() -> None:
        stalled, given_up = asyncio.Event(), asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] != "/large":
                await hello(scope, receive, send)
                return
            headers = [(b"content-length", b"%d" % LARGE)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            stalled.set()
            for _ in range(LARGE >> 20):
                part = {"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True}
                await send(part)
            given_up.set()

        async with (
            serving(app, write_timeout=0.2) as server,
            connected(server) as slow,
            connected(server) as other,
        ):
            slow.writer.transport.pause_reading()  # type: ignore[attr-defined]  # typed as a WriteTransport
            await slow.send(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            async with asyncio.timeout(60):
                await stalled.wait()
                assert (await other.ask())[0] == 200
                await given_up.wait()
            assert server.stats.refused["slow-reader"] == 1
            assert (await other.ask())[0] == 200
            slow.writer.transport.abort()

    run(body)


def test_a_patient_reader_gets_a_large_answer_whole(run: Run) -> None:
    async def body() -> None:
        async with serving(_large) as server, connected(server) as wire:
            _, _, content = await wire.ask(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            assert len(content) == LARGE

    run(body)


def test_a_client_that_does_not_let_its_connection_close_is_cut_off(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiservice.http.protocol._CLOSING_GRACE", 0.1)

    async def body() -> None:
        async with serving(_large) as server, connected(server) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # typed as a WriteTransport
            await wire.send(b"GET /large HTTP/1.0\r\nHost: h\r\n\r\n")
            async with asyncio.timeout(60):
                while not server.stats.refused:  # noqa: ASYNC110 - the server has no event for it
                    await asyncio.sleep(0.01)
            assert server.stats.refused == {"slow-goodbye": 1}
            wire.writer.transport.abort()

    run(body)


def test_too_many_pipelined_requests_end_the_connection(run: Run) -> None:
    async def body() -> None:
        async with serving(max_pipelined=3) as server, connected(server) as wire:
            await wire.send(GET * 50)
            await wire.ended()
            assert sum(server.stats.refused.values()) == 1

    run(body)


@pytest.mark.parametrize(
    "upgrade",
    [
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
    ],
)
def test_an_upgrade_is_answered_in_http_and_ends_the_connection(run: Run, upgrade: bytes) -> None:
    async def body() -> None:
        async with serving() as server, connected(server) as wire:
            assert (await wire.ask(upgrade))[0] == 200
            assert await wire.ended() == b""

    run(body)


def test_http_1_0_is_answered_and_closed(run: Run) -> None:
    async def body() -> None:
        async with serving() as server, connected(server) as wire:
            assert (await wire.ask(b"GET / HTTP/1.0\r\n\r\n"))[0] == 200
            assert await wire.ended() == b""

    run(body)


def test_a_failing_application_is_500_and_the_server_lives_on(run: Run) -> None:
    async def body() -> None:
        async with serving(_broken) as server:
            async with connected(server) as wire:
                assert (await wire.ask())[0] == 500
            async with connected(server) as wire:
                assert (await wire.ask())[0] == 500

    run(body)


LARGE = 64 << 20


async def _large(scope: Any, receive: Any, send: Any) -> None:
    await (answer(send, b"x" * LARGE) if scope["path"] == "/large" else hello(scope, receive, send))


async def _path(scope: Any, receive: Any, send: Any) -> None:
    await answer(send, scope["path"].encode())


async def _broken(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


async def _dribble(wire: Any) -> None:
    await wire.send(HEAD)
    while True:
        await wire.send(b"X: y\r\n")
        await asyncio.sleep(0.02)


def test_a_stranger_may_send_and_queue_less_than_a_front_proxy(run: Run) -> None:
    async def body() -> None:
        async with serving(stranger_header_lines=10) as server:
            async with connected(server) as wire:
                lines = b"".join(b"a%d: x\r\n" % n for n in range(9))
                assert (await wire.ask(b"GET / HTTP/1.1\r\nHost: h\r\n" + lines + b"\r\n"))[
                    0
                ] == 200
            async with connected(server) as wire:
                await wire.send(b"GET / HTTP/1.1\r\nHost: h\r\n" + lines + b"b: x\r\nc: x\r\nd:")
                assert (await wire.response())[0] == 431, "before the head is whole"
        async with serving(stranger_pipelined=2) as server, connected(server) as wire:
            await wire.send(GET * 4)
            assert await wire.ended() == b""
        assert server.stats.refused["BadRequest"] == 1

    run(body)
