"""The world is its seed, its story and the scaling that was asked for."""

from __future__ import annotations

import statistics

import pytest

from adapter.demo import story
from adapter.demo.fleet import Stage
from adapter.demo.world import World


def play(seed: int, replicas: int = 4) -> tuple[object, ...]:
    world = World(story.POOLS, story.WORKLOADS, seed)
    world.scale("chat", replicas)
    world.advance(240.0)
    names = tuple(world.fleet.pods)
    busy = tuple(d.busy for node in world.fleet.nodes for d in node.devices)
    return names, busy, world.services["chat"].totals, tuple(world.take_events())


def utilisation(world: World, name: str) -> float:
    """Mean busy share of the service's ready replicas."""
    ready = [pod for pod in world.fleet.of(name) if pod.stage is Stage.READY]
    return statistics.mean(pod.device.busy for pod in ready if pod.device)


def test_the_same_seed_gives_the_same_world() -> None:
    assert play(3) == play(3)
    assert play(3) != play(4)


def test_one_services_replicas_do_not_change_another_services_load() -> None:
    few, many = (World(story.POOLS, story.WORKLOADS, seed=5) for _ in range(2))
    many.scale("chat", 8)
    for world in (few, many):
        world.advance(120.0)
    assert few.services["embed"].totals == many.services["embed"].totals


def test_scaling_out_lowers_utilisation_and_the_queue() -> None:
    few, many = (World(story.POOLS, story.WORKLOADS, seed=5) for _ in range(2))
    many.scale("chat", 8)
    few.advance(150.0)
    many.advance(150.0)
    assert utilisation(many, "chat") < utilisation(few, "chat")
    assert many.services["chat"].queue < few.services["chat"].queue


def test_scaling_in_keeps_the_replicas_that_serve_and_the_oldest_of_them(world: World) -> None:
    oldest = [pod.name for pod in world.fleet.of("chat")]
    world.scale("chat", 12)
    world.advance(world.now + 10)
    assert world.stages("chat") == {Stage.READY: 2, Stage.STARTING: 2, Stage.PENDING: 8}
    world.scale("chat", 2)
    assert [pod.name for pod in world.fleet.of("chat")] == oldest


def test_nothing_serves_when_scaled_to_zero(world: World) -> None:
    world.scale("chat", 0)
    world.advance(world.now + 30)
    assert world.stages("chat") == {}
    assert world.services["chat"].queue > 0


def test_time_advances_in_whole_steps() -> None:
    world = World(story.POOLS, story.WORKLOADS, seed=1)
    world.advance(2.9)
    assert world.now == 2.0
    world.advance(3.0)
    assert world.now == 3.0


@pytest.mark.parametrize("outage", story.OUTAGES)
def test_an_outage_is_longer_than_the_age_limit_so_that_values_run_out(
    outage: story.Outage,
) -> None:
    assert outage.end - outage.start > 65 + 15
    assert outage.covers(outage.start)
    assert not outage.covers(outage.end)
    assert outage.covers(story.LENGTH + outage.start)


def test_gpus_are_paid_for_from_a_nodes_order_even_if_idle() -> None:
    world = World(story.POOLS, story.WORKLOADS, seed=1)
    world.advance(10.0)
    assert world.paid_seconds == {"h100": 40.0, "mig": 10.0}
    world.scale("chat", 5)
    world.advance(20.0)
    assert world.paid_seconds["h100"] == 40.0 + 80.0, "a second node boots"


def test_every_pod_is_remembered_with_its_times(world: World) -> None:
    before = len(world.created["chat"])
    world.scale("chat", 5)
    world.scale("chat", 4)
    assert [(pod.bound, pod.deleted) for pod in world.created["chat"][before:]] == [
        (0.0, None),
        (0.0, None),
        (None, 0.0),
    ]
