"""Models of the node autoscalers: when each adds how many 1-GPU nodes.

They follow the autoscalers' code, and were compared with the programs on a real control plane
(docs/nodepool.md, "Rounds"). Neither withdraws a node that boots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adapter.nodepool.plan.order import Tie

FOREVER = float("inf")


@dataclass
class Node:
    """A node with one GPU."""

    name: str
    usable: float
    """Seconds at which it is Ready."""
    pod: bool = False
    """Whether a pod of the workload runs on it."""


@dataclass(frozen=True)
class Seen:
    """What an autoscaler sees in a round."""

    pending: Sequence[float]
    """When each pod without a node was created, in seconds."""
    nodes: Sequence[Node]
    held: int
    """Pods of the CapacityBuffer."""
    tie: Tie | None
    """Which nodes admit them; None for all nodes."""
    placeholders: Sequence[float] = ()
    """When each placeholder without a node was created."""
    bound: int = 0
    """Placeholders on nodes."""


class NodeAutoscaler(Protocol):
    """One autoscaler."""

    waits: bool
    """As in :class:`adapter.nodepool.model.capacity.Pool`."""
    rounds: int
    """Rounds so far."""

    def pods_changed(self, second: float) -> None:
        """Pods were created, or the buffer was changed."""

    def add(self, seen: Seen, second: float) -> int:
        """Return the nodes that it adds now."""

    def removed(self, seen: Seen, second: float) -> set[str]:
        """Return the names of the nodes that the round of this second removes."""


@dataclass
class Karpenter:
    """Karpenter 1.14 and 1.15: it collects changes until there has been none for a second.

    ``BATCH_IDLE_DURATION`` in ``pkg/operator/options/options.go``; a changed CapacityBuffer starts
    a pass too (``pkg/controllers/capacitybuffer/controller.go``).
    """

    waits = False
    rounds: int = 0
    _at: float = FOREVER

    def pods_changed(self, second: float) -> None:
        """Wait for a second without a change."""
        self._at = second + 1.0

    def add(self, seen: Seen, second: float) -> int:
        """Provide for all pods and all pods of the buffer."""
        if second < self._at:
            return 0
        self._at = FOREVER
        self.rounds += 1
        free = sum(not node.pod for node in seen.nodes) - seen.bound
        return max(0, len(seen.pending) + len(seen.placeholders) + seen.held - free)

    def removed(self, seen: Seen, second: float) -> set[str]:
        """Remove none: on Karpenter, the removal is tested with the program."""
        return set()


@dataclass
class ClusterAutoscaler:
    """The cluster-autoscaler 1.36.1, with CapacityBuffers.

    - A round starts when a pod becomes unschedulable, after a round that added nodes, and every
      ``--scan-interval`` (``loop/trigger.go``, with the default ``--frequent-loops-enabled``).
    - The pods of buffers are added to the pending ones, and what fits on free and upcoming nodes is
      left out (``processors/capacitybuffer``, ``core/podlistprocessor``).
    - It adds no node while all pods are younger than 30 s. Pods of buffers have no age
      (``allPodsAreNew`` in ``core/static_autoscaler.go``).
    - A node on which neither a pod nor one of a buffer fits is unneeded, and is removed after
      ``--scale-down-unneeded-time`` (``core/scaledown/unneeded/nodes.go``).
    """

    scan: float = 10.0
    unneeded: float = FOREVER
    """Seconds."""
    waits = True
    _since: dict[str, float] = field(default_factory=dict)
    """Unneeded nodes, and since when."""
    _due: float = 0.0
    _triggered: float = FOREVER
    rounds: int = 0

    def pods_changed(self, second: float) -> None:
        """Start a round as soon as the scheduler has found no node for them."""
        self._triggered = min(self._triggered, second + 0.1)

    def add(self, seen: Seen, second: float) -> int:
        """Run a round if one is due."""
        if second < min(self._due, self._triggered):
            return 0
        self._triggered = FOREVER
        self._due = second + self.scan
        self.rounds += 1
        pods = [*seen.pending, *seen.placeholders]
        free = [node for node in seen.nodes if not node.pod][seen.bound :]
        waiting, free = pods[len(free) :], free[len(pods) :]
        named = seen.tie.nodes if seen.tie is not None else ()
        if seen.tie is not None and seen.tie.only:
            fit = sum(node.name in named and node.usable <= second for node in free)
            lost, orders = seen.held - min(seen.held, fit), 0
        else:
            lost = orders = max(0, seen.held - sum(node.name not in named for node in free))
        if not lost and all(second - created < 30 for created in waiting):
            return 0
        added = len(waiting) + orders
        if added:
            self._due = second
        return added

    def removed(self, seen: Seen, second: float) -> set[str]:
        """Return the names of the nodes that the round of this second removes."""
        free = [node for node in seen.nodes if not node.pod and node.usable <= second]
        free = free[seen.bound + len(seen.pending) :]
        named = seen.tie.nodes if seen.tie is not None else ()
        only = seen.tie is not None and seen.tie.only
        kept = [node.name for node in free if (node.name in named) == only][: seen.held]
        spare = {node.name for node in free} - set(kept)
        self._since = {name: self._since.get(name, second) for name in spare}
        return {name for name in spare if second - self._since[name] >= self.unneeded}
