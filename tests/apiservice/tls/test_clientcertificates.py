"""Client certificates over real sockets: whom the server recognises, as CAs change."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.loops import Run
from tests.apiservice.pki import HOUR, SERVER, Authority, Issued, client_context
from tests.apiservice.rawhttp import GET, connected, serving
from tests.apiservice.tls.serving import (
    AS_BOB,
    CA,
    CLIENT_CA,
    NOW,
    PROXY_CA,
    handshake_refused,
    whoami,
)

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
            serving(whoami(trust), tls.listening_context) as server,
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
        async with serving(whoami(trust), tls.listening_context) as server:
            assert await handshake_refused(server.port, context, AS_BOB) is not None
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[0] == 200

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
            serving(whoami(trust), tls.listening_context) as server,
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


def test_no_client_is_asked_for_a_certificate_where_no_ca_is_expected(
    run: Run, files: CertificateFiles, tmp_path: Path
) -> None:
    async def body() -> None:
        trust = ClientAuth()
        tls = ServingTLS(files, trust, NOW)
        context = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with (
            serving(whoami(trust), tls.listening_context) as server,
            connected(server, context) as wire,
        ):
            assert (await wire.ask(AS_BOB))[2].startswith(b"system:anonymous")

    run(body)


def test_no_connection_of_a_front_proxy_stays_anonymous_that_came_before_its_ca(
    run: Run, files: CertificateFiles, tmp_path: Path
) -> None:
    """kube-apiserver keeps its connections: one that was not asked would be anonymous for good."""

    async def body() -> None:
        trust = ClientAuth(expected=True)
        tls = ServingTLS(files, trust, NOW)
        proxy = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
        async with serving(whoami(trust), tls.listening_context) as server:
            assert await handshake_refused(server.port, proxy, AS_BOB) is not None
            # A probe of the kubelet has no certificate.
            async with connected(server, client_context(CA.pem)) as wire:
                assert (await wire.ask())[2].startswith(b"system:anonymous")
            trust.set_proxy(ProxySettings(PROXY_CA.pem))
            async with connected(server, proxy) as wire:
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
        async with (
            serving(whoami(trust), tls.listening_context) as server,
            connected(server, context) as w,
        ):
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
        async with (
            serving(whoami(trust), tls.listening_context) as server,
            connected(server, context) as w,
        ):
            assert (await w.ask(AS_BOB))[2].startswith(b"bob")

    run(body)
