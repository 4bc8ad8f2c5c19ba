"""What the client of outgoing requests sends, keeps, and says of a failure."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import client_context
from tests.apiservice.pki import Authority, server_context

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


class Server:
    """Reads one request after the other from each connection, and answers as a test says."""

    def __init__(self) -> None:
        self.url = ""
        self.heads: list[bytes] = []
        self.connections = 0
        self.closed = asyncio.Semaphore(0)
        self.answers: list[bytes] = []
        """The next answers, the first one first; the last one stays. Empty: close."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not answer:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.release()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    made.answers = [OK]
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield made


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    context = client_context()
    made = HttpClient(lambda: context, {"User-Agent": "test"}, connect=30.0)
    yield made
    await made.close()


async def get(client: HttpClient, url: str, **more: object) -> bytes:
    async with client.send("GET", url, **more) as response:  # type: ignore[arg-type]  # of a test
        return b"".join([part async for part in response.aiter_raw()])


async def test_url_and_headers_are_sent_as_they_are(client: HttpClient, server: Server) -> None:
    headers = [("X-Group", "a"), ("X-Group", "b")]
    assert await get(client, f"{server.url}/%2A/a%2Fb?x=%2C%7E%28", headers=headers) == b"ok"
    (head,) = server.heads
    assert head.startswith(b"GET /%2A/a%2Fb?x=%2C%7E%28 HTTP/1.1\r\n")
    lines = head.lower().split(b"\r\n")
    assert [line for line in lines if line.startswith(b"x-group")] == [b"x-group: a", b"x-group: b"]
    assert b"user-agent: test" in lines


async def test_a_header_may_have_letters_of_any_language(
    client: HttpClient, server: Server
) -> None:
    await get(client, server.url, headers={"X-Scope-OrgID": "größe"})
    assert "X-Scope-OrgID: größe".encode() in server.heads[0]


async def test_one_connection_serves_further_requests(client: HttpClient, server: Server) -> None:
    for _ in range(3):
        await get(client, server.url)
    assert server.connections == 1


async def test_a_cookie_is_not_sent_back(client: HttpClient, server: Server) -> None:
    server.answers = [OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: session=1; Path=/\r\n\r\n")]
    await get(client, server.url)
    await get(client, server.url)
    assert b"cookie" not in server.heads[1].lower()


async def test_a_redirect_is_an_answer(client: HttpClient, server: Server) -> None:
    moved = f"HTTP/1.1 302 Found\r\nLocation: {server.url}/other\r\nContent-Length: 0\r\n\r\n"
    server.answers = [moved.encode()]
    async with client.send("GET", server.url) as response:
        assert response.status_code == 302
    assert len(server.heads) == 1


async def test_a_proxy_of_the_environment_is_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    client = HttpClient(client_context, {})
    assert await get(client, server.url) == b"ok"
    await client.close()


async def test_a_get_is_repeated_if_the_kept_connection_was_closed(
    client: HttpClient, server: Server
) -> None:
    server.answers = [OK, b"", OK]
    await get(client, server.url)
    assert await get(client, server.url) == b"ok"
    assert server.connections == 2


async def test_a_body_that_is_not_read_ends_its_connection(
    client: HttpClient, server: Server
) -> None:
    server.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nbegin"]
    async with client.send("GET", server.url):
        pass
    await server.closed.acquire()


async def test_closing_closes_kept_connections(client: HttpClient, server: Server) -> None:
    await get(client, server.url)
    await client.close()
    await server.closed.acquire()


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsho", "truncated", "incomplete"),
        (b"SSH-2.0-OpenSSH_9\r\n", "protocol", "Bad"),
    ],
)
async def test_an_answer_that_is_not_one_is_a_failure_of_one_line(
    answer: bytes, kind: str, text: str, client: HttpClient, server: Server
) -> None:
    server.answers = [answer, b""]

    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as short:
        port = short.sockets[0].getsockname()[1]
        with pytest.raises(RequestError, match=text) as caught:
            await get(client, f"http://127.0.0.1:{port}/?token=secret")
    assert caught.value.kind == kind
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_closed_port_is_named(client: HttpClient) -> None:
    with pytest.raises(RequestError) as caught:
        await get(client, "http://127.0.0.1:1")
    assert (caught.value.kind, str(caught.value)) == (
        "connect",
        "cannot connect to 127.0.0.1:1: Connection refused",
    )


async def test_a_handshake_that_does_not_end_is_a_timeout() -> None:
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    client = HttpClient(client_context, {}, connect=0.1)
    async with silent:
        with pytest.raises(RequestError) as caught:
            await get(client, f"https://127.0.0.1:{silent.sockets[0].getsockname()[1]}")
        for writer in held:
            writer.close()
    assert caught.value.kind == "timeout"
    await client.close()


async def test_a_new_context_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    """A CA that rotates: a connection that the old one admitted is not used any more."""
    old, new = Authority("old", time.time()), Authority("new", time.time())
    server = Server()
    server.answers = [OK]
    listening = await asyncio.start_server(
        server.serve, "127.0.0.1", 0, ssl=server_context(old.server("a.svc"), tmp_path)
    )
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    contexts: list[ssl.SSLContext] = [client_context(ca_data=old.pem.decode())]
    client = HttpClient(lambda: contexts[-1], {})
    async with listening:
        assert await get(client, url, server_name="a.svc") == b"ok"
        contexts.append(client_context(ca_data=new.pem.decode()))
        with pytest.raises(RequestError, match="certificate verify failed") as caught:
            await get(client, url, server_name="a.svc")
        await client.close()
    assert caught.value.kind == "tls"
