"""What is kept of one metric of one workload between rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import ReferenceType

from adapter.nodepool.learn.boots import KEPT
from adapter.nodepool.learn.history import learn
from adapter.nodepool.model.history import EMPTY, DemandHistory, DemandPoint
from adapter.pipeline.store.outlook import MeasuredValues
from adapter.server.ahead.expectation import Expectation, expect
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from apiservice.provider import GroupResource


class LoadKey(NamedTuple):
    """A metric of a workload."""

    namespace: str
    resource: GroupResource
    name: str
    metric: str
    """The measured one."""


class Present(NamedTuple):
    """The load at one point in time."""

    total: float
    """Sum over the pods that have a value."""
    pods: int


@dataclass(slots=True)
class WorkloadLoad:
    """What was learned of one metric of one workload. Only the event loop changes it."""

    asked: float
    """Epoch seconds of the last question."""
    history: DemandHistory = EMPTY
    replica: ReplicaLoad = field(default_factory=ReplicaLoad)
    starts: StartTimes = field(default_factory=StartTimes)
    expectation: Expectation | str = "nothing is known of its load yet"
    """What the load will not exceed, or why that is unknown."""
    computed: float = 0.0
    """Epoch seconds of ``expectation``."""
    seen: tuple[ReferenceType[MeasuredValues], Present] | None = field(default=None, repr=False)
    """The present load in the last values that were asked about."""

    def learn(self, present: Present, now: float) -> None:
        """Record a load over all pods of the workload; at least one has a value."""
        self.history = learn(self.history, DemandPoint(now, present.total))
        self.replica = self.replica.learn(present.total, present.pods, now)

    def take_over(self, old: WorkloadLoad) -> None:
        """Add what another process has learned, if it began earlier."""
        if not old.history.recent or _begin(old.history) >= _begin(self.history):
            return
        newer, self.history = self.history.recent, old.history
        for point in newer:
            self.history = learn(self.history, point)
        self.replica = old.replica
        starts = (*old.starts.watched, *self.starts.watched)[-KEPT:]
        self.starts = self.starts._replace(watched=starts)

    def compute(self, probability: float, now: float) -> None:
        """Say again what the load will not exceed."""
        self.computed = now
        lead, per_replica = self.starts.seconds, self.replica.mean
        if lead is None:
            self.expectation = "none of its pods shows how long it took to become Ready"
        elif per_replica is None:
            self.expectation = self._without_load()
        else:
            self.expectation = expect(self.history, per_replica, lead, probability, now)

    def _without_load(self) -> Expectation | str:
        if not self.history.recent:
            return "nothing is known of its load yet"
        return Expectation(0.0, 0.0, stated=False, text="there has been no load")


def _begin(history: DemandHistory) -> tuple[float, float]:
    """Return the first day and minute of a history; infinity without any."""
    day = float(history.days[0].number) if history.days else math.inf
    return day, history.recent[0].time if history.recent else math.inf
