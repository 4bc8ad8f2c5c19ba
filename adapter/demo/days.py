"""Simulated time without display: the days before, and the minutes before the first picture.

The days have the same load profile with other seeds. ``serve`` does not run; the HPAs read the
devices and servers directly. From these days nodepool has its history when the story starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.demo import story
from adapter.demo.autoscaler import PERIOD, DemoAutoscaler
from adapter.demo.client import Answer, SimulatedReader
from adapter.demo.fleet import Stage
from adapter.demo.nodepool import DemoNodepool, Past, grows
from adapter.demo.server import SCRAPE, WINDOW
from adapter.demo.world import World
from adapter.hpa import Missing

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Days:
    """The history of earlier days."""

    past: Past
    peaks: tuple[Mapping[str, int], ...]
    """For each day, oldest first: service -> most pods that its metric requested."""
    seeds: tuple[int, ...]


class DirectReader:
    """Answers as ``serve`` would: the values of each ready pod, averaged over their window."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._samples: dict[str, deque[tuple[float, Mapping[str, float]]]] = {}

    def scrape(self) -> None:
        """Take the sample that a scrape would return now."""
        now = self._world.now
        samples: dict[str, deque[tuple[float, Mapping[str, float]]]] = {}
        for pod in self._world.fleet.pods.values():
            if pod.stage is Stage.READY and pod.device is not None:
                recent = self._samples.get(pod.name, deque())
                while recent and recent[0][0] <= now - WINDOW:
                    recent.popleft()
                running, waiting = self._world.services[pod.service].held_requests(pod.name)
                values = {
                    "gpu_utilization": 100 * pod.device.busy,
                    story.RUNNING: running,
                    story.WAITING: waiting,
                }
                recent.append((now, values))
                samples[pod.name] = recent
        self._samples = samples

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the service's pods; ``namespace`` is not used."""
        service = label_selector.removeprefix("app=")
        values = {
            pod.name: round(1000 * sum(values[metric] for _, values in recent) / len(recent))
            for pod in self._world.fleet.of(service)
            if (recent := self._samples.get(pod.name))
        }
        return values or Missing("no pod has a value")


async def live(count: int, seed: int, start: float) -> Days:
    """Play ``count`` days with nodepool, each with the history of the days before.

    Args:
        count: 0 or more.
        seed: the seed of the day that is shown; the others have the following seeds.
        start: seconds of the simulation at which each day begins.
    """
    past = Past()
    peaks: list[Mapping[str, int]] = []
    seeds = tuple(seed + before for before in range(count, 0, -1))
    pools = tuple(pool for pool in story.POOLS if pool.most > pool.first)
    resources = {pool.resource for pool in pools}
    workloads = tuple(workload for workload in story.WORKLOADS if workload.resource in resources)
    for before, day_seed in zip(range(count, 0, -1), seeds, strict=True):
        nodepool = DemoNodepool(story.LIMITS, story.BEGIN - before * DAY, past)
        world = World(pools, workloads, day_seed, start)
        await play(world, story.HPAS, nodepool, story.LENGTH)
        past = nodepool.past
        peaks.append(nodepool.peaks)
    return Days(past, tuple(peaks), seeds)


async def play(
    world: World,
    hpas: Sequence[Mapping[str, Any]],
    nodepool: DemoNodepool | None,
    until: float,
    reader: SimulatedReader | None = None,
) -> None:
    """Continue to ``until`` with separate HPAs for the services whose pools can grow.

    Args:
        reader: what the HPAs read; None for the devices and servers.
    """
    reader = reader or DirectReader(world)
    scalers = [
        scaler
        for scaler in map(DemoAutoscaler, hpas)
        if scaler.service in world.workloads and grows(world, scaler.service)
    ]
    while world.now + SCRAPE <= until:
        world.advance(world.now + SCRAPE)
        reader.scrape()
        if world.now % PERIOD:
            continue
        for scaler in scalers:
            await scaler.sync(world, reader)
        if nodepool:
            nodepool.round(world, scalers)
