"""Pods find devices, nodes boot for those that do not, and empty ones go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adapter.demo import story
from adapter.demo.fleet import Fleet, Stage
from adapter.demo.hardware import DemoPool
from adapter.demo.world import World

GPU = "nvidia.com/gpu"
POOL = DemoPool(
    "n", GPU, "NVIDIA X", gpus=2, memory_mib=1000, most=3, boot_seconds=60, idle_seconds=100
)


def words(fleet: Fleet, now: float) -> list[str]:
    return [f"{word} {what.name}" for word, what in fleet.step(now)]


def test_a_pod_is_ready_once_its_model_is_loaded() -> None:
    fleet = Fleet((POOL,), 0.0)
    fleet.create("chat", GPU, start_seconds=20, now=0.0)
    pod = fleet.of("chat")[0]
    assert words(fleet, 0.0) == ["booted n-1", f"bound {pod.name}"]
    assert pod.node is fleet.nodes[0]
    assert pod.stage is Stage.STARTING
    assert words(fleet, 19.0) == []
    assert words(fleet, 20.0) == [f"ready {pod.name}"]


def test_a_node_boots_for_pods_without_a_device_and_takes_them_when_it_is_up() -> None:
    fleet = Fleet((POOL,), 0.0)
    for _ in range(4):
        fleet.create("chat", GPU, 20, 0.0)
    assert "booting n-2" in words(fleet, 0.0)
    assert words(fleet, 1.0) == [], "one node is enough for two pods"
    assert [pod.stage for pod in fleet.of("chat")].count(Stage.PENDING) == 2
    changes = words(fleet, 60.0)
    assert "booted n-2" in changes
    assert [pod.stage for pod in fleet.of("chat")].count(Stage.PENDING) == 0


def test_a_pool_stops_growing_at_its_limit() -> None:
    fleet = Fleet((POOL,), 0.0)
    for _ in range(20):
        fleet.create("chat", GPU, 20, 0.0)
    for now in range(300):
        words(fleet, float(now))
    assert len(fleet.nodes) == 3
    assert fleet.boot(POOL, 300.0) is None


def test_a_node_that_is_asked_for_early_is_there_early() -> None:
    fleet = Fleet((POOL,), 0.0)
    node = fleet.boot(POOL, 0.0)
    assert node is not None
    assert not node.ready(59.0)
    assert node.ready(60.0)


def test_an_added_node_goes_when_it_was_empty_long_enough_and_the_first_never() -> None:
    fleet = Fleet((POOL,), 0.0)
    fleet.boot(POOL, 0.0)
    words(fleet, 60.0)
    assert not any("removed" in word for word in words(fleet, 99.0))
    assert sum("removed" in word for word in words(fleet, 170.0)) == 1
    assert words(fleet, 1000.0) == []
    assert len(fleet.nodes) == 1


def test_headroom_is_booted_for_and_not_twice() -> None:
    fleet = Fleet((POOL,), 0.0)
    fleet.headroom = {GPU: 3}
    assert words(fleet, 0.0) == ["booted n-1", "ahead n-2"], "two of three are free"
    assert words(fleet, 1.0) == []
    fleet.headroom = {GPU: 4}
    assert words(fleet, 2.0) == []
    fleet.headroom = {GPU: 5}
    assert words(fleet, 3.0) == ["ahead n-3"]


def test_headroom_keeps_an_empty_node_and_lets_it_go_when_it_goes() -> None:
    fleet = Fleet((POOL,), 0.0)
    fleet.headroom = {GPU: 4}
    words(fleet, 0.0)
    words(fleet, 60.0)
    assert words(fleet, 1000.0) == []
    fleet.headroom = {GPU: 2}
    words(fleet, 1001.0)
    assert [word.split()[0] for word in words(fleet, 1101.0)] == ["removed"]


def test_pods_take_headroom_before_the_node_autoscaler_looks() -> None:
    fleet = Fleet((POOL,), 0.0)
    fleet.headroom = {GPU: 2}
    words(fleet, 0.0)
    fleet.create("chat", GPU, 20, 1.0)
    assert [change for change, _ in fleet.schedule(1.0)] == ["bound"]
    fleet.headroom = {GPU: 1}
    assert words(fleet, 1.0) == [], "the total is the same"


def test_a_deleted_pod_holds_its_device_until_it_has_ended() -> None:
    fleet = Fleet((POOL,), 0.0)
    for _ in range(3):
        fleet.create("chat", GPU, 1, 0.0)
    words(fleet, 0.0)
    first, _, third = fleet.of("chat")
    fleet.delete(first, 10.0)
    words(fleet, 14.0)
    assert third.stage is Stage.PENDING
    assert words(fleet, 15.0)[:2] == [f"gone {first.name}", f"bound {third.name}"]


def test_a_pod_that_never_had_a_device_is_gone_at_once() -> None:
    fleet = Fleet((POOL,), 0.0)
    pod = fleet.create("chat", GPU, 1, 0.0)
    fleet.delete(pod, 0.0)
    assert fleet.pods == {}


@given(
    orders=st.lists(
        st.tuples(st.sampled_from(["chat", "embed"]), st.integers(0, 14), st.integers(1, 40)),
        max_size=25,
    )
)
def test_no_device_ever_serves_two_pods_and_every_wanted_replica_exists(
    orders: list[tuple[str, int, int]],
) -> None:
    world = World(story.POOLS, story.WORKLOADS, seed=1)
    for service, replicas, seconds in orders:
        world.scale(service, replicas)
        assert len(world.fleet.of(service)) == replicas
        world.advance(world.now + seconds)
        held = Counter(
            id(pod.device) for pod in world.fleet.pods.values() if pod.device is not None
        )
        assert all(count == 1 for count in held.values())
        for node in world.fleet.nodes:
            for device in node.devices:
                assert device.pod is None or world.fleet.pods[device.pod].device is device
