"""A small world, for tests that need one but not the whole story."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.demo import story
from adapter.demo.ahead import ExpectedReader
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.client import Answer, Tally
from adapter.demo.days import Days
from adapter.demo.exporters import Exporters
from adapter.demo.nodepool import DemoNodepool, Past
from adapter.demo.promise import PromiseReader
from adapter.demo.state import DemoCluster, DemoState, OutagePlayed
from adapter.demo.wallclock import WallClock
from adapter.demo.world import DemoEvent, World
from adapter.hpa import Missing
from adapter.nodepool.plan.limits import Limits
from adapter.server.ahead.workloadload import WorkloadLoad


@pytest.fixture
def world() -> World:
    """The story's cluster after half a minute."""
    world = World(story.POOLS, story.WORKLOADS, seed=7, start=-30.0)
    world.advance(0.0)
    return world


class Busy:
    """Chat is busy, embed has no values."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        if label_selector == "app=embed":
            return Missing("no metrics")
        return {pod.name: 98_000 for pod in self._world.fleet.of("chat")}


@pytest.fixture
async def state(world: World) -> DemoState:
    exporters = Exporters(lambda node: f"page of {node}\n".encode())
    exporters.dead.add("mig-1")
    reactive = World(story.REACTIVE.pools, story.REACTIVE.workloads, seed=7, start=-30.0)
    queued = World(story.ON_QUEUE.pools, story.ON_QUEUE.workloads, seed=7, start=-30.0)
    promised = World(story.ON_PROMISE.pools, story.ON_PROMISE.workloads, seed=7, start=-30.0)
    expected = World(story.ON_EXPECTED.pools, story.ON_EXPECTED.workloads, seed=7, start=-30.0)
    research = World(story.RESEARCH.pools, story.RESEARCH.workloads, seed=7, start=-30.0)
    team = [DemoAutoscaler(manifest) for manifest in story.RESEARCH.hpas]
    nodepool = DemoNodepool(Limits(min_pods=2, share=0), story.BEGIN, Past())
    scalers = [DemoAutoscaler(manifest) for manifest in story.HPAS]
    others = [DemoAutoscaler(manifest) for manifest in story.REACTIVE.hpas]
    state = DemoState(
        shown=DemoCluster(story.NAMESPACE, world, scalers, nodepool),
        reactive=DemoCluster(story.REACTIVE.namespace, reactive, others),
        queued=DemoCluster(
            story.ON_QUEUE.namespace,
            queued,
            [DemoAutoscaler(manifest) for manifest in story.ON_QUEUE.hpas],
            DemoNodepool(Limits(share=0), story.BEGIN, Past()),
            server_pages=True,
        ),
        promised=DemoCluster(
            story.ON_PROMISE.namespace,
            promised,
            [DemoAutoscaler(manifest) for manifest in story.ON_PROMISE.hpas],
            DemoNodepool(Limits(share=0), story.BEGIN, Past()),
            reader=PromiseReader(promised, story.PROMISE),
        ),
        expected=DemoCluster(
            story.ON_EXPECTED.namespace,
            expected,
            [DemoAutoscaler(manifest) for manifest in story.ON_EXPECTED.hpas],
            DemoNodepool(Limits(share=0), story.BEGIN, Past()),
            reader=ExpectedReader(expected, WorkloadLoad(asked=0.0), story.BEGIN),
        ),
        research=DemoCluster(story.RESEARCH.namespace, research, team),
        days=Days(Past(), ({"chat": 12}, {"chat": 14}), (9, 8)),
        exporters=exporters,
        servers=Exporters(lambda pod: f"page of {pod}\n".encode()),
        tally=Tally(requests=8, answered=4, seconds=[0.002] * 7 + [0.005]),
        curl="the API: curl -K /tmp/gma-demo-x/curl.conf",
        speed=15,
        length=900,
        seed=7,
        times=WallClock(15, origin=1_767_603_540.0),
        kubeconfig=Path("/tmp/gma-demo-x/kubeconfig"),
        outages=[OutagePlayed("mig-1", 0.0)],
    )
    for _ in range(6):
        for cluster in state.played:
            cluster.world.advance(cluster.world.now + 15)
            if cluster.reader:
                cluster.reader.scrape()
            for scaler in cluster.autoscalers:
                await scaler.sync(cluster.world, cluster.reader or Busy(cluster.world))
        nodepool.round(world, state.autoscalers)
    state.events.extend(world.take_events())
    state.events.append(DemoEvent(61.0, "exporter mig-1", "dead"))
    return state
