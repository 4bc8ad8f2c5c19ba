"""What was learned, in a ConfigMap: it survives a restart, and bad text costs only itself."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from adapter.nodepool.act.serverside import Writer
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.stored import NAME, StoredLoads, dump
from apiservice.kube.client import ClusterAnswerError
from apiservice.runtime.steps import at_once
from tests.adapter.server.ahead.service import EXPECTED, Service
from tests.adapter.server.ahead.test_served import NAMES, shared, waves

PATH = f"/api/v1/namespaces/gpu-metrics/configmaps/{NAME}"


class Api:
    """An API server with one ConfigMap."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = None
        self.status = 0
        """Answer with this error; 0 for none."""
        self.writes = 0

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        assert path.partition("?")[0] == PATH
        if self.status:
            raise ClusterAnswerError("no", self.status)
        if method == "PATCH":
            self.writes += 1
            self.data = body["data"]
        elif self.data is None:
            raise ClusterAnswerError("not found", 404)
        return json.dumps({"data": self.data}).encode()


def stored(learner: Learner, api: Api) -> StoredLoads:
    return StoredLoads(learner, Writer(api, lambda: True), "gpu-metrics", 300)


def started_again(service: Service) -> Learner:
    """A new process over the same values."""
    world = service.world
    learner = Learner(world.catalog, world.store, world.index, 0.7)
    world.store.outlook = service.learner = learner
    return learner


@pytest.fixture
def learned() -> Service:
    service = Service(*NAMES)
    for load in islice(waves(), 130):
        service.minute(*shared(load))
    return service


async def test_after_a_restart_the_next_minute_has_the_same_expectation(learned: Service) -> None:
    api = Api()
    await stored(learned.learner, api).write()
    before = learned.pods()
    started_again(learned)
    assert await stored(learned.learner, api).read()
    at_once(learned.learner.round(learned.now))
    learned.pods()
    at_once(learned.learner.round(learned.now))
    assert learned.pods() == before


async def test_what_was_learned_before_the_configmap_was_read_is_added(learned: Service) -> None:
    api = Api()
    await stored(learned.learner, api).write()
    known = learned.load.history
    started_again(learned)
    learned.minute(10, 10, 10, 10, 10, 10)
    await stored(learned.learner, api).read()
    points = learned.load.history.recent
    assert points[:-1] == known.recent
    assert points[-1].pods == 60
    await stored(learned.learner, api).read()
    assert learned.load.history.recent == points


async def test_two_replicas_keep_what_each_of_them_knows(learned: Service) -> None:
    api = Api()
    await stored(learned.learner, api).write()
    known = set(learned.learner.loads)
    other = Service()
    other.minute(20, 30)
    other.minute(20, 30)
    (old,) = known
    other.learner.loads = {old._replace(name="other"): other.load}
    await stored(other.learner, api).write()
    third = started_again(learned)
    await stored(third, api).read()
    assert set(third.loads) == known | {old._replace(name="other")}


@pytest.mark.parametrize("status", [403, 500, 0])
async def test_what_cannot_be_read_is_not_overwritten(learned: Service, status: int) -> None:
    api = Api()
    api.status = status or 403
    store = stored(learned.learner, api)
    await store.write()
    assert api.writes == 0
    assert "configmap" in store.problem.lower()
    api.status = 0
    await store.write()
    assert (api.writes, store.problem) == (1, "")


async def test_lines_that_cannot_be_read_cost_only_themselves(learned: Service) -> None:
    api = Api()
    good = dump(learned.learner.loads)
    bad = json.loads(good) | {"history": "9:x"}
    api.data = {"loads": "\n".join(["{", json.dumps(bad | {"name": "x"}), "[]", good])}
    learner = started_again(learned)
    assert await stored(learner, api).read()
    assert [key.name for key in learner.loads] == ["chat"]


async def test_nothing_is_written_where_nobody_asks() -> None:
    api = Api()
    service = Service()
    service.minute(20, 30, ask=False)
    await stored(service.learner, api).write()
    assert api.writes == 0


def test_the_text_is_bounded_and_keeps_what_was_asked_about_last(
    learned: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = learned.learner.loads
    load = learned.load
    loads = {key._replace(name=f"w{number}"): load for number in range(10)}
    one = len(dump({key: load}))
    monkeypatch.setattr("adapter.server.ahead.stored._BYTES", 3 * one + 10)
    assert len(dump(loads).splitlines()) == 3
    assert EXPECTED.endswith("_expected")
