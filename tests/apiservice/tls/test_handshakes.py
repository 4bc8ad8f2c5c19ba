"""Handshakes over real sockets: versions, protocols, resumed sessions, and slow clients."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from apiservice.auth.clientauth import ClientAuth
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.loops import Run
from tests.apiservice.pki import client_context
from tests.apiservice.rawhttp import GET, connected, serving
from tests.apiservice.tls.serving import (
    CA,
    NOW,
    PROXY_CA,
    whoami,
)


def test_http_1_1_is_chosen_where_http_2_is_offered_and_sessions_are_not_resumed(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem)
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with (
            serving(whoami(trust), tls.listening_context) as server,
            connected(server, context) as wire,
        ):
            await wire.ask()
            connection = wire.writer.get_extra_info("ssl_object")
            assert connection.selected_alpn_protocol() == "http/1.1"
            assert connection.session is None or not connection.session.has_ticket

    run(body)


@pytest.mark.parametrize("identity", [None, "front-proxy-client"])
def test_a_session_of_tls_1_2_is_not_resumed(
    run: Run, trust: ClientAuth, files: CertificateFiles, tmp_path: Path, identity: str | None
) -> None:
    """A resumed session would pass for the proxy without its certificate or key."""

    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        issued = PROXY_CA.issue(identity) if identity else None
        context = client_context(CA.pem, issued, tmp_path)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        async with serving(whoami(trust), tls.listening_context) as server:
            session = None
            for _ in range(3):
                connection = await asyncio.to_thread(handshake, server.port, context, session)
                session = connection.session
                reused = connection.session_reused
                connection.close()
                assert session is not None
                assert not reused

    run(body)


def test_a_connection_that_resumed_a_session_all_the_same_is_ended(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    """Its context was handed out before the session was made."""

    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        stale = tls.listening_context()
        async with serving(whoami(trust), lambda: stale) as server:
            first = await asyncio.to_thread(handshake, server.port, context, None)
            second = await asyncio.to_thread(handshake, server.port, context, first.session)
            assert second.session_reused
            assert await asyncio.to_thread(hung_up, second)
            assert server.stats.refused["resumed-session"] == 1
            first.close()

    run(body)


def handshake(port: int, context: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLSocket:
    """A connection that asks to resume ``session``."""
    line = socket.create_connection(("127.0.0.1", port), timeout=60)
    return context.wrap_socket(line, server_hostname="localhost", session=session)


def hung_up(line: ssl.SSLSocket) -> bool:
    """Whether the server ends a connection on which nothing was asked."""
    try:
        return line.recv(100) == b""
    except (ConnectionError, ssl.SSLError):
        return True
    finally:
        line.close()


def test_tls_1_1_is_not_spoken(run: Run, trust: ClientAuth, files: CertificateFiles) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        assert tls.listening_context().minimum_version == ssl.TLSVersion.TLSv1_2

    run(body)


def test_a_client_that_never_shakes_hands_is_cut_off(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        async with (
            serving(whoami(trust), tls.listening_context, handshake_timeout=0.1) as server,
            connected(server) as wire,
        ):
            await wire.send(b"\x16\x03\x01")
            assert await wire.ended() == b""

    run(body)


def test_who_still_shakes_hands_when_the_server_stops_may_ask_once(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    """It was accepted, so its request must not be lost."""

    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        greeting = outgoing.read()
        async with (
            serving(whoami(trust), tls.listening_context) as server,
            connected(server) as slow,
            connected(server, context) as other,
        ):
            await slow.send(greeting[:20])
            await other.ask()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0)

            await slow.send(greeting[20:])
            async with asyncio.timeout(60):
                while not client.version():
                    incoming.write(await slow.reader.read(1 << 16))
                    with suppress(ssl.SSLWantReadError):
                        client.do_handshake()
            client.write(GET)
            await slow.send(outgoing.read())
            incoming.write(await slow.ended())
            answered = client.read(1 << 16)
            assert b" 200 " in answered
            assert b"connection: close" in answered.lower()
            await stopping
            assert server.connections == 0

    run(body)


def test_http_in_clear_to_a_tls_port_is_refused(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        async with serving(whoami(trust), tls.listening_context) as server:
            async with connected(server) as wire:
                await wire.send(GET)
                assert b"200" not in await wire.ended()
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[0] == 200

    run(body)
