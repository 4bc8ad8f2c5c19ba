"""The address of a connection's client, in one canonical form."""

from __future__ import annotations

from typing import Any

_MAPPED = "::ffff:"


def peer_address(name: Any) -> str:
    """Return the host of a socket's peer name; an IPv4 address in IPv6 is written as IPv4."""
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix(_MAPPED).partition("%")[0]
