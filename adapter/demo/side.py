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
    """The namespace of its services, by which ``serve`` distinguishes the two clusters."""
    world: World
    autoscalers: Sequence[DemoAutoscaler]
    nudge: Nudge | None = None
    """None: its node autoscaler waits until a pod does."""
