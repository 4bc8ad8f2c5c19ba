"""The listener for the kubelet's probes, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvloop

from apiservice.documents.health import Check, HealthRegistry
from apiservice.documents.probes import probe_listener
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.plainhttp import EACH, HEAD, MOST, PlainHttp
from apiservice.http.server import ListenError
from tests.apiservice.rawhttp import connected

READY = b"GET /readyz HTTP/1.1\r\nHost: h\r\nUser-Agent: kube-probe/1.33\r\n\r\n"


class Readiness:
    def __init__(self) -> None:
        self.problem: str | None = None
        self.stats = ServingStats()

    @asynccontextmanager
    async def listening(self, seconds: float = 60) -> AsyncIterator[PlainHttp]:
        health = HealthRegistry(ready=[Check("pods", lambda: self.problem)])
        options = ServingOptions(host="127.0.0.1")
        listener = probe_listener(options, 0, health, self.stats, seconds)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_answers_as_the_api_does_and_closes(
    factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_answers())


async def _answers() -> None:
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


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET /livez HTTP/1.1\r\n\r\n", 200),
        (b"GET /healthz?verbose HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET /apis HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 405),
        (b"\x16\x03\x01\r\n\r\n", 404),
    ],
)
async def test_nothing_else_is_answered(sent: bytes, code: int) -> None:
    async with Readiness().listening() as listener, connected(listener) as wire:
        assert (await wire.ask(sent))[0] == code


async def test_head_has_no_body() -> None:
    async with Readiness().listening() as listener, connected(listener) as wire:
        await wire.send(b"HEAD /livez HTTP/1.1\r\n\r\n")
        assert (await wire.ended()).endswith(b"content-length: 2\r\n\r\n")


async def test_a_head_without_end_and_a_client_without_haste_are_cut_off() -> None:
    async with Readiness().listening(seconds=0.2) as listener:
        async with connected(listener) as wire:
            await wire.send(b"GET /" + b"a" * HEAD)
            assert await wire.ended() == b""
        async with connected(listener) as wire:
            assert await wire.ended() == b""


async def test_whoever_fills_it_the_probe_of_another_address_is_answered() -> None:
    readiness = Readiness()
    async with readiness.listening() as listener, AsyncExitStack() as stack:
        patient = await stack.enter_async_context(connected(listener))
        for n in range(MOST + EACH):
            source = f"127.0.1.{1 + n // EACH}"
            await stack.enter_async_context(connected(listener, source=source))
        for _ in range(EACH):
            await stack.enter_async_context(connected(listener, source="127.0.2.1"))
        async with connected(listener, source="127.0.3.1") as probe:
            assert (await probe.ask(READY))[0] == 200
        assert (await patient.ask(READY))[0] == 200, "one connection of an address is kept"
        assert readiness.stats.refused["probes"] > 0


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    async with Readiness().listening() as listener:
        second = probe_listener(
            ServingOptions(host="127.0.0.1"), listener.port, HealthRegistry(), ServingStats()
        )
        with pytest.raises(ListenError, match=str(listener.port)):
            await second.start()
    await asyncio.sleep(0)
