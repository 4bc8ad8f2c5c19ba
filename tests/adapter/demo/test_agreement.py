"""``explain hpa`` replays the decision of the demo's own HPA from what the API server shows."""

from __future__ import annotations

import dataclasses

from adapter.demo import story
from adapter.demo.autoscaler import PERIOD, DemoAutoscaler
from adapter.demo.cluster.events import events
from adapter.demo.cluster.hpas import hpas
from adapter.demo.days import DirectReader
from adapter.demo.manifests import pods
from adapter.demo.server import SCRAPE
from adapter.demo.state import DemoCluster, DemoState
from adapter.demo.wallclock import WallClock
from adapter.demo.world import World
from adapter.hpa import Observation
from adapter.tools.explain.events import RecentEvents
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpajudge import judge
from adapter.tools.explain.metricvalues import ReadValues
from adapter.tools.explain.scaletarget import Scale


def facts(state: DemoState, scaler: DemoAutoscaler, seen: Observation) -> HpaFacts:
    """What ``explain`` reads of an HPA, with the values that the HPA reads."""
    namespace, name = state.shown.namespace, scaler.spec.name
    [hpa] = [
        row
        for row in hpas(state)
        if (row["metadata"]["namespace"], row["metadata"]["name"]) == (namespace, name)
    ]
    about = {"kind": "HorizontalPodAutoscaler", "namespace": namespace, "name": name}
    own = [row for row in events(state) if row["involvedObject"].items() >= about.items()]
    rows = pods(state.world, namespace, {}, state.times)
    mine = [row for row in rows if row["metadata"]["labels"]["app"] == scaler.service]
    replicas = state.world.wanted[scaler.service]
    return HpaFacts(
        hpa,
        scaler.spec,
        state.times.at(state.world.now),
        Scale(replicas, replicas, f"app={scaler.service}"),
        pods=mine,
        values=[ReadValues(values) for values in seen.values],
        events=RecentEvents(own),
    )


async def test_every_decision_of_the_story_is_explained_as_it_is_made(state: DemoState) -> None:
    world = World(story.POOLS, story.WORKLOADS, seed=7)
    scalers = [DemoAutoscaler(manifest) for manifest in story.HPAS]
    shown = DemoCluster(story.NAMESPACE, world, scalers)
    state = dataclasses.replace(state, shown=shown, times=WallClock(1, origin=1e9))
    reader = DirectReader(world)
    explained = differing = 0
    while world.now < story.LENGTH:
        world.advance(world.now + SCRAPE)
        reader.scrape()
        if world.now % PERIOD:
            continue
        for scaler in scalers:
            values = await reader.pods(story.NAMESPACE, scaler.metric, f"app={scaler.service}")
            before = facts(state, scaler, Observation(0, (), (values,)))
            made = (await scaler.sync(world, reader)).decision
            decision = judge(before).decision
            assert decision is not None
            assert decision.asked == made.asked
            explained += 1
            if decision.desired != made.desired:
                # The end of the stabilization window is not visible from outside.
                assert decision.desired == decision.current > made.desired
                assert decision.stable != decision.asked
                differing += 1
    assert explained == 120
    assert differing < 10
