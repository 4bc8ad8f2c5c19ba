"""Replicas ahead of demand: what the load of the simulated servers will not exceed.

As in ``promise``, time is the simulation's, and what is learned and expected is the real code.
"""

from __future__ import annotations

from typing import Final

from adapter.demo import story
from adapter.demo.client import Answer
from adapter.demo.days import DAY, DirectReader, play
from adapter.demo.fleet import Stage
from adapter.demo.nodepool import DemoNodepool, Past
from adapter.demo.world import World
from adapter.hpa import Missing
from adapter.nodepool.learn.boots import KEPT
from adapter.pipeline.catalog.expectedmetrics import SUFFIX
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.workloadload import Present, WorkloadLoad

_PROBABILITY: Final = 0.7
"""The default of ``ahead.probability``."""


class ExpectedReader(DirectReader):
    """Answers an HPA that lists a metric and what is expected of it.

    Args:
        world: the simulated cluster.
        load: what is known of the service's load; the reader adds to it.
        begin: the simulation's 0 in epoch seconds.
    """

    def __init__(self, world: World, load: WorkloadLoad, begin: float) -> None:
        super().__init__(world)
        self._load = load
        self._begin = begin
        self._watched: set[str] = set()

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the measured values, or what each pod's share of the expected load is."""
        measured = await super().pods(namespace, metric.removesuffix(SUFFIX), label_selector)
        if isinstance(measured, Missing) or not metric.endswith(SUFFIX):
            return measured
        total = sum(measured.values()) / 1000
        self._watch()
        now = self._begin + self._world.now
        self._load.learn(Present(total, len(measured)), now)
        self._load.compute(_PROBABILITY, now)
        expectation = self._load.expectation
        if isinstance(expectation, str):
            return Missing(expectation)
        more = round(1000 * max(0.0, expectation.most - total) / len(measured))
        return {name: value + more for name, value in measured.items()}

    def _watch(self) -> None:
        """Note how long the pods that are Ready now have taken."""
        times = self._load.starts.watched
        for pod in self._world.fleet.pods.values():
            if pod.stage is Stage.READY and pod.uid not in self._watched:
                self._watched.add(pod.uid)
                if pod.since > pod.created:  # else it was there before the story
                    times = (*times, pod.since - pod.created)[-KEPT:]
        self._load.starts = StartTimes(watched=times)


async def learn_days(count: int, seed: int, past: Past) -> WorkloadLoad:
    """Return what earlier days teach about the load.

    Args:
        count: days, with the seeds that follow.
        seed: of the day that is shown.
        past: what nodepool knows.
    """
    load, setup = WorkloadLoad(asked=0.0), story.ON_EXPECTED
    for before in range(count, 0, -1):
        begin = story.BEGIN - before * DAY
        world = World(setup.pools, setup.workloads, seed + before, -story.BEFORE)
        nodepool = DemoNodepool(story.LIMITS, begin, past)
        reader = ExpectedReader(world, load, begin)
        await play(world, setup.hpas, nodepool, story.LENGTH, reader)
    return load
