"""CAs, and an application that answers with the user, for the tests of TLS serving."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

from cryptography import x509

from apiservice.auth.authentication import Authentication
from apiservice.auth.clientauth import ClientAuth
from apiservice.errors import Unauthorized
from tests.apiservice.pki import Authority
from tests.apiservice.rawhttp import GET, Wire, answer

NOW = time.time()
CA = Authority("serving-ca", NOW)
PROXY_CA = Authority("front-proxy-ca", NOW)
CLIENT_CA = Authority("kubernetes-ca", NOW)
AS_BOB = b"GET / HTTP/1.1\r\nHost: h\r\nX-Remote-User: bob\r\nX-REMOTE-GROUP: a,b\r\n\r\n"


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
