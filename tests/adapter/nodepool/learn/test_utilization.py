"""Reports of idle GPUs, and deletion costs when a scale-in is likely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import structlog.testing

from adapter.hpa import Values
from adapter.nodepool.act.deletioncosts import DeletionCosts
from adapter.nodepool.act.serverside import Writer
from adapter.nodepool.learn.utilization import Utilization
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.names import DELETION_COST, MANAGER
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.metricvalues import MetricValues
from adapter.nodepool.seen.targets import pods_by_workload, targets
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import T0, cluster, deployment, hpa, node, pod

VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team/pods/%2A/gpu_utilization"
REF = WorkloadRef("team", "Deployment", "inference")
LOW: Mapping[WorkloadRef, tuple[Values, ...]] = {REF: ({"a": 0, "b": 20_000},)}
HIGH: Mapping[WorkloadRef, tuple[Values, ...]] = {REF: ({"a": 80_000, "b": 80_000},)}
NEVER = Limits(gpu_hour_prices={"*": 2.0})


class World:
    def __init__(self, **percent: float) -> None:
        self.api = FakeApi()
        self.set(**percent)
        self.writer = Writer(self.api, lambda: True)
        self.seen = Utilization(MetricValues(self.api))
        self.costs = DeletionCosts(self.writer)

    def set(self, **percent: float) -> None:
        items = [
            {"describedObject": {"name": name}, "value": str(v)} for name, v in percent.items()
        ]
        self.api.objects[VALUES] = {"items": items}

    async def look(self, objects: ClusterTables, *minutes: int) -> None:
        for minute in minutes:
            await self.seen.look(objects, NEVER.price, (), T0 + minute * 60)

    async def write(
        self, objects: ClusterTables, values: Mapping[WorkloadRef, tuple[Values, ...]] = LOW
    ) -> dict[str, Any]:
        """Pod -> the annotations that were applied to it."""
        rows = targets(objects, pods_by_workload(objects.pods)).targets
        before = len(self.api.sent)
        await self.costs.write(objects, rows, values, self.seen.smoothed)
        return {
            path.rpartition("/")[2]: body["metadata"]["annotations"]
            for _, path, body in self.api.sent[before:]
        }


def objects(**pods: Any) -> ClusterTables:
    rows = [pod(name, on="n1", **fields) for name, fields in (pods or {"a": {}, "b": {}}).items()]
    return cluster(nodes=[node("n1")], pods=rows, deployments=[deployment(2)], autoscalers=[hpa()])


async def test_it_reads_once_a_minute_and_immediately_if_the_clock_was_set_back() -> None:
    world = World(a=0, b=50)
    times = (T0, T0 + 59, T0 + 60, T0 - 3600, T0 - 3541, T0 - 3540)
    looked = [await world.seen.look(objects(), NEVER.price, (), time) for time in times]
    assert looked == [True, False, True, True, False, True]


async def test_an_idle_gpu_is_reported_with_its_cost() -> None:
    world = World(a=0, b=50)
    await world.look(objects(), *range(16))
    (row,) = world.seen.idle
    assert (row.pod.name, row.pod.gpus, row.since) == ("a", 1, T0)
    assert (row.gpu_hours, row.cost) == (0.25, 0.5)


async def test_a_pod_without_a_reading_is_not_idle() -> None:
    world = World(b=50)
    await world.look(objects(), *range(20))
    assert world.seen.idle == ()


async def test_it_reads_once_a_minute() -> None:
    world = World(a=0)
    for second in (0, 15, 59, 60, 61):
        await world.seen.look(objects(), NEVER.price, (), T0 + second)
    assert len(world.api.asked) == 2


async def test_the_idle_pod_has_the_lowest_cost_when_a_scale_in_is_likely() -> None:
    world = World(a=0, b=60)
    await world.look(objects(), 0)
    written = await world.write(objects())
    assert int(written["a"][DELETION_COST]) < int(written["b"][DELETION_COST])


async def test_no_cost_is_written_without_a_likely_scale_in() -> None:
    world = World(a=0, b=60)
    await world.look(objects(), 0)
    assert await world.write(objects(), HIGH) == {}


OURS = [
    {
        "manager": MANAGER,
        "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{DELETION_COST}": {}}}},
    }
]


async def test_costs_are_removed_after_the_scale_in() -> None:
    world = World(a=0, b=60)
    mine = {"annotations": {DELETION_COST: "5"}, "managedFields": OURS}
    seen = objects(a=mine, b={})
    await world.look(seen, 0)
    assert await world.write(seen, HIGH) == {"a": {}}


async def test_a_workload_with_another_writer_is_left_alone_and_logged_once() -> None:
    world = World(a=0, b=60)
    theirs = [OURS[0] | {"manager": "karpenter"}]
    fields = {"annotations": {DELETION_COST: "5"}, "managedFields": theirs}
    seen = objects(a=fields, b={})
    await world.look(seen, 0)
    with structlog.testing.capture_logs() as logs:
        assert await world.write(seen) == {}
        assert await world.write(seen) == {}
    assert [row["event"] for row in logs] == ["deletion costs are managed by another writer"]


@pytest.mark.parametrize("status", [403, 409, 0])
async def test_a_cost_that_cannot_be_written_is_logged_once(status: int) -> None:
    world = World(a=0, b=60)
    await world.look(objects(), 0)
    world.api.fail("PATCH", "/pods/", status)
    with structlog.testing.capture_logs() as logs:
        await world.write(objects())
        await world.write(objects())
    assert [row["event"] for row in logs] == ["deletion cost not written"]
