"""Histories read back from a Prometheus, through prometheus-api-client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from aiohttp import web

from adapter.config.settings import Settings
from adapter.nodepool.learn.historyqueries import QUERY, read_back, store_of
from adapter.nodepool.model.demand import WorkloadRef
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from tests.adapter.nodepool.manifests import T0

ROW: dict[str, Any] = {
    "metric": {"namespace": "team", "kind": "Deployment", "name": "inference"},
    "values": [[T0 - 120, "2"], [T0 - 60, "4"]],
}


class Store:
    """Answers range queries with what a test sets."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.logins: list[str] = []
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        self.logins.append(request.headers.get("Authorization", ""))
        self.asked.append({key: str(value) for key, value in (await request.post()).items()})
        body: dict[str, Any] = {"status": "success", "data": {"resultType": "matrix"}}
        body["data"]["result"] = [ROW]
        return web.json_response(body, status=self.status)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    fake_store = Store()
    app = web.Application()
    app.router.add_post("/api/v1/query_range", fake_store.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake_store.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake_store
    await runner.cleanup()


async def test_the_last_hours_of_demand_are_restored(store: Store) -> None:
    restored = await read_back(lambda: PrometheusOptions(store.url), T0)
    history = restored[WorkloadRef("team", "Deployment", "inference")]
    assert [point.pods for point in history.recent] == [2, 4]
    (query,) = store.asked
    assert query["query"] == QUERY
    assert float(query["end"]) - float(query["start"]) == 6 * 3600


async def test_a_failing_store_is_logged_and_planning_continues(store: Store) -> None:
    store.status = 503
    with structlog.testing.capture_logs() as logs:
        assert await read_back(lambda: PrometheusOptions(store.url), T0) == {}
    assert [row["event"] for row in logs] == ["no history from Prometheus"]


async def test_the_login_of_the_source_goes_to_its_own_url_only(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("token-of-a-file")
    own = {"url": store.url, "bearer_token_file": tmp_path / "token"}
    past = {"history": {"prometheus_url": store.url}}
    same = Settings.model_validate({"source": {"prometheus": own}, "nodepool": past})
    other = Settings.model_validate(
        {
            "source": {"kind": "prometheus", "prometheus": {**own, "url": "https://other"}},
            "nodepool": past,
        }
    )
    for settings in (same, other):
        assert await read_back(partial(store_of, settings), T0)
    assert store.logins == ["Bearer token-of-a-file", ""]


async def test_a_login_that_cannot_be_read_is_logged(store: Store, tmp_path: Path) -> None:
    own = {"url": store.url, "bearer_token_file": tmp_path / "none"}
    settings = Settings.model_validate(
        {"source": {"prometheus": own}, "nodepool": {"history": {"prometheus_url": store.url}}}
    )
    with structlog.testing.capture_logs() as logs:
        assert await read_back(partial(store_of, settings), T0) == {}
    assert "bearer_token_file" in logs[0]["error"]
    assert store.asked == []


async def test_what_is_left_out_of_a_history_is_logged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ROW, "values", [[T0 - 60, "2"], [1e12, "3"]])
    with structlog.testing.capture_logs() as logs:
        restored = await read_back(lambda: PrometheusOptions(store.url), T0)
    assert [point.pods for history in restored.values() for point in history.recent] == [2]
    assert logs[0]["left_out"] == {"bad_value": 1}
