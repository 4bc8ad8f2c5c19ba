"""TLS over real sockets: certificates and CAs replaced while clients are connected."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from apiservice.auth.authentication import Authentication
from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.errors import Unauthorized
from apiservice.tls.certificates import CertificateFiles, CertificatePairError
from apiservice.tls.context import ServingTLS
from apiservice.tls.selfsigned import SelfSigned
from tests.apiservice.loops import Run
from tests.apiservice.pki import HOUR, SERVER, Authority, Issued, client_context
from tests.apiservice.rawhttp import GET, Wire, answer, connected, serving

NOW = time.time()
CA = Authority("serving-ca", NOW)
PROXY_CA = Authority("front-proxy-ca", NOW)
CLIENT_CA = Authority("kubernetes-ca", NOW)
AS_BOB = b"GET / HTTP/1.1\r\nHost: h\r\nX-Remote-User: bob\r\nX-REMOTE-GROUP: a,b\r\n\r\n"


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(*CA.server("localhost").write(tmp_path, "tls"))


@pytest.fixture
def trust() -> ClientAuth:
    trust = ClientAuth()
    trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    trust.set_clients(CLIENT_CA.pem)
    return trust


def whoami(trust: ClientAuth) -> Any:
    """An application that answers with the authenticated user and groups."""
    authentication = Authentication(trust)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            user = await authentication.authenticate(scope)
        except Unauthorized:
            await answer(send, b"401")
        else:
            await answer(send, "|".join((user.name, *user.groups)).encode())

    return app


def served_serial(wire: Wire) -> int:
    der = wire.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(der).serial_number


async def handshake_refused(
    port: int, context: ssl.SSLContext, sent: bytes = GET
) -> type[Exception] | None:
    """The errors of a client whose certificate the handshake refuses. TLS 1.3 reports it late."""
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
    except (OSError, ssl.SSLError) as error:
        return type(error)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            got = await reader.read(100)
    except (OSError, ssl.SSLError) as error:
        return type(error)
    finally:
        writer.transport.abort()
    return EOFError if not got else None


IDENTITIES: dict[str, tuple[Callable[[], Issued | None], bytes, bytes]] = {
    "nobody": (lambda: None, GET, b"system:anonymous|system:unauthenticated"),
    "headers without a certificate": (
        lambda: None,
        AS_BOB,
        b"system:anonymous|system:unauthenticated",
    ),
    "a front proxy": (
        lambda: PROXY_CA.issue("front-proxy-client"),
        AS_BOB,
        b"bob|a,b|system:authenticated",
    ),
    "a proxy of another name": (lambda: PROXY_CA.issue("mallory"), AS_BOB, b"401"),
    "a proxy without an extended key usage": (
        lambda: PROXY_CA.issue("front-proxy-client", usage=None),
        AS_BOB,
        b"401",
    ),
    "a client": (
        lambda: CLIENT_CA.issue("carol", groups=("ops",)),
        AS_BOB,
        b"carol|ops|system:authenticated",
    ),
    "a client behind an intermediate": (
        lambda: Authority("between", NOW, signer=CLIENT_CA).issue("dave"),
        GET,
        b"dave|system:authenticated",
    ),
}


@pytest.mark.parametrize(
    ("identity", "sent", "expected"), IDENTITIES.values(), ids=IDENTITIES.keys()
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_a_connection_is(
    run: Run,
    trust: ClientAuth,
    files: CertificateFiles,
    tmp_path: Path,
    identity: Callable[[], Issued | None],
    sent: bytes,
    expected: bytes,
    version: ssl.TLSVersion,
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem, identity(), tmp_path)
        context.maximum_version = version
        async with (
            serving(whoami(trust), tls.listening) as server,
            connected(server, context) as wire,
        ):
            assert [(await wire.ask(sent))[2] for _ in range(2)] == [expected] * 2

    run(body)


REFUSED: dict[str, Callable[[], Issued]] = {
    "an unknown CA": lambda: Authority("front-proxy-ca", NOW).issue("front-proxy-client"),
    "expired": lambda: PROXY_CA.issue("front-proxy-client", ends=-1),
    "not valid yet": lambda: PROXY_CA.issue("front-proxy-client", starts=HOUR, ends=2 * HOUR),
    "for servers only": lambda: PROXY_CA.issue("front-proxy-client", usage=SERVER),
}


@pytest.mark.parametrize("identity", REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_certificate_ends_the_handshake(
    run: Run,
    trust: ClientAuth,
    files: CertificateFiles,
    tmp_path: Path,
    identity: Callable[[], Issued],
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem, identity(), tmp_path)
        async with serving(whoami(trust), tls.listening) as server:
            assert await handshake_refused(server.port, context, AS_BOB) is not None
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[0] == 200

    run(body)


def test_a_certificate_is_replaced_under_a_connected_client(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        async with serving(whoami(trust), tls.listening) as server:
            async with connected(server, client_context(CA.pem)) as old:
                await old.ask()
                renewed = CA.server("localhost", ends=2 * HOUR)
                renewed.write(files.certificate.parent, "tls")
                tls.check(NOW)
                async with connected(server, client_context(CA.pem)) as new:
                    await new.ask()
                    assert served_serial(new) == renewed.certificate.serial_number
                assert served_serial(old) != renewed.certificate.serial_number
                assert (await old.ask())[0] == 200
            assert tls.expires == int(NOW + 2 * HOUR)

    run(body)


def test_a_bad_new_pair_keeps_the_old_and_is_reported(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        good = files.certificate.read_bytes()
        async with serving(whoami(trust), tls.listening) as server:
            for bad in (b"", CA.server("localhost").pem, CA.server("localhost", ends=-1).pem):
                files.certificate.write_bytes(bad)
                tls.check(NOW)
                assert str(files.certificate) in tls.problem
                async with connected(server, client_context(CA.pem)) as wire:
                    assert (await wire.ask())[0] == 200
            files.certificate.write_bytes(good)
            tls.check(NOW)
            assert tls.problem == ""

    run(body)


def test_a_pair_swapped_by_symlink_is_noticed(run: Run, trust: ClientAuth, tmp_path: Path) -> None:
    """kubelet's way with mounted Secrets: ``..data`` is renamed to a new folder."""

    async def body() -> None:
        for name in ("v1", "v2"):
            CA.server("localhost").write(tmp_path / name, "tls")
        (tmp_path / "..data").symlink_to("v1")
        files = CertificateFiles(tmp_path / "..data" / "tls.crt", tmp_path / "..data" / "tls.key")
        tls = ServingTLS(files, trust, NOW)
        async with serving(whoami(trust), tls.listening) as server:
            (tmp_path / "..new").symlink_to("v2")
            os.replace(tmp_path / "..new", tmp_path / "..data")  # noqa: PTH105 - the link itself
            tls.check(NOW)
            async with connected(server, client_context(CA.pem)) as wire:
                await wire.ask()
                expected = x509.load_pem_x509_certificate((tmp_path / "v2/tls.crt").read_bytes())
                assert served_serial(wire) == expected.serial_number

    run(body)


def test_a_rotated_front_proxy_ca_takes_effect_on_old_and_new_connections(
    run: Run, trust: ClientAuth, files: CertificateFiles, tmp_path: Path
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        renewed = Authority("front-proxy-ca", NOW)
        before = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        after = client_context(CA.pem, renewed.issue("front-proxy-client"), tmp_path)
        allowed = ("front-proxy-client",)
        async with (
            serving(whoami(trust), tls.listening) as server,
            connected(server, before) as old,
        ):
            assert (await old.ask(AS_BOB))[2].startswith(b"bob")
            assert await handshake_refused(server.port, after, AS_BOB) is not None

            trust.set_proxy(ProxySettings(PROXY_CA.pem + renewed.pem, allowed))
            assert (await old.ask(AS_BOB))[2].startswith(b"bob")
            async with connected(server, after) as new:
                assert (await new.ask(AS_BOB))[2].startswith(b"bob")

                trust.set_proxy(ProxySettings(renewed.pem, allowed))
                assert (await new.ask(AS_BOB))[2].startswith(b"bob")
            assert (await old.ask(AS_BOB))[2] == b"401"
            assert await handshake_refused(server.port, before, AS_BOB) is not None

    run(body)


def test_no_client_is_asked_for_a_certificate_before_a_ca_is_known(
    run: Run, files: CertificateFiles, tmp_path: Path
) -> None:
    async def body() -> None:
        trust = ClientAuth()
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with serving(whoami(trust), tls.listening) as server:
            async with connected(server, context) as wire:
                assert (await wire.ask(AS_BOB))[2].startswith(b"system:anonymous")
            trust.set_proxy(ProxySettings(PROXY_CA.pem))
            async with connected(server, context) as wire:
                assert (await wire.ask(AS_BOB))[2].startswith(b"bob")

    run(body)


@pytest.mark.parametrize(
    "bundle",
    [
        PROXY_CA.pem + CLIENT_CA.pem[:200],
        b"".join(b"  " + line for line in PROXY_CA.pem.splitlines(keepends=True)),
        "# für den Proxy\n".encode() + PROXY_CA.pem.replace(b"\n", b"\r\n"),
        PROXY_CA.pem * 2,
    ],
    ids=["a second one cut off", "indented", "a comment and CRLF", "twice the same"],
)
def test_a_bundle_that_is_untidy_is_served_as_it_is_understood(
    run: Run, files: CertificateFiles, tmp_path: Path, bundle: bytes
) -> None:
    """The two readers of a bundle, ours and OpenSSL's, differ in what they put up with."""

    async def body() -> None:
        trust = ClientAuth()
        tls = ServingTLS(files, trust, NOW)
        trust.set_clients(CLIENT_CA.pem)
        trust.set_proxy(ProxySettings(bundle))
        context = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with serving(whoami(trust), tls.listening) as server, connected(server, context) as w:
            assert (await w.ask(AS_BOB))[2].startswith(b"bob")

    run(body)


def test_a_ca_arrives_while_the_pair_on_disk_is_broken(
    run: Run, files: CertificateFiles, tmp_path: Path
) -> None:
    async def body() -> None:
        trust = ClientAuth()
        tls = ServingTLS(files, trust, NOW)
        files.certificate.write_bytes(b"half")
        trust.set_proxy(ProxySettings(PROXY_CA.pem))
        context = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with serving(whoami(trust), tls.listening) as server, connected(server, context) as w:
            assert (await w.ask(AS_BOB))[2].startswith(b"bob")

    run(body)


def test_http_1_1_is_chosen_where_http_2_is_offered_and_sessions_are_not_resumed(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem)
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with (
            serving(whoami(trust), tls.listening) as server,
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
        async with serving(whoami(trust), tls.listening) as server:
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
        stale = tls.listening()
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
        assert tls.listening().minimum_version == ssl.TLSVersion.TLSv1_2

    run(body)


def test_a_client_that_never_shakes_hands_is_cut_off(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        async with (
            serving(whoami(trust), tls.listening, handshake_timeout=0.1) as server,
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
            serving(whoami(trust), tls.listening) as server,
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
        async with serving(whoami(trust), tls.listening) as server:
            async with connected(server) as wire:
                await wire.send(GET)
                assert b"200" not in await wire.ended()
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[0] == 200

    run(body)


def test_a_self_signed_certificate_serves_and_is_renewed_in_time(
    run: Run, trust: ClientAuth, tmp_path: Path
) -> None:
    async def body() -> None:
        source = SelfSigned(tmp_path, ("localhost", "127.0.0.1"))
        day = 86400
        tls = ServingTLS(source, trust, NOW - 300 * day)
        client = ssl.create_default_context(cafile=source.ca)
        async with serving(whoami(trust), tls.listening) as server:
            async with connected(server, client) as wire:
                await wire.ask()
                first = served_serial(wire)
            tls.check(NOW)
            assert tls.expires == int(NOW) + 365 * day
            async with connected(server, client) as wire:
                await wire.ask()
                assert served_serial(wire) != first

    run(body)


def test_a_bad_pair_at_the_start_is_an_error(trust: ClientAuth, tmp_path: Path) -> None:
    with pytest.raises(CertificatePairError, match=r"tls\.crt"):
        ServingTLS(CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), trust, NOW)
