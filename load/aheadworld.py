"""One service whose replicas take minutes to become Ready, and the policies that scale it.

Nodes are free: what is judged is the time from the creation of a replica to Ready. The HPA is the
real algorithm (:mod:`research.hpa`), with its default ``behavior``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from adapter.hpa import ControllerOptions
from adapter.nodepool.learn.checks import pods_of
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.history import EMPTY, DemandPoint
from adapter.server.ahead.expectation import Expectation, expect
from adapter.server.ahead.replicaload import ReplicaLoad
from research.hpa import FastHpa
from research.traces import DAY, STEP, TARGET, Part, Trace
from research.world import TICK, ceiling

HOUR: Final = 3600
USUAL_WINDOW: Final = ControllerOptions().downscale_stabilization


class AheadOutcome(NamedTuple):
    """What a policy came to, in the part that is judged."""

    waiting: float
    """Pod-seconds for which a replica that the load needs was not Ready."""
    needed: float
    """Pod-seconds that the load needs."""
    gpu_hours: float
    """Of all replicas, from their creation on."""
    stated: int = 0
    """Minutes for which a probability was stated."""
    held: int = 0
    pods_held: int = 0
    """Those after which the load did not exceed what was stated."""


Policy = Callable[[int], float]
"""Minute -> the load that the HPA scales for if it is more than the real one, in percent of a
GPU."""


def play(
    trace: Trace, part: Part, policy: Policy, start: float, window: float = USUAL_WINDOW
) -> AheadOutcome:
    """Let a service run until the part is over. The policy decides once a minute.

    Args:
        start: seconds from the creation of a replica until it is Ready.
        window: ``scaleDown.stabilizationWindowSeconds`` of the HPA.
    """
    hpa = FastHpa(ceiling(trace.work), window)
    ready, starting = max(1, math.ceil(trace.work[0] / TARGET)), deque[float]()
    waiting = needed = billed = 0.0
    for minute, load in enumerate(islice(trace.work, part.end)):
        scaled_for = max(load, policy(minute))
        for tick in range(0, STEP, TICK):
            now = trace.begin + minute * STEP + tick
            while starting and starting[0] <= now:
                starting.popleft()
                ready += 1
            replicas = hpa.sync(ready, len(starting), scaled_for, now)
            while replicas < ready + len(starting) and starting:
                starting.pop()
            ready = min(ready, replicas)
            starting.extend([now + start] * (replicas - ready - len(starting)))
            if minute >= part.first:
                wanted, _ = hpa.propose_replicas(ready, len(starting), load)
                waiting += TICK * min(len(starting), max(0, wanted - ready))
                needed += TICK * wanted
                billed += TICK * (ready + len(starting))
    return AheadOutcome(waiting, needed, billed / HOUR)


def reactive(trace: Trace) -> Policy:
    """Return the HPA alone."""
    return lambda _: 0.0


def lower_target(trace: Trace, share: float) -> Policy:
    """Return a target that is so much lower."""
    return lambda minute: trace.work[minute] / (1 - share)


def surplus(trace: Trace, replicas: float) -> Policy:
    """Return so many replicas more than the load needs."""
    return lambda minute: trace.work[minute] + replicas * TARGET


def schedule(trace: Trace, share: float) -> Policy:
    """Return ``minReplicas`` for each hour: a share of the highest load of the same hour on the
    days before, at most seven, from ten minutes before it on."""
    hours = len(trace.work) * STEP // HOUR + 2
    peaks = [
        max(trace.work[hour * HOUR // STEP : (hour + 1) * HOUR // STEP], default=0.0)
        for hour in range(hours)
    ]

    def least(minute: int) -> float:
        hour = (minute * STEP + 600) // HOUR
        days = [hour - 24 * back for back in range(1, 8) if hour >= 24 * back]
        return share * max((min(peaks[earlier], 1e9) for earlier in days[:7]), default=0.0)

    return least


def oracle(trace: Trace, start: float) -> Policy:
    """Return the load until a replica created now is Ready, and until the next decision."""
    ahead = int(start // STEP) + 2
    return lambda minute: max(trace.work[minute : minute + ahead])


class Ahead:
    """The expectation, as ``serve`` has it."""

    def __init__(self, trace: Trace, part: Part, probability: float, start: float) -> None:
        self._trace = trace
        self._first = part.first - DAY // STEP if part.first else 0
        self._probability, self._start = probability, start
        self._history, self._replica = EMPTY, ReplicaLoad()
        self._part = part
        self.stated = self.held = self.pods_held = 0

    def __call__(self, minute: int) -> float:
        """Learn a minute, and return what is expected."""
        load, now = self._trace.work[minute], self._trace.begin + minute * STEP
        self._history = learn(self._history, DemandPoint(now, load))
        self._replica = self._replica.learn(load, max(1, math.ceil(load / TARGET)), now)
        mean = self._replica.mean
        if mean is None or minute < self._first:
            return load
        expected = expect(self._history, mean, self._start, self._probability, now)
        if isinstance(expected, str):
            return load
        self._judge(minute, expected)
        return expected.most

    def _judge(self, minute: int, expectation: Expectation) -> None:
        ahead = int(self._start // STEP) + 2
        following = self._trace.work[minute + 1 : minute + ahead]
        if not expectation.stated or minute < self._part.first or len(following) < ahead - 1:
            return
        self.stated += 1
        highest = max(following)
        enough = max(expectation.present, expectation.most)
        self.held += highest <= enough
        self.pods_held += pods_of(highest / TARGET) <= pods_of(enough / TARGET)


def play_ahead(
    trace: Trace, part: Part, probability: float, start: float, window: float = USUAL_WINDOW
) -> AheadOutcome:
    """Let the expectation scale a service."""
    policy = Ahead(trace, part, probability, start)
    return play(trace, part, policy, start, window)._replace(
        stated=policy.stated, held=policy.held, pods_held=policy.pods_held
    )


def needs(work: Sequence[float]) -> float:
    """Return the pods that a load needs, in the mean."""
    return sum(work) / len(work) / TARGET
