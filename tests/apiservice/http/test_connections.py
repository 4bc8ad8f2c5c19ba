"""Who gets a connection when many want one, over real sockets on both event loops."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.http.handshakes import Handshakes
from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.server import Server
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.http.test_life import Gate
from tests.apiservice.loops import Run
from tests.apiservice.pki import Authority, client_context
from tests.apiservice.rawhttp import GET, PATIENCE, Wire, connected, hello, serving

NOW = time.time()
CA = Authority("serving-ca", NOW)
PROXY_CA = Authority("front-proxy-ca", NOW)
OTHERS = [f"127.0.0.{n}" for n in range(2, 12)]


@pytest.fixture
def tls(tmp_path: Path) -> ServingTLS:
    trust = ClientAuth()
    trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    files = CertificateFiles(*CA.server("localhost").write(tmp_path, "tls"))
    return ServingTLS(files, trust, NOW)


async def until(server: Server, condition: Callable[[Server], bool]) -> None:
    """Wait for what another connection brings about."""
    async with asyncio.timeout(PATIENCE):
        while not condition(server):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.005)


def test_at_the_cap_the_one_that_is_idle_for_longest_goes(run: Run) -> None:
    async def body() -> None:
        limits: Any = {"max_connections": 6, "reserved_connections": 1, "max_handshakes": 3}
        async with serving(**limits) as server, AsyncExitStack() as stack:
            first, second, third = [
                await stack.enter_async_context(connected(server, source=address))
                for address in OTHERS[:3]
            ][:3]
            # Two places: the third took the first one's.
            assert await first.ended() == b""
            for wire in (second, third, second):
                assert (await wire.ask())[0] == 200
            async with connected(server) as fourth:
                assert (await fourth.ask())[0] == 200
                assert await third.ended() == b""
                assert (await second.ask())[0] == 200
            assert server.stats.refused == {"idle-connections": 2}

    run(body)


def test_a_stranger_that_is_being_answered_is_not_closed_for_another(run: Run) -> None:
    async def body() -> None:
        gate = Gate()
        limits: Any = {"max_connections": 3, "reserved_connections": 0, "max_handshakes": 2}
        async with serving(gate, **limits) as server, connected(server) as busy:
            await busy.send(GET)
            await gate.asked.wait()
            async with connected(server, source=OTHERS[0]) as late:
                assert await late.ended() == b""
            assert server.stats.refused == {"connections": 1}
            gate.open.set()
            assert (await busy.response())[0] == 200

    run(body)


def test_one_address_closes_only_its_own_connections(run: Run) -> None:
    async def body() -> None:
        async with (
            serving(max_connections_per_address=3) as server,
            connected(server) as other,
            AsyncExitStack() as stack,
        ):
            assert (await other.ask())[0] == 200
            many = [
                await stack.enter_async_context(connected(server, source=OTHERS[0]))
                for _ in range(9)
            ]
            assert (await many[-1].ask())[0] == 200
            assert [await wire.ended() for wire in many[:6]] == [b""] * 6
            assert server.strangers == 4
            assert (await other.ask())[0] == 200

    run(body)


def test_front_proxies_keep_their_places_against_any_number_of_strangers(
    run: Run, tls: ServingTLS, tmp_path: Path
) -> None:
    async def body() -> None:
        limits = {"max_connections": 9, "reserved_connections": 3, "max_handshakes": 2}
        stranger = client_context(CA.pem)
        proxy = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        gate = Gate()
        async with (
            serving(gate, tls.listening_context, lambda _: True, **limits) as server,
            AsyncExitStack() as stack,
        ):

            async def busy(source: str) -> Wire:
                wire = await stack.enter_async_context(connected(server, stranger, source))
                await wire.send(GET)
                return wire

            kept = [await busy(address) for address in OTHERS[:4]]
            await until(server, lambda it: it.requests == 4)
            for address in OTHERS[4:]:
                await busy(address)
            await until(server, lambda it: it.stats.refused["connections"] == 6)
            proxies = [await stack.enter_async_context(connected(server, proxy)) for _ in range(3)]
            gate.open.set()
            for wire in proxies:
                assert (await wire.ask())[0] == 200
            for wire in kept:
                assert (await wire.response())[0] == 200
            # Now that strangers are idle, proxies may have their places, too.
            for _ in range(4):
                extra = await stack.enter_async_context(connected(server, proxy))
                assert (await extra.ask())[0] == 200
            assert server.strangers == 0

    run(body)


def test_handshakes_are_counted_and_bounded(run: Run, tls: ServingTLS) -> None:
    async def body() -> None:
        async with (
            serving(hello, tls.listening_context, max_handshakes=4) as server,
            AsyncExitStack() as stack,
        ):
            quiet = await stack.enter_async_context(connected(server, source=OTHERS[0]))
            many = [await stack.enter_async_context(connected(server)) for _ in range(12)]
            await until(server, lambda it: it.stats.refused["handshakes"] == 9)
            assert (server.connections, server.handshakes) == (4, 4)
            assert [await wire.ended() for wire in many[:9]] == [b""] * 9
            # An address with one handshake keeps it.
            assert not quiet.reader.at_eof()
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[0] == 200

    run(body)


def test_handshakes_that_come_at_once_leave_turns_to_others(run: Run, tls: ServingTLS) -> None:
    """Clients that were cut at once come back at once: 128 took 17 ms of CPU in one iteration."""

    async def body() -> None:
        most = progressed = 0
        begun: list[int] = []

        def context() -> ssl.SSLContext:
            begun.append(1)
            return tls.listening_context()

        async with serving(hello, context, handshakes_per_second=1000) as server:
            lines = []
            for _ in range(60):
                connection = socket.create_connection(("127.0.0.1", server.port))
                connection.sendall(_client_hello())
                lines.append(connection)
            quiet = socket.create_connection(("127.0.0.1", server.port))
            async with asyncio.timeout(PATIENCE):
                while len(begun) < 60:
                    await asyncio.sleep(0)
                    most = max(most, len(begun) - progressed)
                    progressed = len(begun)
            assert most <= 8, "a few in one iteration of the loop"
            assert server.handshakes >= 1, "the quiet client takes no turn"
            assert len(begun) == 60
            quiet.close()
            for line in lines:
                line.close()

    run(body)


def _client_hello() -> bytes:
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), out, server_hostname="localhost"
    )
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def test_one_address_may_not_shake_hands_as_often_as_it_likes(
    run: Run, tls: ServingTLS, tmp_path: Path
) -> None:
    async def body() -> None:
        context = client_context(CA.pem)
        proxy = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with (
            serving(
                hello, tls.listening_context, lambda _: True, handshakes_per_second=8
            ) as server,
            AsyncExitStack() as stack,
        ):
            async with connected(server, proxy, OTHERS[1]) as known:
                assert (await known.ask())[0] == 200
            for _ in range(30):
                await stack.enter_async_context(connected(server))
            await until(server, lambda it: it.stats.refused["handshake-rate"] > 0)
            # Others still may, and addresses of front proxies may at any rate that is needed.
            async with connected(server, context, OTHERS[0]) as other:
                assert (await other.ask())[0] == 200
            for _ in range(20):
                async with connected(server, proxy, OTHERS[1]) as known:
                    assert (await known.ask())[0] == 200

    run(body)


def test_without_files_one_is_turned_away_and_idle_ones_make_room(run: Run) -> None:
    async def body() -> None:
        usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with serving(max_connections_per_address=500) as server, AsyncExitStack() as stack:
            idle = await stack.enter_async_context(connected(server))
            assert (await idle.ask())[0] == 200
            lines = [socket.socket() for _ in range(3)]
            for line in lines:
                stack.callback(line.close)
                line.setblocking(False)
            used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())  # noqa: ASYNC240 - procfs
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1, most))
            fillers = []
            try:
                while True:
                    fillers.append(socket.socket())
            except OSError:
                pass
            try:
                for line in lines:
                    line.connect_ex(("127.0.0.1", server.port))
                await until(server, lambda it: it.stats.refused["idle-connections"] == 1)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
                for filler in fillers:
                    filler.close()
            assert server.stats.refused["files"] >= 1
            assert await idle.ended() == b""
            async with connected(server) as wire:
                assert (await wire.ask())[0] == 200

    run(body)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_recovers_with_time() -> None:
    clock, stats = Clock(), ServingStats()
    handshakes = Handshakes(ServingOptions(handshakes_per_second=40), stats, clock)
    assert sum(handshakes.admit("10.0.0.1") for _ in range(100)) == 20
    assert handshakes.admit("10.0.0.2")
    clock.now += 1
    assert sum(handshakes.admit("10.0.0.1") for _ in range(100)) == 10
    assert stats.refused["handshake-rate"] == 170


def test_many_addresses_together_have_a_rate_and_proxies_their_own() -> None:
    clock = Clock()
    handshakes = Handshakes(ServingOptions(handshakes_per_second=40), ServingStats(), clock)
    handshakes.note_proxy("10.1.0.1")
    admitted = sum(handshakes.admit(f"10.0.{n // 250}.{n % 250}") for n in range(10_000))
    assert admitted == 80
    assert handshakes.admit("10.1.0.1")


def test_a_few_addresses_that_use_up_the_rate_leave_one_for_an_address_that_is_new() -> None:
    """As the API server's is at a start of this process, or after its own restart."""
    clock, stats = Clock(), ServingStats()
    handshakes = Handshakes(ServingOptions(handshakes_per_second=40), stats, clock)
    attackers = [f"10.0.0.{n}" for n in range(40)]
    admitted = newcomers = 0
    for step in range(1000):
        clock.now += 0.02
        for address in attackers[: 1 + step // 3]:  # one after another, or they act in step
            admitted += sum(handshakes.admit(address) for _ in range(3))
        if step % 50 == 49:
            newcomers += handshakes.admit(f"10.1.0.{step // 50}")
    assert newcomers == 20
    assert admitted <= 40 * 20 + 80, "the rate of all addresses holds"


def test_the_address_that_is_silent_for_longest_is_forgotten() -> None:
    clock = Clock()
    handshakes = Handshakes(ServingOptions(handshakes_per_second=8000), ServingStats(), clock)
    assert sum(handshakes.admit("10.0.0.1") for _ in range(5000)) == 4000
    for number in range(4096):
        assert handshakes.admit(f"10.1.{number >> 8}.{number & 255}")
    assert handshakes.admit("10.0.0.1")

    handshakes.note_proxy("10.0.0.2")
    for number in range(256):
        handshakes.note_proxy(f"10.2.0.{number}")
    assert len(handshakes._proxies) == 256
    clock.now += 2
    assert sum(handshakes.admit("10.0.0.2") for _ in range(5000)) == 4000, "as a stranger's"
