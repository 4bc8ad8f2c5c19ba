"""Each bound of the page, driven over its edge."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import httpx
import msgspec
import pytest

from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.tables import ObjectTable
from adapter.tools.idle.prices import load
from adapter.tools.ui.app import application
from adapter.tools.ui.collector import PageCollector
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.data import MOST_NAMES, PageData
from adapter.tools.ui.explanations import AT_ONCE, WAITING, Explanations
from adapter.tools.ui.files import page_files
from adapter.tools.ui.history import HpaHistory
from adapter.tools.ui.idlewatch import IdleWatch
from adapter.tools.ui.model import Model
from adapter.tools.ui.parts import PageParts
from adapter.tools.ui.stream import Streams
from tests.adapter.tools.ui.cluster import columns
from tests.adapter.tools.ui.page import eventually, serving


class SlowCluster:
    """A cluster whose answers wait for the test."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = 0
        self.now = 0
        self.most = 0
        """Requests in progress at once, at most."""
        self.origin = "https://slow"

    @property
    def api(self) -> SlowCluster:
        return self

    def within(self, _: str) -> SlowCluster:
        return self

    async def get(self, path: str) -> dict[str, Any]:
        await self._wait()
        return {"metadata": {"name": path.rpartition("/")[2]}}

    async def table(self, path: str, **_: Any) -> ObjectTable:
        await self._wait()
        resources = {resource.plural: resource for resource in (GPUS, GPUPODS, GPUWORKLOADS)}
        return ObjectTable(columns(resources[path.rpartition("/")[2]]), ())

    async def list(self, _: str, *, fields: str = "") -> list[Any]:
        return []

    async def pages(self, _: str, *, labels: str = "") -> Any:
        yield []

    async def _wait(self) -> None:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.go.wait()
        finally:
            self.now -= 1


def connection(cluster: SlowCluster) -> ClusterConnection:
    return cast("ClusterConnection", cluster)


async def test_four_explanations_run_sixteen_wait_and_a_further_one_is_rejected() -> None:
    cluster = SlowCluster()
    explanations = Explanations(connection(cluster), longest=60)
    accepted = [
        asyncio.create_task(explanations.of("gpu", f"g{n}")) for n in range(AT_ONCE + WAITING)
    ]
    await eventually(lambda: cluster.asked == AT_ONCE)
    rejected = await explanations.of("gpu", "further")
    assert (rejected.status, rejected.body) == (
        503,
        {"error": "too many explanations are requested at once: try again"},
    )
    cluster.go.set()
    answers = await asyncio.gather(*accepted)
    assert [answer.status for answer in answers] == [200] * (AT_ONCE + WAITING)
    assert cluster.most == AT_ONCE == 4
    assert (await explanations.of("gpu", "later")).status == 200


async def test_an_explanation_ends_after_its_time_and_frees_its_place() -> None:
    cluster = SlowCluster()
    explanations = Explanations(connection(cluster), longest=0.05)
    late = await asyncio.gather(*(explanations.of("gpu", f"g{n}") for n in range(AT_ONCE + 1)))
    assert {answer.status for answer in late} == {504}
    assert late[0].body == {"error": "the cluster gave no answer within 0.05 s"}
    assert cluster.now == 0
    cluster.go.set()
    assert (await explanations.of("gpu", "g0")).status == 200


async def test_a_list_that_is_not_complete_in_time_fails_alone_and_is_read_again() -> None:
    cluster, parts = SlowCluster(), PageParts()
    prices, history = load(None), HpaHistory()
    idle = IdleWatch(connection(cluster), parts, prices, "team", 600)
    collector = PageCollector(
        *(connection(cluster), Model(prices, 600), parts, "", 0.05, history, idle), longest=0.1
    )

    def panels() -> dict[str, Any]:
        rows = msgspec.json.decode(parts.get("panels") or b"[]")
        return {row["panel"]: row for row in rows}

    def have(status: str) -> bool:
        rows = panels()
        return bool(rows) and all(
            rows[name]["status"] == status for name in ("gpus", "gpupods", "gpuworkloads")
        )

    task = asyncio.create_task(collector.run())
    try:
        await eventually(lambda: have("failed") and panels()["hpas"]["status"] == "ok")
        assert panels()["gpus"]["message"] == (
            "the list was not complete after 0.1 s: name a namespace with -n, or see the API "
            "server's own log; server: https://slow"
        )
        cluster.go.set()
        await eventually(lambda: have("ok"))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_connection_beyond_those_that_are_answered_is_closed() -> None:
    async with serving(max_connections=3 + 64) as page, AsyncExitStack() as stack:
        page.parts.publish("a", b"1")
        clients = [await stack.enter_async_context(page.client()) for _ in range(4)]
        for client in clients[:3]:
            answer = await stack.enter_async_context(client.stream("GET", "/api/events"))
            assert answer.status_code == 200
        with pytest.raises(httpx.TransportError):
            await clients[3].get("/")
        await clients[0].aclose()
        await eventually(lambda: page.server.connections == 2)
        assert (await clients[3].get("/")).status_code == 200


async def test_a_new_connection_takes_the_place_of_an_idle_one() -> None:
    async with serving(max_connections=3 + 64) as page, AsyncExitStack() as stack:
        page.parts.publish("a", b"1")
        owner = await stack.enter_async_context(page.client())
        stream = await stack.enter_async_context(owner.stream("GET", "/api/events"))
        for _ in range(9):
            _, writer = await asyncio.open_connection("127.0.0.1", page.access.port)
            stack.callback(writer.close)
        assert (await owner.get("/")).status_code == 200
        lines = stream.aiter_lines()
        assert [await anext(lines), await anext(lines)] == ["retry: 2000", ""]


async def test_points_of_more_hpas_than_the_bound_are_400() -> None:
    data = PageData(HpaHistory(), cast("IdleWatch", None), cast("ClusterConnection", None))
    explanations = Explanations(connection(SlowCluster()))
    app = application(Streams(PageParts()), explanations, page_files(), data)
    names = [f"chat/h{number}" for number in range(MOST_NAMES + 1)]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://page"
    ) as client:
        assert (await client.get("/api/history", params={"hpa": names[1:]})).status_code == 200
        refused = await client.get("/api/history", params={"hpa": names})
    assert (refused.status_code, refused.json()) == (400, {"error": "name at most 200 HPAs"})
