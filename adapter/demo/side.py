"""One of the two clusters that get the same load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.nudge import Nudge
from adapter.demo.world import World


@dataclass(frozen=True, slots=True)
class Side:
    """A simulated cluster, the HPAs on it, and whether its nodes are ordered ahead."""

    namespace: str
    """Of its services; by it ``serve`` tells the two apart."""
    world: World
    autoscalers: Sequence[DemoAutoscaler]
    nudge: Nudge | None = None
    """None: its node autoscaler waits until a pod does."""
