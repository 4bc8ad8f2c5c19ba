"""The address that a connection came from, in one spelling."""

from __future__ import annotations

import socket
from typing import Any

_MAPPED = "::ffff:"


def peer_address(name: Any) -> str:
    """The host of a socket's peer name; IPv4 through IPv6 is written as IPv4."""
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix(_MAPPED).partition("%")[0]


def accepted(listener: socket.socket) -> tuple[socket.socket, str]:
    """Accept one connection.

    Raises:
        BlockingIOError: nobody waits.
        OSError: this one went away, or the process may open no more files.
    """
    connection, name = listener.accept()
    connection.setblocking(False)
    return connection, peer_address(name)
