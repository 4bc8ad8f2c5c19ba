"""The number of pods that should have a value, and that have one."""

from __future__ import annotations

import asyncio

import pytest

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.store.snapshot import Snapshot
from adapter.server.serve.coverage import Coverage
from apiservice.runtime import steps
from tests.adapter.world import World, make_pod, row

T0 = 1000.0
UTIL = "DCGM_FI_DEV_GPU_UTIL"


class Known:
    """The contents of a world's store."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def snapshot(self) -> Snapshot:
        return self._world.store.snapshot

    @property
    def version(self) -> int:
        return self._world.store.version


def coverage(*pods: Pod, page: str = "") -> Coverage:
    world = World(*pods)
    if page:
        world.scrape(page, T0, node="n")
    index = PodIndex()
    index.replace(pods)
    return Coverage(Known(world), index, world.store.attributions, lambda: T0)


async def test_pods_are_counted_with_and_without_a_value() -> None:
    counts = await coverage(
        make_pod("busy", node="n"), make_pod("silent", node="n"), page=row(UTIL, 80, "busy")
    ).count()
    assert (counts.pods, counts.measured, dict(counts.missing)) == (
        2,
        1,
        {"device_named_for_other_pod": 1},
    )


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("p", node="n", gpus={}), "it asks for no GPU"),
        (make_pod("p", phase="Pending", ready=False), "it is on no node yet"),
        (make_pod("p", node="n", ready=False), "its model loads"),
        (make_pod("p", node="n", phase="Succeeded"), "it is over"),
        (make_pod("p", node="n", deleting=True), "it is being deleted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_pod_without_an_expected_value_is_not_counted_as_missing(
    pod: Pod, why: str
) -> None:
    counts = await coverage(pod).count()
    assert counts.pods == 0, why


@pytest.mark.parametrize(("gpus", "missing"), [({"nvidia.com/gpu": 1}, 200), ({}, 0)])
async def test_other_tasks_run_while_a_large_fleet_is_counted(
    gpus: dict[str, int], missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "SLICE", 0.0)
    counting = coverage(*(make_pod(f"p{n}", node="n", gpus=gpus) for n in range(200)))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    assert (await counting.count()).missing.total() == missing
    task.cancel()
    assert turns >= 200


async def test_counts_are_absent_before_the_first_count() -> None:
    assert coverage(make_pod("p", node="n")).last is None
