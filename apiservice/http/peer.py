"""The client of a connection: its address, and its certificate, put into the ASGI scope once.

uvicorn does not expose the client's certificate. So this project's protocol class reads it after
the TLS handshake and puts it where the authenticator finds it. The same object serves every request
of the connection, and the authenticator caches its verdict in it, so that each request after the
first costs a dictionary lookup.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SCOPE_KEY = "apiservice.http.peer"
"""The key of a :class:`Peer` in an ASGI scope; absent or None without a certificate."""
_MAPPED = "::ffff:"


def peer_address(name: Any) -> str:
    """Return the host of a socket's peer name; an IPv4 address in IPv6 is written as IPv4."""
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix(_MAPPED).partition("%")[0]


@dataclass(slots=True, eq=False)
class Peer:
    """A client that presented a certificate. The handshake's check of it is not sufficient: it
    accepts every CA at once, and CAs change while a connection is open."""

    chain: tuple[bytes, ...]
    """DER, the leaf first, as the client sent it."""
    since: float = field(default_factory=time.monotonic)
    """When its handshake ended, by the monotonic clock."""
    memo: Any = field(default=None, repr=False)
    """The authenticator's verdict for this connection."""


def of_tls(connection: ssl.SSLObject | None) -> Peer | None:
    """Return the peer of a finished handshake, or None if it presented no certificate."""
    if connection is None:
        return None
    leaf = connection.getpeercert(binary_form=True)
    if not leaf:
        return None
    chain = _presented_chain(connection)
    return Peer(chain if chain and chain[0] == leaf else (leaf,))


def _presented_chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the client's chain: a public method in Python 3.13, before it of the inner object.

    Without either only the leaf is known, and a client whose CA is behind an intermediate that is
    not in the trusted bundle is refused.
    """
    public = getattr(connection, "get_unverified_chain", None)
    if public is not None:
        return tuple(public())
    inner: Any = getattr(connection, "_sslobj", None)
    read = getattr(inner, "get_unverified_chain", None)
    if read is None:
        return ()
    certificates: Sequence[Any] = read() or ()
    return tuple(
        ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in certificates
    )
