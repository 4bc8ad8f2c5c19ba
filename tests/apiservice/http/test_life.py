"""Binding, draining and stopping: what clients see when a replica goes away."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest

from apiservice.http.options import ServingOptions
from apiservice.http.server import ListenError, Server, bind
from tests.apiservice.rawhttp import GET, answer, connected, hello, serving
from tests.needs import DUAL_STACK, needs


class Gate:
    """An application that answers when a test says so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.set()
        await self.open.wait()
        await answer(send, b"late")


async def test_a_request_in_flight_finishes_while_the_server_drains() -> None:
    gate = Gate()
    async with serving(gate) as server, connected(server) as wire:
        await wire.send(GET)
        await gate.asked.wait()
        draining = asyncio.create_task(server.drain())
        await asyncio.sleep(0)
        gate.open.set()

        status, head, content = await wire.response()

        assert (status, content) == (200, b"late")
        assert b"connection: close" in head
        await draining


async def test_readiness_fails_first_while_requests_are_still_answered() -> None:
    """Endpoints and proxies take seconds to hear of it: until then nobody may be refused."""
    async with serving(drain_seconds=0.3) as server, connected(server) as old:
        await old.ask()
        draining = asyncio.create_task(server.drain())
        await asyncio.sleep(0)  # it has begun

        async with connected(server) as new:
            assert (await new.ask())[0] == 200
        status, head, _ = await old.ask()

        assert status == 200
        assert b"connection: close" in head
        await draining


async def test_after_draining_no_connection_is_accepted() -> None:
    async with serving() as server:
        port = server.port
        await server.drain()

        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_idle_connections_are_closed_at_once() -> None:
    async with serving() as server, connected(server) as wire:
        await wire.ask()
        await server.drain()

        assert await wire.ended() == b""
        assert server.connections == 0


async def test_a_request_that_never_ends_is_cut_after_the_shutdown_time() -> None:
    gate = Gate()
    async with serving(gate, shutdown_seconds=0.1) as server, connected(server) as wire:
        await wire.send(GET)
        await gate.asked.wait()

        await server.drain()

        assert await wire.ended() == b""
        assert server.connections == 0


async def test_stopping_twice_does_no_harm() -> None:
    async with serving() as server:
        port = server.port
        await server.stop()
        await server.stop()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    async with serving() as server:
        second = Server(hello, ServingOptions(host="127.0.0.1", port=server.port), None)

        with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{server.port}: .*choose another"):
            await second.start()


@pytest.mark.parametrize("host", ["192.0.2.1", "not a host"])
def test_an_address_of_another_machine_is_an_error_that_names_it(host: str) -> None:
    with pytest.raises(ListenError, match=host):
        bind(ServingOptions(host=host, port=0))


@needs(DUAL_STACK)
@pytest.mark.parametrize("host", ["", "::"])
async def test_without_a_host_both_protocol_versions_are_served(host: str) -> None:
    server = Server(hello, ServingOptions(host=host, port=0, drain_seconds=0), None)
    await server.start()
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            for asked in ("127.0.0.1", "[::1]"):
                assert (await client.get(f"http://{asked}:{server.port}/")).text == "ok"
    finally:
        await server.stop()


async def test_a_connection_that_has_not_asked_yet_is_answered_when_the_server_stops() -> None:
    async with serving() as server, connected(server) as fresh, connected(server) as used:
        await used.ask()
        await fresh.send(GET[:5])
        stopping = asyncio.create_task(server.stop())
        assert await used.ended() == b""
        await fresh.send(GET[5:])
        status, head, _ = await fresh.response()
        assert status == 200
        assert b"connection: close" in head
        await stopping


async def test_a_connection_that_waits_to_be_accepted_is_answered_when_the_server_stops() -> None:
    async with serving() as server:
        # Nothing runs between the two lines: the kernel alone has accepted it.
        line = socket.create_connection(("127.0.0.1", server.port))
        stopping = asyncio.create_task(server.stop())
        reader, writer = await asyncio.open_connection(sock=line)
        writer.write(GET)
        assert b" 200 " in await reader.readuntil(b"\r\n")
        writer.close()
        await stopping


async def test_a_connection_that_asks_nothing_ends_soon_when_the_server_stops() -> None:
    async with serving(shutdown_seconds=60) as server, connected(server) as fresh:
        await asyncio.sleep(0)
        await server.stop()
        assert await fresh.ended() == b""
