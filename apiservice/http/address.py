"""The address of a connection's client, in one canonical form."""

from __future__ import annotations

import socket
from typing import Any

_MAPPED = "::ffff:"


def peer_address(name: Any) -> str:
    """Return the host of a socket's peer name; an IPv4 address in IPv6 is written as IPv4."""
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix(_MAPPED).partition("%")[0]


def accepted(listener: socket.socket) -> tuple[socket.socket, str]:
    """Accept one connection.

    Raises:
        BlockingIOError: no connection is waiting.
        OSError: the client disconnected, or the process may open no more files.
    """
    connection, name = listener.accept()
    connection.setblocking(False)
    return connection, peer_address(name)
