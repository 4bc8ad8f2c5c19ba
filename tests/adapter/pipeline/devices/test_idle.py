"""Since when a device is idle: no field shows work, regardless of who has it."""

from __future__ import annotations

import pytest

from adapter.server.serve.coverage import Coverage
from apiservice.runtime.steps import at_once
from tests.adapter.pipeline.devices.test_plausibility import (
    AT_REST,
    ENGINE,
    POWER,
    SM,
    UTIL,
    Fields,
    page,
)
from tests.adapter.server.serve.test_coverage import Known
from tests.adapter.world import World, make_pod

MIG = 'GPU_I_ID="1",GPU_I_PROFILE="1g.10gb"'


def idle_since(world: World, now: float = 0.0) -> dict[str, tuple[float, bool]]:
    return dict(at_once(world.store.snapshot.idle_devices(now)))


def scraped(world: World, fields: Fields, times: range, pod: str = "p", more: str = "") -> World:
    for time in times:
        world.scrape(page(fields, pod, more=more), float(time))
    return world


WORK = {
    "utilisation": {UTIL: 1},
    "an engine": {ENGINE: 0.02},
    "a decoder": {"DCGM_FI_DEV_DEC_UTIL": 3},
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_device_is_idle_from_the_first_window_without_work(work: Fields) -> None:
    world = scraped(World(make_pod("p")), AT_REST | work, range(0, 60, 5))
    assert idle_since(world) == {}
    scraped(world, AT_REST, range(60, 300, 5))
    since, held = idle_since(world)["GPU-0"]
    assert 60 <= since <= 95
    assert held


def test_work_ends_it() -> None:
    world = scraped(World(make_pod("p")), AT_REST, range(0, 100, 5))
    assert idle_since(world)
    scraped(world, AT_REST | {UTIL: 40, ENGINE: 0.3}, range(100, 105, 5))
    assert idle_since(world) == {}


def test_a_change_of_the_pod_does_not_end_it() -> None:
    world = scraped(World(make_pod("p"), make_pod("q")), AT_REST, range(0, 100, 5), pod="")
    assert idle_since(world)["GPU-0"] == (0.0, False)
    scraped(world, AT_REST, range(100, 200, 5), pod="q")
    assert idle_since(world)["GPU-0"] == (0.0, True)


def test_a_mig_instance_is_idle_by_its_counters() -> None:
    fields = {ENGINE: 0.0, SM: 0.0}
    world = scraped(World(make_pod("p")), fields, range(0, 60, 5), more=MIG)
    assert list(idle_since(world).values()) == [(0.0, True)]


@pytest.mark.parametrize("fields", [{UTIL: 0}, {UTIL: 0, POWER: 60}], ids=["alone", "with power"])
def test_utilisation_of_0_is_enough(fields: Fields) -> None:
    assert idle_since(scraped(World(make_pod("p")), fields, range(0, 60, 5)))


def test_a_device_without_a_field_of_work_is_not_idle() -> None:
    assert idle_since(scraped(World(make_pod("p")), {POWER: 60}, range(0, 60, 5))) == {}


def test_a_counter_that_is_stuck_at_0_shows_no_idle_device() -> None:
    busy = {UTIL: 100, ENGINE: 0.0, SM: 0.0, POWER: 300}
    assert idle_since(scraped(World(make_pod("p")), busy, range(0, 200, 5))) == {}


async def test_idle_devices_are_counted_by_length_and_by_whether_a_pod_has_them() -> None:
    world = scraped(World(make_pod("p")), AT_REST, range(0, 700, 5))
    coverage = Coverage(Known(world), world.index, world.store.attributions, lambda: 700.0)
    await coverage.look()
    assert coverage.idle["true", "10m"] == 1
    assert sum(coverage.idle.values()) == 1


def test_a_silent_exporter_shows_no_idle_device() -> None:
    world = scraped(World(make_pod("p")), AT_REST, range(0, 60, 5))
    assert idle_since(world, 100.0)
    assert idle_since(world, 200.0) == {}
