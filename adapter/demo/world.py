"""The simulated cluster: services, their replicas, nodes and GPUs, advanced in steps of a second.

It uses no clock and no I/O: the caller says how far to go. The same seed, story and calls of
:meth:`World.scale` give the same world.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapter.demo.fleet import DemoPod, Fleet, Stage
from adapter.demo.hardware import DemoNode, DemoPool
from adapter.demo.load import Arrivals, Profile
from adapter.demo.service import DEPTH, DemoService

STEP = 1.0
"""Seconds of the simulation that one step covers."""
_CHANGES = 2000
"""Changes that are kept."""
COLLECT = 5
"""Steps over which the exporters average."""


@dataclass(frozen=True, slots=True)
class DemoWorkload:
    """A service in the story."""

    name: str
    resource: str
    """The resource of which each replica holds one."""
    profile: Profile
    mean_work: float
    """GPU-seconds of a request, on average."""
    start_seconds: float
    """Seconds from a pod's binding to its readiness: image, model, warm-up."""
    memory_share: float
    """Share of the device's framebuffer that the model takes."""
    replicas: int
    """Replicas at the start."""
    promised: float = math.inf
    """Seconds to the first token after which a request counts as late."""
    depth: int | None = DEPTH
    """Requests that a replica holds at once; None if no gateway holds any back."""


class DemoEvent(NamedTuple):
    """An event for the screen."""

    at: float
    """Seconds of the simulation."""
    about: str
    text: str
    caption: bool = False
    """Whether it explains the story."""


class Change(NamedTuple):
    """What happened to a pod or a node, for the events of the cluster."""

    at: float
    """Seconds of the simulation."""
    word: str
    """``waits``, ``triggers``, ``bound``, ``ready``, ``gone``; ``booting``, ``ahead``, ``booted``,
    ``removed``."""
    what: DemoNode | DemoPod
    node: DemoNode | None = None
    """The node that a waiting pod triggers."""


class World:
    """The state that the exporters, the pods file and the screen state."""

    def __init__(
        self,
        pools: tuple[DemoPool, ...],
        workloads: tuple[DemoWorkload, ...],
        seed: int,
        start: float = 0.0,
    ) -> None:
        """``start`` is the first second."""
        self.start = start
        self.now = start
        self.workloads = {workload.name: workload for workload in workloads}
        self.fleet = Fleet(pools, start)
        self.gpu_seconds = dict.fromkeys(self.workloads, 0.0)
        """Device time that each service's pods have held."""
        self.paid_seconds = {pool.name: 0.0 for pool in pools}
        """Time of each pool's physical GPUs, from a node's order to its end."""
        self.created: dict[str, list[DemoPod]] = {name: [] for name in self.workloads}
        """All pods that each service has had, terminated ones included, oldest first."""
        self.wanted = {workload.name: workload.replicas for workload in workloads}
        """``spec.replicas`` of each service's Deployment."""
        self.services: dict[str, DemoService] = {}
        self._arrivals: dict[str, Arrivals] = {}
        self._events: list[DemoEvent] = []
        self.changes: deque[Change] = deque(maxlen=_CHANGES)
        """The latest changes, the oldest first."""
        for workload in workloads:
            # A separate generator for each purpose, so that their draws are independent.
            routing = random.Random(f"{seed}/{workload.name}/routing")  # noqa: S311 - no secret
            arrivals = random.Random(f"{seed}/{workload.name}/arrivals")  # noqa: S311 - no secret
            self.services[workload.name] = DemoService(routing, workload.promised, workload.depth)
            self._arrivals[workload.name] = Arrivals(workload.profile, workload.mean_work, arrivals)
            for _ in range(workload.replicas):
                self._create(workload, warm=True)
        self._apply(self.fleet.step(self.now))
        self._events.clear()

    def advance(self, until: float) -> None:
        """Continue to ``until`` in whole steps; a remainder is left for the next call."""
        while self.now + STEP <= until:
            self._step()

    def scale(self, name: str, replicas: int) -> None:
        """Set a service's wanted replicas, as a write to its scale subresource does."""
        workload = self.workloads[name]
        self.wanted[name] = replicas
        pods = self.fleet.of(name)
        for _ in range(replicas - len(pods)):
            self._create(workload)
        for pod in sorted(pods, key=_keep, reverse=True)[: max(0, len(pods) - replicas)]:
            self.services[name].leave(pod.name)
            self.fleet.delete(pod, self.now)
        self._apply(self.fleet.schedule(self.now))
        for pod in self.fleet.of(name):
            if pod.stage is Stage.PENDING and pod.created == self.now:
                self.changes.append(Change(self.now, "waits", pod))

    def stages(self, name: str) -> Counter[Stage]:
        """Return how many of the service's pods are at which stage."""
        return Counter(pod.stage for pod in self.fleet.of(name))

    def waiting_seconds(self, name: str) -> float:
        """Return the pod-seconds that the service's pods have waited for a GPU."""
        return sum(pod.waiting_seconds(self.now) for pod in self.created[name])

    def rate(self, name: str) -> float:
        """Return the mean requests per second that the story defines for now."""
        return self.workloads[name].profile.rate(self.now)

    def take_events(self) -> Sequence[DemoEvent]:
        """Return the events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def report(self, about: str, text: str, *, caption: bool = False) -> None:
        """Add an event from outside the simulation."""
        self._events.append(DemoEvent(self.now, about, text, caption))

    def _step(self) -> None:
        self._apply(self.fleet.step(self.now))
        busy: dict[str, float] = {}
        for name, service in self.services.items():
            requests = self._arrivals[name].draw(self.now, STEP)
            busy.update(service.step(self.now, STEP, requests))
        for node in self.fleet.nodes:
            for device in node.devices:
                share = busy.get(device.pod, 0.0) if device.pod else 0.0
                device.record(share, COLLECT)
                device.energy += power(device.busy) * STEP
        for pod in self.fleet.pods.values():
            if pod.device:
                self.gpu_seconds[pod.service] += STEP
        for node in self.fleet.nodes:
            self.paid_seconds[node.pool.name] += node.pool.gpus * STEP
        self.now += STEP

    def _apply(self, changes: Iterable[tuple[str, DemoNode | DemoPod]]) -> None:
        for word, what in changes:
            self.changes.append(Change(self.now, word, what))
            if isinstance(what, DemoNode):
                self._trigger(word, what)
                self._report_node(word, what)
            elif word == "ready":
                self.services[what.service].join(what.name)

    def _trigger(self, word: str, node: DemoNode) -> None:
        if word not in {"booting", "ahead"}:
            return
        for pod in self.fleet.pods.values():
            if pod.stage is Stage.PENDING and pod.resource == node.pool.resource:
                self.changes.append(Change(self.now, "triggers", pod, node))

    def _report_node(self, word: str, node: DemoNode) -> None:
        if word in {"booting", "ahead"}:
            why = "for headroom" if word == "ahead" else f"no free {node.pool.resource}"
            seconds = round(node.ready_at - self.now)
            self.report(f"node {node.name}", f"{why}: booting, ready in {seconds} s")
        elif word == "booted":
            self.report(f"node {node.name}", f"ready, {len(node.devices)} devices")
        else:
            self.report(f"node {node.name}", "removed after being empty")

    def _create(self, workload: DemoWorkload, *, warm: bool = False) -> DemoPod:
        start = 0.0 if warm else workload.start_seconds
        pod = self.fleet.create(workload.name, workload.resource, start, self.now)
        self.created[workload.name].append(pod)
        return pod


def power(busy: float) -> float:
    """Return the watts of a board that is busy for that share of time.

    Only the shape matters: an idle draw and a rise with utilisation, as on real pages.
    """
    return 70.0 + 560.0 * busy


def _keep(pod: DemoPod) -> tuple[int, float]:
    """Return the order in which a ReplicaSet keeps pods: serving before starting, old before new.

    pkg/controller/controller_utils.go (ActivePodsWithRanks) of k8s.io/kubernetes.
    """
    order = {Stage.READY: 0, Stage.STARTING: 1, Stage.PENDING: 2}
    return order.get(pod.stage, 3), pod.created
