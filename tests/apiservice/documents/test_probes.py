"""The listener for the kubelet's probes, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from prometheus_client import CollectorRegistry, Gauge
from structlog.testing import capture_logs

from apiservice.documents.health import Check, HealthRegistry
from apiservice.documents.probes import LIMITS, probe_server
from apiservice.http.server import ListenError, Server
from tests.apiservice.rawhttp import PATIENCE, connected

EACH = LIMITS.max_connections_per_address
MOST = LIMITS.max_connections - LIMITS.max_handshakes
READY = b"GET /readyz HTTP/1.1\r\nHost: h\r\nUser-Agent: kube-probe/1.33\r\n\r\n"


class Readiness:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.problem: str | None = None
        self.registry = registry

    @asynccontextmanager
    async def listening(self, **limits: Any) -> AsyncIterator[Server]:
        health = HealthRegistry(ready=[Check("pods", lambda: self.problem)])
        options = replace(LIMITS, host="127.0.0.1", port=0, **{"header_timeout": 60} | limits)
        server = probe_server(health, options, registry=self.registry, sweep_seconds=0.02)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_answers_as_the_api_does_and_closes(
    factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def answers() -> None:
        readiness = Readiness()
        async with readiness.listening() as listener:
            for problem, expected in ((None, 200), ("none yet", 500)):
                readiness.problem = problem
                async with connected(listener) as wire:
                    status, head, body = await wire.ask(READY)
                    assert status == expected
                    assert b"connection: close" in head
                    assert b"none yet" not in body, "reasons are withheld from everybody"
                    assert await wire.ended() == b""

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(answers())


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        (b"GET /healthz?verbose HTTP/1.0\r\n\r\n", 200),
        (b"GET /readyz/pods HTTP/1.1\r\nHost: h\r\n\r\n", 404),
        (b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", 404),
        (b"GET /apis HTTP/1.1\r\nHost: h\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1", 405),
        (b"\x16\x03\x01\r\n\r\n", 400),
    ],
)
async def test_nothing_else_is_answered(sent: bytes, code: int) -> None:
    async with Readiness().listening() as listener, connected(listener) as wire:
        assert (await wire.ask(sent))[0] == code
        assert await wire.ended() == b"", "one request on each connection"


async def test_head_has_no_body() -> None:
    async with Readiness().listening() as listener, connected(listener) as wire:
        await wire.send(b"HEAD /livez HTTP/1.0\r\n\r\n")
        head, _, body = (await wire.ended()).partition(b"\r\n\r\n")
        assert b"content-length: 2" in head
        assert body == b""


async def test_a_head_without_end_and_a_client_without_haste_are_cut_off() -> None:
    async with Readiness().listening(header_timeout=0.2) as listener:
        async with connected(listener) as wire:
            await wire.send(b"GET /" + b"a" * (LIMITS.max_headers + 1))
            assert (await wire.ended()).startswith(b"HTTP/1.1 414")
        async with connected(listener) as wire:
            assert await wire.ended() == b""


async def test_the_probe_of_another_address_is_answered_when_the_listener_is_full() -> None:
    async with Readiness().listening() as listener, AsyncExitStack() as stack:
        patient = await stack.enter_async_context(connected(listener))
        for n in range(MOST + EACH):
            source = f"127.0.1.{1 + n // EACH}"
            await stack.enter_async_context(connected(listener, source=source))
        for _ in range(EACH):
            await stack.enter_async_context(connected(listener, source="127.0.2.1"))
        async with connected(listener, source="127.0.3.1") as probe:
            assert (await probe.ask(READY))[0] == 200
        assert (await patient.ask(READY))[0] == 200, "one connection of an address is kept"
        assert listener.stats.refused["idle-connections"] > 0


async def test_silent_connections_of_the_kubelets_own_address_keep_no_probe_out() -> None:
    async with Readiness().listening() as listener, AsyncExitStack() as stack:
        logs = stack.enter_context(capture_logs())
        for n in range(500):
            line = stack.enter_context(socket.socket())
            line.setblocking(False)
            await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", listener.port))
            if n % 100 == 99:
                async with connected(listener) as probe:
                    assert (await probe.ask(READY))[0] == 200
        assert listener.connections <= EACH
        assert listener.stats.refused["idle-connections"] >= 500 - EACH
        (refusal,) = (row for row in logs if row["event"] == "connections refused")
        assert (refusal["listener"], refusal["limit"]) == ("probes", "idle-connections")


async def test_clients_that_never_take_their_answers_keep_no_probe_out() -> None:
    registry = CollectorRegistry()
    Gauge("large", "x" * (16 << 20), registry=registry)  # more than the sockets' buffers hold
    async with (
        Readiness(registry).listening(write_timeout=60) as listener,
        AsyncExitStack() as stack,
    ):
        for _ in range(EACH):
            line = stack.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(line, ("127.0.0.1", listener.port))
            await loop.sock_sendall(line, b"GET /metrics HTTP/1.0\r\n\r\n")
            assert await loop.sock_recv(line, 8) == b"HTTP/1.1"
        async with asyncio.timeout(PATIENCE), connected(listener) as probe:
            assert (await probe.ask(READY))[0] == 200
        assert listener.connections < EACH


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    async with Readiness().listening() as listener:
        options = replace(LIMITS, host="127.0.0.1", port=listener.port)
        second = probe_server(HealthRegistry(), options)
        with pytest.raises(ListenError, match=str(listener.port)):
            await second.start()
