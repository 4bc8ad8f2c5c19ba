"""The names of devices as objects: short, valid, and unique."""

from __future__ import annotations

import re

import pytest

from adapter.answers.view.devices import Devices
from adapter.answers.view.gpus import GPUS
from apiservice.runtime.steps import at_once
from apiservice.view.resource import Key
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.pages.scene import Scene, every_scene
from tests.adapter.pages.test_pages import SCENES
from tests.adapter.world import World, make_pod

UTIL = "DCGM_FI_DEV_GPU_UTIL"


def _named(labels: str, *, node: str | None = None, origin: str = "http://exporter") -> list[str]:
    world = World(make_pod("p", node="n1"))
    world.scrape(f"{UTIL}{{{labels}}} 1\n", 100.0, node=node, origin=origin)
    return Viewer(world).gpus.names()


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ('gpu="3",UUID="GPU-1"', "n1.gpu3"),
        ('gpu="3",UUID="GPU-1",GPU_I_ID="7",GPU_I_PROFILE="1g.5gb"', "n1.gpu3.mig7"),
        ('gpu="3",UUID="GPU-1",GPU_I_ID="7",GPU_CI_ID="1"', "n1.gpu3.mig7-1"),
        ('gpu="3",UUID="GPU-1",dra_mig_device_uuid="MIG-AB"', "n1.gpu3.mig-ab"),
        ('UUID="GPU-AB"', "gpu-ab"),
        ('gpu="3"', "n1.gpu3"),
    ],
)
def test_a_name_has_the_node_the_number_and_the_instance(labels: str, name: str) -> None:
    assert _named(labels, node="n1") == [name]


def test_without_a_node_the_name_is_the_devices_id() -> None:
    assert _named('gpu="3",UUID="GPU-AB"') == ["gpu-ab"]
    assert _named('gpu="3"', origin="http://10.0.0.7:9400/metrics") == [
        "http-10.0.0.7-9400-metrics-3"
    ]


def test_partitions_of_other_vendors_have_a_name_too() -> None:
    page = (
        'gpu_gfx_activity{gpu_id="2",gpu_uuid="a",gpu_partition_id="1",'
        'gpu_compute_partition_type="cpx"} 5\n'
        'xpum_power_watts{dev_file="card1",uuid="b"} 90\n'
    )
    world = World(make_pod("p", node="n1"))
    world.scrape(page, 100.0, node="n1")
    assert Viewer(world).gpus.names() == ["n1.card1", "n1.gpu2.part1"]


def test_a_partition_with_a_uuid_of_its_own_is_named_by_its_number() -> None:
    world = World()
    page = (
        'gpu_gfx_busy_instantaneous{gpu_id="5",gpu_uuid="u-5",gpu_partition_id="5",hostname="n1",'
        'gpu_compute_partition_type="cpx",serial_number="692503008214"} 5\n'
    )
    world.scrape(page, 100.0, node="n1")
    assert Viewer(world).gpus.names() == ["n1.gpu5.part5"]


def test_two_devices_with_one_name_have_their_ids_as_names() -> None:
    world = World(make_pod("p", node="n1"))
    page = "".join(f'{UTIL}{{gpu="0",UUID="GPU-{letter}"}} 1\n' for letter in "AB")
    world.scrape(page, 100.0, node="n1")
    assert Viewer(world).gpus.names() == ["gpu-a", "gpu-b"]


def test_a_device_of_two_exporters_is_one_object() -> None:
    world = World(make_pod("p", node="n1"))
    for origin, node in (("http://a", "n1"), ("http://b", None)):
        world.scrape(f'{UTIL}{{gpu="0",UUID="GPU-A"}} 1\n', 100.0, origin=origin, node=node)
    gpus = Viewer(world).gpus
    assert gpus.names() == ["n1.gpu0"]
    assert gpus.get("n1.gpu0", 100.0)["exporters"] == ["http://a", "http://b"]


def test_names_that_differ_only_in_foreign_characters_stay_apart() -> None:
    world = World(make_pod("p", node="n1"))
    page = "".join(f'{UTIL}{{UUID="{uuid}"}} 1\n' for uuid in ("a b", "a/b", "A_b", "//"))
    world.scrape(page, 100.0)
    gpus = Viewer(world).gpus
    names = gpus.names()
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name) for name in names)
    assert {gpu["uuid"] for gpu in gpus.every(100.0)} == {"a b", "a/b", "A_b", "//"}


def test_names_stay_while_values_change_and_go_with_their_device() -> None:
    world = World(make_pod("p", node="n1"))
    devices = Devices()
    world.scrape(f'{UTIL}{{gpu="0",UUID="GPU-A"}} 1\n', 100.0, node="n1")
    at_once(devices.refresh(world.store.snapshot))
    before = devices.keys
    world.scrape(f'{UTIL}{{gpu="0",UUID="GPU-A"}} 2\n', 105.0, node="n1")
    at_once(devices.refresh(world.store.snapshot))
    assert devices.keys is before
    world.scrape(f'{UTIL}{{gpu="1",UUID="GPU-B"}} 2\n', 900.0, node="n1")
    at_once(devices.refresh(world.store.snapshot))
    assert [key.name for key in devices.keys] == ["n1.gpu1"]
    assert devices.get("n1.gpu0") is None


@pytest.mark.parametrize("scene", every_scene(SCENES))
def test_every_device_of_a_page_is_listed_once(scene: Scene) -> None:
    world = scene.build()
    snapshot = world.store.snapshot
    reported = {
        series.device
        for state in snapshot.states.values()
        for series in state.all_series.values()
        if not series.serves and not series.sees
    }
    boards = {device.board for device in reported if device.mig}
    expected = {device.id for device in reported} - boards
    uuids = [gpu["uuid"] for gpu in Viewer(world).gpus.every(scene.now)]
    assert sorted(uuids) == sorted(expected)


def test_many_devices_are_named_in_steps_and_only_once() -> None:
    world = World(make_pod("p", node="n1"))
    for node in range(40):
        page = "".join(f'{UTIL}{{gpu="{gpu}",UUID="GPU-{node}-{gpu}"}} 1\n' for gpu in range(16))
        world.scrape(page, 100.0, origin=f"http://{node}", node=f"n{node}")
    devices = Devices()
    first = list(devices.refresh(world.store.snapshot))
    assert len(devices.keys) == 640
    assert len(first) > 640 / 64
    assert list(devices.refresh(world.store.snapshot)) == []
    assert devices.keys == sorted(devices.keys, key=GPUS.order)


def test_the_gpus_of_a_node_are_listed_by_number_also_in_pages() -> None:
    world = World(make_pod("p", node="n1"))
    page = "".join(f'{UTIL}{{gpu="{n}",UUID="GPU-{n}"}} 1\n' for n in (10, 2, 11, 0, 1))
    world.scrape(page, 100.0, node="n1")
    gpus = Viewer(world).gpus
    names = [f"n1.gpu{n}" for n in (0, 1, 2, 10, 11)]
    assert gpus.names() == names
    places = [GPUS.order(Key("", name)) for name in names]
    assert places == sorted(places)


def test_the_devices_of_a_pod_are_listed_by_number() -> None:
    world = World(make_pod("p", node="n1", gpus={"nvidia.com/gpu": 3}))
    page = "".join(
        f'{UTIL}{{gpu="{n}",UUID="GPU-{20 - n}",namespace="ml",pod="p",container="c"}} 1\n'
        for n in (10, 2, 1)
    )
    world.scrape(page, 100.0, node="n1")
    viewer = Viewer(world)
    viewer.gpus.names()
    pod = viewer.pods.get("p", 100.0)
    assert [row["gpu"] for row in pod["devices"]] == ["n1.gpu1", "n1.gpu2", "n1.gpu10"]
