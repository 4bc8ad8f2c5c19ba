"""The simulated cluster's nodes and pods: scheduling, booting, loading, serving, terminating.

Times are seconds of the simulation. A pod waits for a free device of its resource; where
none is left, a pool that may grow boots another node, which takes as long as a cloud's
does. To get a node earlier, set :attr:`Fleet.headroom`.
"""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from adapter.demo.hardware import DemoDevice, DemoNode, DemoPool, make_node

_TERMINATE = 5.0
"""Seconds that a deleted pod still holds its device."""


class Stage(StrEnum):
    """A pod's stage of life."""

    PENDING = "pending"
    """No device is free for it."""
    STARTING = "starting"
    """Bound to a device: the image is pulled, the model loaded; not ready."""
    READY = "ready"
    TERMINATING = "terminating"


@dataclass(slots=True, eq=False)
class DemoPod:
    """One replica of a service."""

    name: str
    service: str
    uid: str
    created: float
    resource: str
    start_seconds: float
    stage: Stage = Stage.PENDING
    node: DemoNode | None = None
    device: DemoDevice | None = None
    since: float = 0.0
    """When the current stage began."""
    bound: float | None = None
    """When it got its device; None while it has had none."""
    deleted: float | None = None

    def waiting_seconds(self, now: float) -> float:
        """Return the seconds without a device: until it got one, was deleted, or until now."""
        ends = [end for end in (self.bound, self.deleted) if end is not None]
        return min(ends, default=now) - self.created

    def holds(self, at: float) -> bool:
        """Return whether it held a device then."""
        ended = math.inf if self.deleted is None else self.deleted
        return self.bound is not None and self.bound <= at < ended


class Fleet:
    """All nodes and pods. Deterministic: the same calls give the same names and placement."""

    def __init__(self, pools: tuple[DemoPool, ...], now: float) -> None:
        self._numbers: Counter[str] = Counter()
        self.pools = pools
        self.nodes: list[DemoNode] = []
        self.pods: dict[str, DemoPod] = {}
        self.version = 0
        """A number that changes with everything that a pod's manifest shows."""
        self.headroom: dict[str, int] = {}
        """Resource to devices to keep free beyond what pods wait for, as the replicas of a
        CapacityBuffer do for a node autoscaler. It applies until it is set again."""
        for pool in pools:
            for _ in range(pool.first):
                self._add(pool, now, boot_seconds=0.0)

    def boot(self, pool: DemoPool, now: float) -> DemoNode | None:
        """Start one more node of ``pool``; None if the pool may not grow."""
        if sum(node.pool is pool for node in self.nodes) >= pool.most:
            return None
        return self._add(pool, now, pool.boot_seconds)

    def create(self, service: str, resource: str, start_seconds: float, now: float) -> DemoPod:
        """Create a pod that waits for a device."""
        self._numbers[service] += 1
        identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{service}-{self._numbers[service]}.pod")
        name = f"{service}-{identity.hex[:5]}"
        pod = DemoPod(name, service, str(identity), now, resource, start_seconds, since=now)
        self.pods[name] = pod
        self.version += 1
        return pod

    def delete(self, pod: DemoPod, now: float) -> None:
        """Start to terminate ``pod``. A pod without a device is gone at once."""
        self.version += 1
        pod.deleted = now
        if pod.device is None:
            del self.pods[pod.name]
            return
        pod.stage, pod.since = Stage.TERMINATING, now

    def of(self, service: str) -> list[DemoPod]:
        """Return the service's pods that are not terminating, oldest first."""
        return [
            pod
            for pod in self.pods.values()
            if pod.service == service and pod.stage is not Stage.TERMINATING
        ]

    def step(self, now: float) -> Iterator[tuple[str, DemoNode | DemoPod]]:
        """Advance to ``now``; yield each change as (word, object)."""
        yield from self.schedule(now)
        yield from self._grow(now)
        yield from self._shrink(now)

    def schedule(self, now: float) -> Iterator[tuple[str, DemoNode | DemoPod]]:
        """Act as scheduler and kubelets. The node autoscaler is slower and acts in a step."""
        yield from self._finish(now)
        yield from self._boot(now)
        yield from self._place(now)
        yield from self._start(now)

    def _finish(self, now: float) -> Iterator[tuple[str, DemoPod]]:
        for pod in list(self.pods.values()):
            if pod.stage is Stage.TERMINATING and now - pod.since >= _TERMINATE:
                del self.pods[pod.name]
                if pod.device:
                    pod.device.pod = None
                self.version += 1
                yield "gone", pod

    def _boot(self, now: float) -> Iterator[tuple[str, DemoNode]]:
        for node in self.nodes:
            if not node.joined and node.ready(now):
                node.joined = True
                self.version += 1
                yield "booted", node

    def _place(self, now: float) -> Iterator[tuple[str, DemoPod]]:
        for pod in self.pods.values():
            if pod.stage is not Stage.PENDING:
                continue
            free = self._free(pod.resource, now)
            if free is None:
                continue
            pod.node, pod.device = free
            pod.device.pod = pod.name
            pod.stage, pod.since, pod.bound = Stage.STARTING, now, now
            self.version += 1
            yield "bound", pod

    def _start(self, now: float) -> Iterator[tuple[str, DemoPod]]:
        for pod in self.pods.values():
            if pod.stage is Stage.STARTING and now - pod.since >= pod.start_seconds:
                pod.stage, pod.since = Stage.READY, now
                self.version += 1
                yield "ready", pod

    def _grow(self, now: float) -> Iterator[tuple[str, DemoNode]]:
        """Act as a node autoscaler: one node at a time for what no booting node can take."""
        for pool in self.pools:
            waiting = sum(
                pod.stage is Stage.PENDING and pod.resource == pool.resource
                for pod in self.pods.values()
            )
            free, coming = self._spare(pool, now)
            wanted = waiting + self.headroom.get(pool.resource, 0)
            if wanted > free + coming and (node := self.boot(pool, now)):
                yield "booting" if waiting > coming else "ahead", node

    def _shrink(self, now: float) -> Iterator[tuple[str, DemoNode]]:
        for node in list(self.nodes):
            if not node.ready(now) or any(device.pod for device in node.devices):
                node.empty_since = None
                continue
            pool = node.pool
            free, _ = self._spare(pool, now)
            if free - len(node.devices) < self.headroom.get(pool.resource, 0):
                # Headroom consists of pods to a node autoscaler, which would have no other node.
                node.empty_since = None
                continue
            if node.empty_since is None:
                node.empty_since = now
            surplus = sum(other.pool is pool for other in self.nodes) > pool.first
            if surplus and now - node.empty_since >= pool.idle_seconds:
                self.nodes.remove(node)
                self.version += 1
                yield "removed", node

    def _spare(self, pool: DemoPool, now: float) -> tuple[int, int]:
        """Count the free devices on the pool's nodes, and the devices of booting nodes."""
        free = coming = 0
        for node in self.nodes:
            if node.pool is not pool:
                continue
            if node.ready(now):
                free += sum(device.pod is None for device in node.devices)
            else:
                coming += len(node.devices)
        return free, coming

    def _free(self, resource: str, now: float) -> tuple[DemoNode, DemoDevice] | None:
        for node in self.nodes:
            if node.pool.resource != resource or not node.ready(now):
                continue
            for device in node.devices:
                if device.pod is None:
                    return node, device
        return None

    def _add(self, pool: DemoPool, now: float, boot_seconds: float) -> DemoNode:
        self._numbers[pool.name] += 1
        name = f"{pool.name}-{self._numbers[pool.name]}"
        node = make_node(name, pool, now, now + boot_seconds)
        self.nodes.append(node)
        return node
