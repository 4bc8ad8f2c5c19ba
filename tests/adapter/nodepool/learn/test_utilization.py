"""Readings of the GPU pods, and reports of idle GPUs."""

from __future__ import annotations

from typing import Any

from adapter.nodepool.learn.utilization import Utilization
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.metricvalues import MetricValues
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import T0, cluster, deployment, hpa, node, pod

VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team/pods/%2A/gpu_utilization"
NEVER = Limits(gpu_hour_prices={"*": 2.0})


class World:
    def __init__(self, **percent: float) -> None:
        self.api = FakeApi()
        self.set(**percent)
        self.seen = Utilization(MetricValues(self.api))

    def set(self, **percent: float) -> None:
        items = [
            {"describedObject": {"name": name}, "value": str(v)} for name, v in percent.items()
        ]
        self.api.objects[VALUES] = {"items": items}

    async def look(self, objects: ClusterTables, *minutes: int) -> None:
        for minute in minutes:
            await self.seen.look(objects, NEVER.price, (), T0 + minute * 60)


def objects(**pods: Any) -> ClusterTables:
    rows = [pod(name, on="n1", **fields) for name, fields in (pods or {"a": {}, "b": {}}).items()]
    return cluster(nodes=[node("n1")], pods=rows, deployments=[deployment(2)], autoscalers=[hpa()])


async def test_it_reads_once_a_minute_and_immediately_if_the_clock_was_set_back() -> None:
    world = World(a=0, b=50)
    times = (T0, T0 + 59, T0 + 60, T0 - 3600, T0 - 3541, T0 - 3540)
    asked = []
    for time in times:
        await world.seen.look(objects(), NEVER.price, (), time)
        asked.append(len(world.api.asked))
    assert asked == [1, 1, 2, 3, 3, 4]


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
