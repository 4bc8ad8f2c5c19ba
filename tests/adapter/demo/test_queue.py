"""The same service scaled on its queue, beside the one scaled on utilization."""

from __future__ import annotations

import json

import pytest

from adapter.demo import days, serverpage, story
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.captions import CAPTIONS
from adapter.demo.client import Answer
from adapter.demo.manifests import pods, server_name
from adapter.demo.nodepool import DemoNodepool
from adapter.demo.service import Totals
from adapter.demo.state import DemoState
from adapter.demo.wallclock import WallClock
from adapter.demo.world import World
from adapter.hpa import Missing
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.podsfile import parse
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import ScrapeTarget


@pytest.fixture
def queued() -> World:
    return World(story.ON_QUEUE.pools, story.ON_QUEUE.workloads, seed=7)


async def test_on_the_queue_the_same_requests_take_less_time_on_most_days() -> None:
    earlier = await days.live(story.EARLIER_DAYS, 7, -story.BEFORE)
    totals: dict[str, list[Totals]] = {}
    for seed in (7, 8, 9):
        for setup in (story.ON_QUEUE, story.WITH_NODEPOOL):
            world = World(setup.pools, setup.workloads, seed, -story.BEFORE)
            nodepool = DemoNodepool(story.LIMITS, story.BEGIN, earlier.past)
            await days.play(world, setup.hpas, nodepool, story.LENGTH)
            totals.setdefault(setup.namespace, []).append(world.services["chat"].totals)
    queue, utilization = totals.values()
    assert [day.arrived for day in queue] == [day.arrived for day in utilization]
    assert sum(day.seconds for day in queue) < 0.7 * sum(day.seconds for day in utilization)


def test_the_page_has_what_the_replica_holds(queued: World) -> None:
    pod = queued.fleet.of("chat")[0].name
    assert b'vllm:num_requests_running{engine="0",model_name="simulated"} 0\n' in serverpage.render(
        queued, pod
    )
    queued.advance(120)
    for _ in range(60):
        queued.advance(queued.now + 1)
    page = serverpage.render(queued, pod).decode()
    assert 'num_requests_running{engine="0",model_name="simulated"} 1' in page
    assert 'num_requests_waiting{engine="0",model_name="simulated"} 3' in page
    with pytest.raises(KeyError):
        serverpage.render(queued, "gone")


def test_serve_finds_the_page_of_each_pod_that_has_one(queued: World) -> None:
    space = story.ON_QUEUE.namespace
    one, two = (pod.name for pod in queued.fleet.of("chat"))
    ports = {server_name(space, one): 4001, server_name("other", two): 4002}
    text = json.dumps({"items": pods(queued, space, {}, WallClock(15), ports)}).encode()
    pages = [ServerPages().of(pod) for pod in parse(text, PodDecoder()).pods]
    targets = [target for target in pages if isinstance(target, ScrapeTarget)]
    assert [target.url for target in targets] == ["http://127.0.0.1:4001/metrics"]


class Full:
    """Every server is busy and has two requests waiting."""

    def __init__(self, world: World, *, silent: str = "") -> None:
        self._world, self._silent = world, silent

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        if metric == self._silent:
            return Missing("gone")
        value = {story.RUNNING: 700, story.WAITING: 2000}[metric]
        return {pod.name: value for pod in self._world.fleet.of("chat")}


async def test_the_metric_that_asks_for_most_decides_and_is_named(queued: World) -> None:
    scaler = DemoAutoscaler(story.ON_QUEUE.hpas[0])
    sync = await scaler.sync(queued, Full(queued))
    assert sync.why == "inference_requests_waiting 2 is over the target of 1: wants 4"
    assert queued.wanted["chat"] == 4


async def test_while_a_metric_is_missing_the_other_one_decides(queued: World) -> None:
    scaler = DemoAutoscaler(story.ON_QUEUE.hpas[0])
    sync = await scaler.sync(queued, Full(queued, silent=story.WAITING))
    assert sync.why == (
        "inference_requests_running 0.7 is the target (2 without a value): stays at 2"
    )
    assert queued.wanted["chat"] == 2


async def test_captions_that_compare_are_made_from_the_run(state: DemoState) -> None:
    texts = [caption.say(state) for caption in CAPTIONS]
    state.queued.world.scale("chat", 9)
    again = [caption.say(state) for caption in CAPTIONS]
    changed = [new for old, new in zip(texts, again, strict=True) if old != new]
    assert len(changed) == 1
    assert "on its queue: 9 pods, " in changed[0]
    assert f"utilization: {state.world.wanted['chat']} pods, " in changed[0]
    assert [caption.at for caption in CAPTIONS] == sorted(caption.at for caption in CAPTIONS)
