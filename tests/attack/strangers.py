"""Clients without any credential, from many addresses."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SOURCES = [f"127.0.{1 + n // 200}.{1 + n % 200}" for n in range(400)]
"""Addresses that attackers have; the observer's is 127.0.0.1."""
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


@contextmanager
def many_files(count: int) -> Iterator[None]:
    """Let this process open so many files."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(usual, count), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


def connect(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))


def strange(port: int, source: str) -> ssl.SSLSocket | None:
    """A TLS connection that shows no certificate; None where it is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    line = connect(port, source)
    try:
        return context.wrap_socket(line)
    except (OSError, ssl.SSLError):
        line.close()
        return None


@contextmanager
def idle_strangers(port: int, attempts: int) -> Iterator[list[ssl.SSLSocket]]:
    """Ask ``/healthz`` once on so many connections, and keep them open."""
    lines: list[ssl.SSLSocket] = []
    with many_files(2 * attempts):
        try:
            for n in range(attempts):
                line = strange(port, SOURCES[n % len(SOURCES)])
                if line is None:
                    continue
                lines.append(line)
                with suppress(OSError):
                    line.sendall(GET)
            yield lines
        finally:
            for line in lines:
                line.close()
