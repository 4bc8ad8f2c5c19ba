"""The other end of a connection, put into the ASGI scope once per connection.

uvicorn does not expose the client's certificate, so our protocol class reads it when
the TLS handshake is done and leaves it where the authenticator looks for it. The same
object serves every request of the connection: what the authenticator learnt about the
certificate is kept in it, so that a request after the first pays a dict lookup.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SCOPE_KEY = "apiservice.http.peer"
"""Where a :class:`Peer` lies in an ASGI scope; absent or None without a certificate."""


@dataclass(slots=True, eq=False)
class Peer:
    """A client that presented a certificate. The handshake's check of it is not trusted:
    it is made against every CA at once, and CAs change while a connection lives."""

    chain: tuple[bytes, ...]
    """DER, the leaf first, as the client sent it."""
    memo: Any = field(default=None, repr=False)
    """The authenticator's own notes about this connection."""


def of_tls(connection: ssl.SSLObject | None) -> Peer | None:
    """The peer of a finished handshake, or None where it showed no certificate."""
    if connection is None:
        return None
    leaf = connection.getpeercert(binary_form=True)
    if not leaf:
        return None
    chain = _presented(connection)
    return Peer(chain if chain and chain[0] == leaf else (leaf,))


def _presented(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Everything the client sent: public in Python 3.13, below it on the inner object.

    Without either only the leaf is known, and a client whose CA lies behind an
    intermediate that is not in the trusted bundle is refused.
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
