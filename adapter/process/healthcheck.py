"""``gpu-metrics-adapter healthy``: what an image's HEALTHCHECK runs beside the process.

A kubelet asks ``/livez`` itself, where the chart tells it. Docker and Podman know neither the
port nor the scheme: both are read from the command line of the process that is asked about,
and from the settings that it was started with.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from adapter.settings import Settings

PROGRAM = "gpu-metrics-adapter"
ANSWERING = frozenset({"serve", "nodepool"})
"""Commands with a listener; of the others there is nothing to ask."""
_EVERY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not opened


class Beside(NamedTuple):
    """A command that runs in the same container."""

    command: str
    arguments: list[str]
    """What follows it on its command line."""


class Address(NamedTuple):
    """Where ``/livez`` is answered."""

    host: str
    port: int
    trusted: Path | None
    """PEM file with what the server's certificate is, or is signed by; None for plain HTTP."""


def beside(proc: Path) -> Beside | None:
    """The command with a listener among the processes of ``proc``, the oldest first."""
    for command in _commands(proc):
        if command.command in ANSWERING:
            return command
    return None


def _commands(proc: Path) -> Iterator[Beside]:
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:  # it has ended
            continue
        for place, word in enumerate(words[:-1]):
            if Path(word).name == PROGRAM or words[place - 1 : place + 1] == ["-m", "adapter"]:
                yield Beside(words[place + 1], words[place + 2 :])
                break


def address(command: str, settings: Settings) -> Address:
    """Where a process with these settings listens."""
    if command == "nodepool":
        host = settings.nodepool.host
        return Address(_EVERY_ADDRESS.get(host, host), settings.nodepool.port, None)
    server = settings.server
    trusted = server.cert_file or server.cert_dir / "ca.crt"
    return Address(_EVERY_ADDRESS.get(server.host, server.host), server.port, trusted)


def problem(asked: Address, seconds: float = 4.0) -> str | None:
    """Ask ``/livez``; None when it answers 200, else why it is not well.

    The certificate has to be the one in ``trusted``, or signed by it. Its names are not
    compared: it is made for the Service's, and no other server is to be told apart here.
    """
    if asked.port == 0:
        return "the port is 0, so it can be asked nowhere: set one"
    try:
        connection = _connection(asked, seconds)
        try:
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            text = answer.read(4096).decode(errors="replace").strip()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return f"{asked.host} port {asked.port}: {error}"
    return None if answer.status == 200 else f"/livez answers {answer.status}: {text}"


def _connection(asked: Address, seconds: float) -> http.client.HTTPConnection:
    if asked.trusted is None:
        return http.client.HTTPConnection(asked.host, asked.port, timeout=seconds)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(asked.trusted)
    return http.client.HTTPSConnection(asked.host, asked.port, timeout=seconds, context=context)
