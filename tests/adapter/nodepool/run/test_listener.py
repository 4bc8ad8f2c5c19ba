"""The controller's listener: metrics and health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.listener import listen
from adapter.nodepool.run.reports import Reports
from adapter.nodepool.run.watches import Watches
from adapter.nodepool.seen.cluster import ClusterTables
from apiservice.documents.probes import LIMITS
from apiservice.http.server import ListenError
from apiservice.runtime.background import Background
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import HOME
from tests.apiservice.rawhttp import connected
from tests.needs import DUAL_STACK, needs

EACH = LIMITS.max_connections_per_address
MOST = LIMITS.max_connections - LIMITS.max_handshakes


@pytest.fixture
async def listening(unused_port: int) -> AsyncIterator[tuple[NodepoolController, Watches, str]]:
    cluster, api = ClusterTables(), FakeApi()
    api.objects["/apis"] = {"groups": []}
    watches = Watches(None, cluster, HOME, jobs_too=True, priority_class="low")
    controller = NodepoolController(
        NodepoolSettings(),
        HOME,
        cluster,
        api,
        lambda: False,
        watches.problem,
        lambda _: None,
        Ledger(),
        Reports(None),
    )
    listener = await listen("127.0.0.1", unused_port, controller, watches, None, Background())
    yield controller, watches, f"http://127.0.0.1:{unused_port}"
    await listener.stop()


@pytest.fixture
async def unused_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


Listening = tuple[NodepoolController, Watches, str]


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_it_is_ready_when_every_collection_has_been_listed(listening: Listening) -> None:
    _, watches, url = listening
    assert (await get(f"{url}/readyz"))[0] == 500
    for _, reflector in watches.reflectors():
        reflector.synced_event.set()
        reflector.last_contact = time.time()
    assert await get(f"{url}/readyz") == (200, "ok")
    assert "[+]lease ok" in (await get(f"{url}/readyz?verbose"))[1]


async def test_it_is_alive_while_its_rounds_continue(listening: Listening) -> None:
    controller, _, url = listening
    await controller.look(time.time())
    assert await get(f"{url}/healthz") == (200, "ok")
    controller.state.ended_at = time.time() - 3600
    assert (await get(f"{url}/livez"))[0] == 500


async def test_metrics_are_served_as_text(listening: Listening) -> None:
    *_, url = listening
    code, text = await get(f"{url}/metrics")
    assert code == 200
    assert "gma_nodepool_rounds_total 0.0" in text.splitlines()


async def test_a_port_in_use_is_named_with_the_fix(listening: Listening) -> None:
    controller, watches, url = listening
    port = int(url.rpartition(":")[2])
    with pytest.raises(ListenError, match=r"nodepool\.port"):
        await listen("127.0.0.1", port, controller, watches, None, Background())


@needs(DUAL_STACK)
async def test_by_default_both_protocol_versions_are_served(listening: Listening) -> None:
    controller, watches, _ = listening
    host = NodepoolSettings().host
    listener = await listen(host, 0, controller, watches, None, Background())
    try:
        for host in ("127.0.0.1", "[::1]"):
            assert (await get(f"http://{host}:{listener.port}/healthz"))[0] == 200
    finally:
        await listener.stop()


async def test_clients_that_hold_connections_do_not_block_others(listening: Listening) -> None:
    controller, watches, _ = listening
    listener = await listen("127.0.0.1", 0, controller, watches, None, Background())
    try:
        async with AsyncExitStack() as stack:
            held = [
                await stack.enter_async_context(
                    connected(listener, source=f"127.0.1.{1 + n // (2 * EACH)}")
                )
                for n in range(2 * MOST)
            ]
            code, text = await get(f"http://127.0.0.1:{listener.port}/metrics")
            assert code == 200
            assert "gma_nodepool_rounds_total" in text
            assert await held[0].ended() == b"", "the oldest of an address is closed"
            assert listener.stats.refused["idle-connections"] >= MOST
    finally:
        await listener.stop()
