"""Policies of the simulator beside those of ``replay``."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.tools.replay.nodeworld import NodeMoment
from research.world import TICK


class Oracle:
    """Knows what the HPA will ask for within a boot time: what no forecast can beat."""

    def __init__(self, replicas: Sequence[int], begin: float, lead: float) -> None:
        """Take the HPA's replicas by tick, as they are where nothing is ever pending."""
        self._replicas = replicas
        self._begin = begin
        self._ticks = int(lead // TICK) + 5  # until the next decision's nodes are up

    def headroom(self, moment: NodeMoment) -> int:
        tick = int(moment.now - self._begin) // TICK
        ahead = max(self._replicas[tick : tick + self._ticks])
        return max(0, ahead - moment.bound - moment.pending)
