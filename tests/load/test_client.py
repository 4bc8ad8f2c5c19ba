"""The load client against a server with exact answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from load.client import Load, LoadError
from load.drive import plan
from load.pki import Pki, issue
from load.plan import Plan

BODY = b'{"items":["svc-000-00000","svc-000-00001"]}'
COUNTED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"c\r\n" + BODY[:12] + b"\r\n1f\r\n" + BODY[12:] + b"\r\n0\r\n\r\n"
)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return issue(tmp_path)


@asynccontextmanager
async def answering(pki: Pki, pieces: list[bytes], heads: list[bytes]) -> AsyncIterator[int]:
    """A TLS server that demands a client certificate and writes ``pieces`` per request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.ca))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(pki.cert, pki.key)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def once(pki: Pki, port: int, targets: list[str], connections: int = 1) -> Plan:
    made = plan(pki, port, "/", connections=connections, expected=2)
    made.targets, made.once = targets, True
    return made


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([COUNTED], id="one piece"),
        pytest.param([COUNTED[:10], COUNTED[10:45], COUNTED[45:]], id="a cut head and body"),
        pytest.param([CHUNKED], id="chunked"),
        pytest.param([CHUNKED[:60], CHUNKED[60:]], id="chunked, cut within a pod's name"),
    ],
)
async def test_every_target_is_requested_once_and_its_answer_read(
    pki: Pki, pieces: list[bytes]
) -> None:
    heads: list[bytes] = []
    async with answering(pki, pieces, heads) as port:
        load = Load(once(pki, port, ["/a", "/b", "/c"], connections=2))
        await load.connect()
        outcome = await load.drive(0)
        load.close()
    assert len(outcome.latencies) == 3
    assert sorted(head.split(b" ")[1] for head in heads) == [b"/a", b"/b", b"/c"]
    audits = {line for head in heads for line in head.splitlines() if line.startswith(b"Audit-Id")}
    assert len(audits) == 3, "kube-apiserver never sends one twice"


async def test_as_hpas_it_requests_every_target_in_turn_once_in_each_period(pki: Pki) -> None:
    heads: list[bytes] = []
    async with answering(pki, [COUNTED], heads) as port:
        targets = ["/a", "/b", "/c", "/d"]
        asking = plan(pki, port, "/", targets=targets, every=0.2, connections=2, expected=2)
        load = Load(asking)
        await load.connect()
        outcome = await load.drive(0.59)
        load.close()
    assert len(outcome.latencies) == 12, "three periods, however late the machine is"
    asked = [head.split(b" ")[1].decode() for head in heads]
    assert sorted(asked) == sorted(targets * 3)


def test_targets_that_cannot_be_parted_evenly_are_refused(pki: Pki) -> None:
    with pytest.raises(ValueError, match="3 targets cannot be parted evenly among 2"):
        Load(plan(pki, 1, "/", targets=["/a", "/b", "/c"], every=15, connections=2))


async def test_it_sends_the_requests_of_the_hpa_controller(pki: Pki) -> None:
    heads: list[bytes] = []
    async with answering(pki, [COUNTED], heads) as port:
        load = Load(once(pki, port, ["/a"]))
        await load.connect()
        await load.drive(0)
        load.close()
    lines = heads[0].split(b"\r\n")
    assert b"Accept: application/vnd.kubernetes.protobuf, */*" in lines
    assert b"X-Remote-Group: system:serviceaccounts" in lines
    assert b"X-Remote-User: system:serviceaccount:kube-system:horizontal-pod-autoscaler" in lines


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "not 200", id="a refusal"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nsvc-000-0000", "1 items", id="too few"
        ),
    ],
)
async def test_an_unexpected_answer_is_a_failure(pki: Pki, answer: bytes, message: str) -> None:
    async with answering(pki, [answer], []) as port:
        load = Load(once(pki, port, ["/a"]))
        await load.connect()
        with pytest.raises(LoadError, match=message):
            await load.drive(0)
        load.close()
