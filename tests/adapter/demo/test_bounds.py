"""The bounds of the demo's API server, each driven over its edge."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapter.demo import story
from adapter.demo.certificates import FrontProxy, make_front_proxy
from adapter.demo.cluster.app import ClusterApi
from adapter.demo.cluster.listener import Listener
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.exporters import Exporters
from adapter.demo.state import DemoState
from adapter.demo.world import World
from apiservice.runtime.requesterror import RequestError
from apiservice.tls.authority import new_authority
from tests.apiservice.rawhttp import serving

METRICS = "/apis/custom.metrics.k8s.io/v1beta2"


@pytest.fixture
def proxy(tmp_path: Path) -> FrontProxy:
    return make_front_proxy(tmp_path, time.time())


class Gate:
    """An application that answers once the gate is open, and counts who waits."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside = self.most = 0
        self._entered = asyncio.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._entered.release()
        await self.open.wait()
        self.inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def filled(self, count: int) -> None:
        """Wait until so many requests are inside."""
        async with asyncio.timeout(30):
            for _ in range(count):
                await self._entered.acquire()


async def test_a_connection_beyond_those_that_are_answered_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.listener.AT_ONCE", 3)
    listener, gate = Listener(tmp_path / "config", "inference", time.time()), Gate()
    await listener.start(gate)
    config = json.loads((tmp_path / "config").read_text())
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    limits = httpx.Limits(max_keepalive_connections=0)
    try:
        async with httpx.AsyncClient(
            verify=context, trust_env=False, base_url=cluster["server"], limits=limits, timeout=30
        ) as client:
            held = [asyncio.create_task(client.get("/version")) for _ in range(3)]
            await gate.filled(3)
            with pytest.raises(httpx.TransportError):
                await client.get("/version")
            gate.open.set()
            assert [answer.status_code for answer in await asyncio.gather(*held)] == [200] * 3
            assert (await client.get("/version")).status_code == 200
    finally:
        gate.open.set()
        await listener.stop()


@asynccontextmanager
async def behind(
    app: Any, state: DemoState, proxy: FrontProxy, folder: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API server, with the application in place of ``serve``."""
    authority = new_authority(time.time(), days=1)
    issued = authority.issue(("127.0.0.1",), time.time(), days=1)
    files = {"ca": authority.certificate_pem, "crt": issued.certificate, "key": issued.key}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    async with serving(app, lambda: context) as server:
        upstream = Upstream(f"https://127.0.0.1:{server.port}", proxy, folder / "ca")
        transport = httpx.ASGITransport(ClusterApi(state, upstream, proxy, "secret"))
        headers = {"Authorization": "Bearer secret"}
        try:
            async with httpx.AsyncClient(
                transport=transport, base_url="https://demo", headers=headers
            ) as client:
                yield client
        finally:
            await upstream.close()


async def test_requests_for_serve_over_the_bound_wait_for_their_turn(
    state: DemoState, proxy: FrontProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.upstream.AT_ONCE", 2)
    gate = Gate()
    async with behind(gate, state, proxy, tmp_path) as client:
        asked = [asyncio.create_task(client.get(METRICS)) for _ in range(6)]
        await gate.filled(2)
        gate.open.set()
        answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200] * 6
    assert gate.most == 2


async def test_a_serve_that_does_not_answer_in_time_is_a_503(
    state: DemoState, proxy: FrontProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.upstream.SECONDS", 0.2)
    gate = Gate()
    async with behind(gate, state, proxy, tmp_path) as client:
        answer = await client.get(METRICS)
        gate.open.set()
    assert (answer.status_code, answer.json()["reason"]) == (503, "ServiceUnavailable")
    assert "serve does not answer" in answer.json()["message"]


async def test_an_answer_that_stops_halfway_is_cut_and_not_ended(
    state: DemoState, proxy: FrontProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.upstream.SECONDS", 0.5)
    over = asyncio.Event()

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        await over.wait()
        await send({"type": "http.response.body", "body": b"}"})

    async with behind(half, state, proxy, tmp_path) as client:
        with pytest.raises(TimeoutError):
            await client.get(METRICS)
        over.set()


async def test_an_answer_beyond_the_bound_is_cut_and_not_ended(
    state: DemoState, proxy: FrontProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.upstream.MOST_BYTES", 1000)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 1001})

    async with behind(large, state, proxy, tmp_path) as client:
        with pytest.raises(RequestError, match="larger than 1000 bytes"):
            await client.get(METRICS)


async def test_a_page_that_does_not_come_in_time_is_a_503(
    state: DemoState, proxy: FrontProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.app._SECONDS", 0.2)
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    message = await unavailable_page(silent, state, proxy, monkeypatch, over)
    assert "error trying to reach service" in message


async def test_a_page_beyond_the_bound_is_a_503(
    state: DemoState, proxy: FrontProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.demo.cluster.app.MOST_BYTES", 1000)

    async def large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + b"#" * 1001)
        await writer.drain()
        writer.close()

    message = await unavailable_page(large, state, proxy, monkeypatch, asyncio.Event())
    assert "more than 1000 bytes" in message


async def unavailable_page(
    exporter: Any,
    state: DemoState,
    proxy: FrontProxy,
    monkeypatch: pytest.MonkeyPatch,
    over: asyncio.Event,
) -> str:
    """Read the page of an exporter through the API server; return the message of the 503."""
    server = await asyncio.start_server(exporter, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(Exporters, "ports", {"h100-1": port})
    upstream = Upstream("https://127.0.0.1:1", proxy, proxy.ca)
    transport = httpx.ASGITransport(ClusterApi(state, upstream, proxy, "secret"))
    path = "/api/v1/namespaces/gpu-metrics/pods/dcgm-exporter-h100-1:metrics/proxy/metrics"
    async with server, httpx.AsyncClient(transport=transport, base_url="https://demo") as client:
        answer = await client.get(path, headers={"Authorization": "Bearer secret"})
        over.set()
    await upstream.close()
    assert (answer.status_code, answer.json()["reason"]) == (503, "ServiceUnavailable")
    return str(answer.json()["message"])


def test_the_oldest_changes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.demo.world._CHANGES", 10)
    world = World(story.POOLS, story.WORKLOADS, seed=7)
    for replicas in (6, 2) * 10:
        world.scale("embed", replicas)
        world.advance(world.now + 20)
    assert len(world.changes) == 10
    assert world.changes[0].at > world.now - 60, "the latest ones are kept"
