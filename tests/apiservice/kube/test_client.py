"""Requests to the API server: every failure is an error with its status and cause."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.connection import connect
from tests.apiservice.kubeapi import NOWHERE, FakeApiServer, kubeconfig, write
from tests.apiservice.rawhttp import PATIENCE


async def test_an_answer_other_than_2xx_carries_status_and_message(
    client: ClusterClient, api: FakeApiServer
) -> None:
    api.answers = [(403, b'{"kind":"Status","message":"no rights"}'), (500, b"<html>")]

    with pytest.raises(ClusterAnswerError, match="403 no rights") as caught:
        await call(client, "GET", "/x")
    assert caught.value.status == 403
    with pytest.raises(ClusterAnswerError, match="500 <html>"):
        await call(client, "GET", "/x")


async def test_an_answer_is_bounded(client: ClusterClient, api: FakeApiServer) -> None:
    api.answers = [(200, b"x" * 1000), (200, b"x" * 1000)]
    assert len(await call(client, "GET", "/x", most=1000)) == 1000
    with pytest.raises(ClusterAnswerError, match="999 bytes"):
        await call(client, "GET", "/x", most=999)


async def test_no_server_at_the_address_is_status_0(tmp_path: Path) -> None:
    async with await connect(write(tmp_path, kubeconfig()), environ=NOWHERE) as client:
        with pytest.raises(ClusterAnswerError, match="GET /x") as caught:
            await call(client, "GET", "/x")

    assert caught.value.status == 0


async def test_a_connection_with_unsolicited_bytes_does_not_wait_forever(
    tmp_path: Path,
) -> None:
    first, sent, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answers_twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head % 2 + b"{}")
        await writer.drain()
        await first.wait()
        writer.write(head % 10)
        await writer.drain()
        sent.set()
        await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(answers_twice, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = write(tmp_path, kubeconfig(f"http://127.0.0.1:{port}", token="t"))
    async with await connect(config) as client:
        assert await call(client, "GET", "/version") == b"{}"
        first.set()
        await sent.wait()
        with pytest.raises(ClusterAnswerError):
            await call(client, "GET", "/version", timeout_seconds=0.5)
    server.close()
    async with asyncio.timeout(PATIENCE):
        await ended.wait()


async def test_a_request_that_is_given_up_while_its_answer_arrives_leaves_no_connection(
    tmp_path: Path,
) -> None:
    """As a list does when another list of the same look has failed."""
    arriving, ended = asyncio.Event(), asyncio.Event()

    async def stalls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
        await writer.drain()
        arriving.set()
        await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(stalls, "127.0.0.1")
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connecting = connect(write(tmp_path, kubeconfig(address)), environ=NOWHERE)
    async with server, asyncio.timeout(PATIENCE), await connecting as client:
        asking = asyncio.create_task(call(client, "GET", "/x", most=100))
        await arriving.wait()
        await asyncio.sleep(0.1)  # the head is read, and the body is waited for
        asking.cancel()
        await asyncio.wait([asking])
        await ended.wait()  # before the client is closed
