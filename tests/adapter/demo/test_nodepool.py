"""The demo's nodepool learns and orders through the real plan, and pods wait less for it."""

from __future__ import annotations

import copy
import math

import pytest

from adapter.demo import days, story
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.client import Answer
from adapter.demo.days import DirectReader
from adapter.demo.nodepool import DemoNodepool, Past, grows
from adapter.demo.world import World
from adapter.hpa import Missing
from adapter.nodepool.plan.limits import Limits


class Values:
    """Answers every question with what it was given."""

    def __init__(self, values: Answer) -> None:
        self.values = values

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        return self.values


def scalers() -> list[DemoAutoscaler]:
    return [DemoAutoscaler(manifest) for manifest in story.HPAS]


def slow_scalers() -> list[DemoAutoscaler]:
    """They may add one pod in a sync."""
    rules = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}
    manifests = copy.deepcopy(list(story.HPAS))
    for manifest in manifests:
        manifest["spec"]["behavior"]["scaleUp"] = rules
    return [DemoAutoscaler(manifest) for manifest in manifests]


async def rounds(
    world: World, nodepool: DemoNodepool, values: Answer, mine: list[DemoAutoscaler] | None = None
) -> None:
    mine = mine or scalers()
    for scaler in mine:
        await scaler.sync(world, Values(values))
    nodepool.round(world, mine)


async def test_what_a_metric_asks_for_is_ordered_beyond_what_the_hpa_may_add(world: World) -> None:
    """4 pods at 160 of 70 want 10; the HPA has set 5, and will set 6."""
    world.scale("chat", 4)
    world.advance(world.now + 30)
    busy = {pod.name: 160_000 for pod in world.fleet.of("chat")}
    nodepool = DemoNodepool(Limits(share=0), story.BEGIN, Past())
    await rounds(world, nodepool, busy, slow_scalers())
    assert nodepool.peaks == {"chat": 10}
    assert [order.replicas for order in nodepool.orders] == [4]
    assert world.fleet.headroom == {
        "nvidia.com/gpu": nodepool.orders[0].replicas,
        "nvidia.com/mig-1g.10gb": 0,
    }


async def test_a_pool_that_cannot_grow_gets_no_headroom(world: World) -> None:
    assert grows(world, "chat")
    assert not grows(world, "embed")
    nodepool = DemoNodepool(Limits(min_pods=2, share=0), story.BEGIN, Past())
    await rounds(world, nodepool, {pod.name: 60_000 for pod in world.fleet.pods.values()})
    assert {workload.name for order in nodepool.orders for workload in order.workloads} == {"chat"}


async def test_without_a_value_nothing_is_learned_and_nothing_ordered(world: World) -> None:
    nodepool = DemoNodepool(Limits(share=0), story.BEGIN, Past())
    await rounds(world, nodepool, Missing("gone"))
    assert nodepool.past.histories == {}
    assert [order.replicas for order in nodepool.orders] == [0]


async def test_boots_are_learned_from_nodes_that_came_up(world: World) -> None:
    nodepool = DemoNodepool(Limits(share=0), story.BEGIN, Past())
    world.scale("chat", 6)
    for _ in range(8):
        world.advance(world.now + 15)
        await rounds(world, nodepool, Missing("none"))
    assert nodepool.past.boots.p90("h100") == 90.0
    assert nodepool.past.boots.p90("mig") is None, "its node was there from the start"


async def test_a_change_of_headroom_is_reported_with_its_reason(world: World) -> None:
    nodepool = DemoNodepool(Limits(min_pods=2, share=0), story.BEGIN, Past())
    world.take_events()
    await rounds(world, nodepool, {pod.name: 60_000 for pod in world.fleet.pods.values()})
    (event,) = (event for event in world.take_events() if event.about == "nodepool")
    assert event.text == "headroom of chat 0 -> 2: the minimum headroom is 2 pods"


async def test_a_reader_averages_what_the_devices_did_and_knows_no_loading_pod() -> None:
    world = World(story.POOLS, story.WORKLOADS, seed=3)
    reader = DirectReader(world)
    assert isinstance(await reader.pods("n", "gpu_utilization", "app=chat"), Missing)
    shares = []
    for _ in range(2):
        world.advance(world.now + 5)
        reader.scrape()
        shares.append(device_busy(world))
    world.scale("chat", 3)
    values = await reader.pods("n", "gpu_utilization", "app=chat")
    first, second, _ = (pod.name for pod in world.fleet.of("chat"))
    assert isinstance(values, dict)
    assert set(values) == {first, second}
    assert values[first] == pytest.approx(100_000 * sum(shares) / 2, abs=1)


def device_busy(world: World) -> float:
    device = world.fleet.of("chat")[0].device
    assert device is not None
    return device.busy


async def test_earlier_days_have_other_seeds_and_leave_their_past() -> None:
    lived = await days.live(2, seed=7, start=-30.0)
    assert lived.seeds == (9, 8)
    assert [set(day) for day in lived.peaks] == [{"chat"}, {"chat"}]
    (history,) = lived.past.histories.values()
    assert [day.number for day in history.days] == [
        math.floor(story.BEGIN / days.DAY) - before for before in (2, 1)
    ]
    assert lived.past.boots.p90("h100") == 90.0


async def test_no_earlier_day_is_nothing_learned() -> None:
    lived = await days.live(0, seed=7, start=-30.0)
    assert (lived.past, lived.peaks, lived.seeds) == (Past(), (), ())


@pytest.mark.parametrize("seed", [7, 8, 21])
async def test_pods_wait_less_where_nodes_are_ordered_ahead_and_the_load_is_the_same(
    seed: int,
) -> None:
    lived = await days.live(story.EARLIER_DAYS, seed, -story.BEFORE)
    nodepool = DemoNodepool(story.LIMITS, story.BEGIN, lived.past)
    ahead = World(story.POOLS, story.WORKLOADS, seed, -story.BEFORE)
    reactive = World(story.REACTIVE.pools, story.REACTIVE.workloads, seed, -story.BEFORE)
    await days.play(ahead, story.HPAS, nodepool, story.LENGTH)
    await days.play(reactive, story.REACTIVE.hpas, None, story.LENGTH)
    assert ahead.services["chat"].totals.arrived == reactive.services["chat"].totals.arrived
    waited, usual = (run.waiting_seconds("chat") for run in (ahead, reactive))
    assert usual > 300
    assert waited < usual / 2
    assert ahead.paid_seconds["h100"] < 12 * (story.LENGTH + story.BEFORE)
