"""What is kept of one metric of one workload between rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import ReferenceType

from adapter.nodepool.learn.history import is_load, learn, round_load, union
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
        """Record a load over all pods of the workload; at least one has a value.

        A number that cannot be a load is not recorded.
        """
        if not is_load(present.total):
            return
        self.history = learn(self.history, DemandPoint(now, present.total))
        self.replica = self.replica.learn(round_load(present.total), present.pods, now)

    def take_over(self, other: WorkloadLoad, now: float) -> None:
        """Add what another process has learned: a restart and another replica know other times.

        Args:
            now: epoch seconds.
        """
        self.asked = max(self.asked, other.asked)
        self.history = union(self.history, other.history, now)
        self.replica = self.replica.better_of(other.replica)
        if len(other.starts.watched) > len(self.starts.watched):
            self.starts = self.starts._replace(watched=other.starts.watched)

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
