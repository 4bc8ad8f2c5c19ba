"""Simulated time without display: the days before, and the minutes before the first picture.

The days have the same load profile with other seeds. ``serve`` does not run; the HPAs read the
devices directly. From these days nodepool has its history when the story starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.demo import sight, story
from adapter.demo.autoscaler import PERIOD, DemoAutoscaler
from adapter.demo.gauge import Gauge
from adapter.demo.nudge import Nudge, Past
from adapter.demo.server import SCRAPE
from adapter.demo.world import World

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Days:
    """The history of earlier days."""

    past: Past
    peaks: tuple[Mapping[str, int], ...]
    """For each day, oldest first: service -> most pods that its metric requested."""
    seeds: tuple[int, ...]


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
    workloads = tuple(each for each in story.WORKLOADS if each.resource in resources)
    for before, own in zip(range(count, 0, -1), seeds, strict=True):
        nudge = Nudge(story.LIMITS, story.BEGIN - before * DAY, past)
        world = World(pools, workloads, own, start)
        await play(world, story.HPAS, nudge, story.LENGTH)
        past = nudge.past
        peaks.append(nudge.peaks)
    return Days(past, tuple(peaks), seeds)


async def play(
    world: World, hpas: Sequence[Mapping[str, Any]], nudge: Nudge | None, until: float
) -> None:
    """Continue to ``until`` with separate HPAs for the services whose pools can grow."""
    gauge = Gauge(world)
    every = [DemoAutoscaler(each) for each in hpas]
    scalers = [
        scaler
        for scaler in every
        if scaler.service in world.workloads and sight.grows(world, scaler.service)
    ]
    while world.now + SCRAPE <= until:
        world.advance(world.now + SCRAPE)
        gauge.look()
        if world.now % PERIOD:
            continue
        for scaler in scalers:
            await scaler.sync(world, gauge)
        if nudge:
            nudge.round(world, scalers)
