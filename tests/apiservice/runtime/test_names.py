"""A name whose server does not answer delays no other name, and the message says what fails."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import connect
from apiservice.kube.failures import fix, transport_failure
from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.names import NameLookups, Resolver
from apiservice.runtime.requesterror import RequestError, connect_failure
from apiservice.runtime.servertrust import client_context
from tests.apiservice.kubeapi import NOWHERE, kubeconfig, write
from tests.apiservice.rawhttp import serving

REAL = socket.getaddrinfo
NAMES = {
    "good.example": [(socket.AF_INET, "127.0.0.1")],
    "six.example": [(socket.AF_INET6, "::1")],
    "slow.example": [(socket.AF_INET, "127.0.0.1")],
    "moved.example": [(socket.AF_INET, "127.0.0.1")],
    "both.example": [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1")],
}


class NameServer:
    """Answers for the names above; ``slow.example`` does after :attr:`release`, and a name below
    ``silent.example`` fails then."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.asked: Counter[str] = Counter()
        self.names = {name: list(answers) for name, answers in NAMES.items()}

    def getaddrinfo(self, host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if host[:1].isdigit() and named:
            return REAL(host, port, *more, **named)
        self.asked[host] += 1
        if host.endswith("silent.example"):
            self.release.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if host == "slow.example":
            self.release.wait(60)
        if host == "servfail.example":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (
                family,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for family, address in self.names[host]
        ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer()
    monkeypatch.setattr("apiservice.runtime.names.socket.getaddrinfo", made.getaddrinfo)
    monkeypatch.setattr("apiservice.runtime.names._PATIENCE", 0.05)
    yield made
    made.release.set()


def test_every_client_looks_names_up_here() -> None:
    """And closes its connections as ``connector`` does."""
    makers = [
        str(file)
        for package in ("adapter", "apiservice")
        for file in sorted(Path(package).rglob("*.py"))
        if re.search(r"\bTCPConnector\b|ClientSession\((?![^)]*\bConnector\()", file.read_text())
    ]
    assert makers == ["apiservice/runtime/connector.py"]


async def test_a_caller_waits_for_a_bounded_time_and_the_answer_is_for_the_next_one(
    server: NameServer,
) -> None:
    """Otherwise a name that takes longer than each of its callers would never be found."""
    names = NameLookups()
    # Much longer than a look-up has until it counts as late, on a busy machine too.
    with pytest.raises(socket.gaierror, match="has not answered within 1 s"):
        await names.find("slow.example", 80, wait=1)
    server.release.set()
    async with asyncio.timeout(30):
        assert await names.find("slow.example", 80) == ["127.0.0.1"]
        assert await names.find("slow.example", 80) == ["127.0.0.1"]
    assert server.asked["slow.example"] == 1


async def test_a_late_answer_is_used_for_half_a_minute(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiservice.runtime.names._KEPT", 0.0)
    names = NameLookups()
    with pytest.raises(socket.gaierror):
        await names.find("slow.example", 80, wait=0.1)
    server.release.set()
    await names.find("slow.example", 80)
    server.names["slow.example"] = [(socket.AF_INET, "127.0.0.2")]
    assert await names.find("slow.example", 80) == ["127.0.0.2"], "the name has moved"


async def test_the_clients_of_a_process_share_the_look_ups(server: NameServer) -> None:
    """Each round of Azure's logs has a client of its own, and a name that hangs one thread."""
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await Resolver().resolve("a.silent.example", 443, socket.AF_UNSPEC)
    assert server.asked["a.silent.example"] == 1


async def test_the_name_of_a_cluster_that_hangs_is_the_reason(
    server: NameServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("apiservice.runtime.names._WAIT", 0.1)
    client = await connect(write(tmp_path, kubeconfig("http://slow.example:6443")), environ=NOWHERE)
    try:
        with pytest.raises(ClusterAnswerError) as failed:
            await call(client, "GET", "/version")
    finally:
        await client.close()
    assert "cannot connect to slow.example:6443" in str(failed.value)
    assert "its name server has not answered within 0.1 s" in str(failed.value)


def test_names_that_hang_delay_no_other_name(server: NameServer) -> None:
    """On uvloop, whose own look-ups are two at a time."""

    async def body() -> None:
        names = NameLookups()
        bad = [asyncio.ensure_future(names.find(f"{n}.silent.example", 80)) for n in range(40)]
        async with asyncio.timeout(30):
            assert await names.find("good.example", 80) == ["127.0.0.1"]
        # Known to hang: they wait for each other only.
        more = [asyncio.ensure_future(names.find(f"{n}.silent.example", 81)) for n in range(40)]
        async with asyncio.timeout(30):
            assert await names.find("good.example", 81) == ["127.0.0.1"]
        assert not any(lookup.done() for lookup in (*bad, *more))
        assert server.asked["0.silent.example"] <= 2
        server.release.set()
        ended = await asyncio.gather(*bad, *more, return_exceptions=True)
        assert all(isinstance(outcome, socket.gaierror) for outcome in ended)

    uvloop.run(body())


async def test_a_name_is_looked_up_once_at_a_time_and_its_callers_may_leave(
    server: NameServer,
) -> None:
    names = NameLookups()
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await names.find("a.silent.example", 80)
    assert server.asked["a.silent.example"] == 1, "rounds that time out start no further threads"
    server.release.set()
    with pytest.raises(socket.gaierror):
        await names.find("a.silent.example", 80)


async def test_an_address_needs_no_look_up(server: NameServer) -> None:
    names = NameLookups()
    assert await names.find("10.0.0.1", 80) == ["10.0.0.1"]
    assert await names.find("fd00::1", 80) == ["fd00::1"]
    assert not server.asked


async def get(client: HttpClient, host: str, port: int) -> int:
    async with client.send("GET", f"http://{host}:{port}/") as answer:
        return answer.status_code


async def test_a_name_that_comes_back_is_used_again(server: NameServer) -> None:
    del server.names["moved.example"]
    client = HttpClient(client_context, {}, connect=5)
    async with serving() as web:
        with pytest.raises(RequestError) as failed:
            await get(client, "moved.example", web.port)
        assert str(failed.value) == (
            f"cannot connect to moved.example:{web.port}: Name or service not known"
        )
        server.names["moved.example"] = [(socket.AF_INET, "127.0.0.1")]
        assert await get(client, "moved.example", web.port) == 200
        assert await get(client, "both.example", web.port) == 200, "the first address refuses"
        await client.close()


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("none.example", "Name or service not known"),
        ("servfail.example", "Temporary failure in name resolution"),
        ("six.example", "Connect call failed"),
        ("x" * 70 + ".example", "Name or service not known"),
    ],
)
async def test_each_failure_names_the_host(server: NameServer, host: str, text: str) -> None:
    client = HttpClient(client_context, {}, connect=5)
    with pytest.raises(RequestError, match="cannot connect") as failed:
        await get(client, host, 1)
    await client.close()
    assert host in str(failed.value)
    assert text in str(failed.value) or "refused" in str(failed.value)


def test_a_cluster_whose_name_is_not_found_is_one_line_with_the_fix() -> None:
    """The system's number of such an error is negative, and has no text of its own."""
    error = aiohttp.ClientConnectorDNSError(
        aiohttp.client_reqrep.ConnectionKey("api.example", 6443, True, True, None, None, None),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    )
    text = transport_failure(error)
    assert text == "cannot connect to api.example:6443: Name or service not known"
    assert "this machine reaches it" in fix(0, text)
    assert "refused" in str(connect_failure("h", 1, ConnectionRefusedError(111, "refused"))).lower()
