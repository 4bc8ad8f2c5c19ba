"""One service on nodes of one GPU: its HPA, the node autoscaler, and the clock between them.

Deterministic and pure. The HPA decides as :func:`adapter.hpa.decide`; the autoscaler behaves as the
Cluster Autoscaler does: it orders a node for a pod that has waited 30 s, or at once when
headroom does not fit either, and removes a node that nothing has needed for ten minutes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from load.nodepoolhpa import FastHpa, Hpa, demand
from load.nodepooltraces import STEP, TARGET

TICK: Final = 15
"""Seconds: the HPA controller's sync period."""


class Physics(NamedTuple):
    """How long things take, in seconds."""

    boot: float = 300.0
    """From a node's order to its GPU being allocatable."""
    gpu_wait: float = 30.0
    """How old a pending GPU pod must be before the Cluster Autoscaler looks at it."""
    unneeded: float = 600.0
    """How long nothing needs a node before it is removed: --scale-down-unneeded-time."""


class Moment(NamedTuple):
    """What a policy sees."""

    now: float
    """Epoch seconds."""
    wanted: int
    """What the HPA's metric asks for: not clamped, not stabilised."""
    load: float
    """The same before the tolerance and rounding."""
    bound: int
    pending: int
    headroom: int
    """As ordered before."""
    nodes: int
    """Ready ones."""
    booting: int


class Policy(Protocol):
    """Decides the headroom once a minute."""

    def headroom(self, seen: Moment) -> int:
        """GPUs to keep free, as one total."""


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
    """By minute: what the policy asked for."""

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
    policy: Policy,
    physics: Physics = Physics(),  # noqa: B008 (immutable)
    hpa: Callable[[int], Hpa] = FastHpa,
) -> Outcome:
    """Let a trace run.

    Args:
        work: percent of one GPU, one entry a minute.
        begin: epoch seconds of the first entry.
        hpa: makes the HPA from its ``maxReplicas``.
    """
    world = _World(work, physics, hpa)
    for minute, load in enumerate(work):
        world.minute(load, begin + minute * STEP, policy)
    return Outcome(tuple(world.waits), tuple(world.bills), tuple(world.asked), tuple(world.kept))


class _World:
    """The state between two ticks."""

    def __init__(self, work: Sequence[float], physics: Physics, hpa: Callable[[int], Hpa]) -> None:
        first = max(1, math.ceil(work[0] / TARGET))
        self.physics = physics
        self.hpa = hpa(ceiling(work))
        self.replicas = first
        self.ready = first
        self.booting: deque[float] = deque()
        """When each will be ready."""
        self.waiting: deque[float] = deque()
        """Since when each pending pod waits, oldest first."""
        self.unneeded: list[float] = []
        """Since when nothing needs a node, one entry for each such node, oldest first."""
        self.headroom = 0
        self.waits: list[float] = []
        self.bills: list[float] = []
        self.asked: list[int] = []
        self.kept: list[int] = []

    def minute(self, load: float, begin: float, policy: Policy) -> None:
        pending = nodes = 0
        for tick in range(0, STEP, TICK):
            now = begin + tick
            self._arrive(now)
            self._scale(load, now)
            if tick == 0:
                self.headroom = policy.headroom(self._moment(load, now))
                self.kept.append(self.headroom)
            self._autoscale(now)
            pending += len(self.waiting)
            nodes += self.ready + len(self.booting)
            self.asked.append(self.replicas)
        self.waits.append(float(pending * TICK))
        self.bills.append(float(nodes * TICK))

    @property
    def bound(self) -> int:
        return self.replicas - len(self.waiting)

    def _moment(self, load: float, now: float) -> Moment:
        return Moment(
            now,
            demand(self.bound, len(self.waiting), load),
            load / TARGET,
            self.bound,
            len(self.waiting),
            self.headroom,
            self.ready,
            len(self.booting),
        )

    def _arrive(self, now: float) -> None:
        while self.booting and self.booting[0] <= now:
            self.booting.popleft()
            self.ready += 1
        while self.waiting and self.bound < self.ready:
            self.waiting.popleft()

    def _scale(self, load: float, now: float) -> None:
        """The HPA. A ReplicaSet removes its pending pods first."""
        bound = self.bound
        desired = self.hpa.sync(bound, len(self.waiting), load, now)
        free = self.ready - bound
        change = desired - self.replicas
        self.replicas = desired
        if change > 0:
            self.waiting.extend([now] * max(0, change - free))
        for _ in range(min(-change, len(self.waiting))):
            self.waiting.pop()

    def _autoscale(self, now: float) -> None:
        nodes = self.ready + len(self.booting)
        unfit = self.bound + self.headroom + len(self.waiting) - nodes
        # A buffer that does not fit lifts the wait from all pending pods: nodepool.md.
        aged = sum(since <= now - self.physics.gpu_wait for since in self.waiting)
        drive = len(self.waiting) if self.headroom and unfit > 0 else aged
        missing = self.bound + drive + self.headroom - nodes
        self.booting.extend([now + self.physics.boot] * max(0, missing))
        surplus = min(nodes - self.replicas - self.headroom, self.ready - self.bound)
        # What is freed last is used first, so that the node free for longest can go.
        del self.unneeded[max(0, surplus) :]
        self.unneeded.extend([now] * (surplus - len(self.unneeded)))
        while self.unneeded and self.unneeded[0] <= now - self.physics.unneeded:
            del self.unneeded[0]
            self.ready -= 1
