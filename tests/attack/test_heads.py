"""Request heads of tenants, which kube-apiserver forwards with its own certificate."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from socket import create_connection

from tests.attack.siege import Siege

TENANT = "system:serviceaccount:tenant:default"
REQUESTS = 400
SIZE = 50_000
"""Bytes of a head. All requests together send 20 MB."""


def _lines(seed: int, length: int) -> bytes:
    """Return header lines of ``length`` bytes each, different for each ``seed``."""
    count = SIZE // length
    return b"".join(
        b"%b: %x\r\n" % (b"x-%x-" % number + b"y" * (length - 20), seed) for number in range(count)
    )


def _shortest(seed: int) -> bytes:
    return b"".join(b"%c%c: %x\r\n" % (97 + n % 26, 97 + n // 26 % 26, seed) for n in range(5000))


def _heads() -> Iterator[bytes]:
    for seed in range(REQUESTS):
        yield (_lines(seed, 40), _lines(seed, 4000), _shortest(seed))[seed % 3]


def _send(siege: Siege, heads: Iterator[bytes]) -> list[int]:
    """Send each head in a request of its own, as the front proxy; return the statuses."""
    folder = siege.lab.folder
    context = ssl.create_default_context(cafile=folder / "certs" / "ca.crt")
    context.load_cert_chain(folder / "proxy.crt", folder / "proxy.key")
    statuses = []
    for head in heads:
        with (
            create_connection(("127.0.0.1", siege.port), timeout=60) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as client,
        ):
            client.sendall(
                b"GET /apis/custom.metrics.k8s.io HTTP/1.1\r\nHost: localhost\r\n"
                b"X-Remote-User: " + TENANT.encode() + b"\r\nX-Remote-Group: tenants\r\n"
                b"%b\r\n" % head
            )
            statuses.append(int(client.recv(1 << 16).split(b" ", 2)[1]))
    return statuses


def test_heads_of_many_lines_are_released(siege: Callable[..., Siege]) -> None:
    attacked = siege()
    _send(attacked, iter([next(_heads())]))
    before = attacked.process.memory_info().rss
    sent: list[int] = []

    attack = threading.Thread(target=lambda: sent.extend(_send(attacked, _heads())))
    attack.start()
    attack.join(300)

    assert set(sent) <= {403, 431}
    assert len(sent) == REQUESTS
    attacked.verdict()
    assert attacked.process.memory_info().rss - before < 60 << 20
