"""One of the two simulated clusters, which get the same load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.nudge import Nudge
from adapter.demo.world import World


@dataclass(frozen=True, slots=True)
class Side:
    """A simulated cluster, its HPAs, and its nodepool controller if it has one."""

    namespace: str
    """The namespace of its services, by which ``serve`` distinguishes the two clusters."""
    world: World
    autoscalers: Sequence[DemoAutoscaler]
    nudge: Nudge | None = None
    """None: its node autoscaler adds nodes only when pods wait."""
