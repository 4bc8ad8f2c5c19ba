"""A recorded service on nodes of one GPU, minute by minute: the world of ``replay``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.tools.replay.nodeworld import HeadroomPolicy, NodePhysics, NodeWorld, ServiceHpa
from research.hpa import FastHpa
from research.traces import STEP, TARGET

TICK: Final = 15
"""Seconds: the HPA controller's sync period."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the days of a trace cost."""

    waits: tuple[float, ...]
    """By minute: pending pod-seconds."""
    bills: tuple[float, ...]
    """By minute: GPU-seconds, from a node's order to its removal, because a cloud bills a booting
    machine."""
    replicas: tuple[int, ...]
    """By tick: what the HPA asked for."""
    headroom: tuple[int, ...]
    """By minute: what the policy asked for first."""

    @property
    def pending_pod_seconds(self) -> float:
        """Of the whole trace."""
        return sum(self.waits)

    @property
    def gpu_hours(self) -> float:
        """Of the whole trace."""
        return sum(self.bills) / 3600


def ceiling(work: Sequence[float]) -> int:
    """Twice the most pods that the trace ever wants: maxReplicas must not know the future."""
    return 2 * max(1, math.ceil(max(work) / TARGET))


def simulate(
    work: Sequence[float],
    begin: float,
    policy: HeadroomPolicy,
    physics: NodePhysics = NodePhysics(),  # noqa: B008 (immutable)
    hpa: Callable[[int], ServiceHpa] = FastHpa,
) -> Outcome:
    """Let a trace run. The policy decides once a minute, and when the number of pods changes.

    Args:
        work: percent of one GPU, one entry a minute.
        begin: epoch seconds of the first entry.
        hpa: makes the HPA from its ``maxReplicas``.
    """
    world = NodeWorld(physics, hpa(ceiling(work)), max(1, math.ceil(work[0] / TARGET)))
    waits, bills, replicas, headroom = [], [], [], []
    for minute, load in enumerate(work):
        pending = nodes = 0
        for tick in range(0, STEP, TICK):
            now = begin + minute * STEP + tick
            world.step(load, now, policy, due=not tick)
            if not tick:
                headroom.append(world.headroom)
            pending += len(world.waiting)
            nodes += world.nodes
            replicas.append(world.replicas)
        waits.append(float(pending * TICK))
        bills.append(float(nodes * TICK))
    return Outcome(tuple(waits), tuple(bills), tuple(replicas), tuple(headroom))
