"""The demo's HPA reads, decides and scales the simulated service."""

from __future__ import annotations

from adapter.demo import story
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.client import Answer
from adapter.demo.world import World
from adapter.hpa import Missing


class Values:
    """Answers every question with what it was given."""

    def __init__(self, values: Answer) -> None:
        self.values = values
        self.asked: list[tuple[str, str, str]] = []

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        self.asked.append((namespace, metric, label_selector))
        return self.values


def chat() -> DemoAutoscaler:
    return DemoAutoscaler(story.HPAS[0])


async def test_busy_pods_scale_out(world: World) -> None:
    values = Values({pod.name: 98_000 for pod in world.fleet.of("chat")})
    sync = await chat().sync(world, values)
    assert values.asked == [("inference", "gpu_utilization", "app=chat")]
    assert (world.wanted["chat"], len(world.fleet.of("chat"))) == (3, 3)
    assert (sync.value, sync.active) == (98.0, True)


async def test_no_value_never_scales_in(world: World) -> None:
    world.scale("chat", 8)
    scaler = chat()
    for _ in range(30):
        world.advance(world.now + 15)
        sync = await scaler.sync(world, Values(Missing("gone")))
        assert not sync.active
        assert sync.value is None
    assert world.wanted["chat"] == 8


async def test_idle_pods_scale_in_after_the_window(world: World) -> None:
    world.scale("chat", 6)
    world.advance(world.now + 60)
    scaler, wanted = chat(), []
    for _ in range(10):
        idle = Values({pod.name: 1_000 for pod in world.fleet.of("chat")})
        await scaler.sync(world, idle)
        wanted.append(world.wanted["chat"])
        world.advance(world.now + 15)
    assert wanted[:6] == [6] * 6
    assert wanted[-1] == 2


async def test_a_pod_that_loads_its_model_counts_as_idle_when_scaling_out(world: World) -> None:
    ready = {pod.name: 100_000 for pod in world.fleet.of("chat")}
    world.scale("chat", 4)
    sync = await chat().sync(world, Values(ready))
    assert "(2 without a value)" in sync.why
    assert world.wanted["chat"] == 4, "100 over four pods is 50: no reason to grow"
