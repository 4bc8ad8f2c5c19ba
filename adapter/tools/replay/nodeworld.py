"""One service on nodes of its own: its HPA, the node autoscaler, and the clock between them.

Deterministic and pure. The autoscaler behaves as the Cluster Autoscaler does: it orders nodes for
pods that have waited for some time, or at once when headroom does not fit either, and removes a
node that nothing has needed for some time. Pods are packed: no GPU is free on two nodes.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple, Protocol


class NodePhysics(NamedTuple):
    """How long things take, in seconds, and how large a node is."""

    boot: float = 300.0
    """From a node's order to its GPUs being allocatable."""
    gpu_wait: float = 30.0
    """How old a pending GPU pod must be before the Cluster Autoscaler looks at it."""
    unneeded: float = 600.0
    """How long nothing needs a node before it is removed: --scale-down-unneeded-time."""
    slots: int = 1
    """Pods of the service that fit on a node."""


class NodeMoment(NamedTuple):
    """What a policy sees."""

    now: float
    """Epoch seconds."""
    wanted: int | None
    """What the HPA's metric asks for: not clamped, not stabilized. None if it has no value."""
    load: float | None
    """The same before the tolerance and rounding."""
    bound: int
    pending: int
    headroom: int
    """As ordered before, in pods."""
    nodes: int
    """Ready ones."""
    booting: int


class HeadroomPolicy(Protocol):
    """Decides the headroom."""

    def headroom(self, moment: NodeMoment) -> int:
        """Return the pods to keep room for, as one total."""


class ServiceHpa(Protocol):
    """Decides the replicas once a sync."""

    def sync(self, bound: int, pending: int, load: float | None, now: float) -> int:
        """Return the new number of replicas.

        Args:
            bound: pods that run.
            pending: pods without a node.
            load: work of all pods together; None if it is not known.
            now: epoch seconds; increases from call to call.
        """

    def propose_replicas(
        self, bound: int, pending: int, load: float | None
    ) -> tuple[int, float] | None:
        """Return what the metric asks for before limits, and that before tolerance and rounding."""


class NodeWorld:
    """The state between two syncs. It begins with the nodes that the pods need."""

    def __init__(self, physics: NodePhysics, hpa: ServiceHpa, replicas: int) -> None:
        self._physics = physics
        self._hpa = hpa
        self.replicas = replicas
        """What the HPA asks for."""
        self.ready = math.ceil(replicas / physics.slots)
        """Nodes."""
        self.booting: deque[float] = deque()
        """When each will be ready."""
        self.waiting: deque[float] = deque()
        """Since when each pending pod waits, oldest first."""
        self.headroom = 0
        self._load: float | None = None
        """As the last full round of the policy saw it."""
        self._planned = -1
        """Replicas when the policy decided last."""
        self.waits: list[float] = []
        """How long each pod waited that waits no more."""
        self._unneeded: list[float] = []
        """Since when nothing needs a node, one entry for each such node, oldest first."""

    @property
    def bound(self) -> int:
        """Pods that have a node."""
        return self.replicas - len(self.waiting)

    @property
    def nodes(self) -> int:
        """Nodes that exist or boot."""
        return self.ready + len(self.booting)

    def step(self, load: float | None, now: float, policy: HeadroomPolicy, *, due: bool) -> None:
        """Let one sync pass.

        Args:
            policy: decides when it is due, and when the number of pods has changed since, as
                ``nodepool`` and the Cluster Autoscaler's buffers do. In between, it sees the load
                of the time when it was due.
            due: whether the policy decides in any case.
        """
        self._arrive(now)
        self._scale(load, now)
        if due:
            self._load = load
        if due or self.replicas != self._planned:
            self._planned = self.replicas
            self.headroom = policy.headroom(self._moment(now))
        self._autoscale(now)

    def settle(self, now: float) -> None:
        """End the time that is known: no pod waits on, and all have a node after it."""
        self.waits += [now - since for since in self.waiting]
        self.waiting.clear()
        self.ready = max(self.nodes, math.ceil(self.replicas / self._physics.slots))
        self.booting.clear()

    def _moment(self, now: float) -> NodeMoment:
        waiting = len(self.waiting)
        wanted, exact = self._hpa.propose_replicas(self.bound, waiting, self._load) or (None, None)
        return NodeMoment(
            now,
            wanted,
            exact,
            self.bound,
            waiting,
            self.headroom,
            self.ready,
            len(self.booting),
        )

    def _arrive(self, now: float) -> None:
        while self.booting and self.booting[0] <= now:
            self.booting.popleft()
            self.ready += 1
        while self.waiting and self.bound < self.ready * self._physics.slots:
            self.waits.append(now - self.waiting.popleft())

    def _scale(self, load: float | None, now: float) -> None:
        """The HPA. A ReplicaSet removes its pending pods first."""
        bound = self.bound
        desired = self._hpa.sync(bound, len(self.waiting), load, now)
        free = self.ready * self._physics.slots - bound
        change = desired - self.replicas
        self.replicas = desired
        if change > 0:
            self.waiting.extend([now] * max(0, change - free))
        for _ in range(min(-change, len(self.waiting))):
            self.waits.append(now - self.waiting.pop())

    def _autoscale(self, now: float) -> None:
        physics, slots = self._physics, self._physics.slots
        room = self.nodes * slots
        unfit = self.bound + self.headroom + len(self.waiting) - room
        # A buffer that does not fit lifts the wait from all pending pods: the Cluster Autoscaler
        # waits for the oldest pod, and those of a buffer have no age.
        aged = sum(since <= now - physics.gpu_wait for since in self.waiting)
        drive = len(self.waiting) if self.headroom and unfit > 0 else aged
        missing = math.ceil((self.bound + drive + self.headroom - room) / slots)
        self.booting.extend([now + physics.boot] * max(0, missing))
        surplus = min(
            (self.nodes * slots - self.replicas - self.headroom) // slots,
            self.ready - math.ceil(self.bound / slots),
        )
        # What is freed last is used first, so that the node free for longest can go.
        del self._unneeded[max(0, surplus) :]
        self._unneeded.extend([now] * (surplus - len(self._unneeded)))
        while self._unneeded and self._unneeded[0] <= now - physics.unneeded:
            del self._unneeded[0]
            self.ready -= 1
