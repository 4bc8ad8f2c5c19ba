"""Utilisation read directly from the simulated devices, for days that run without ``serve``."""

from __future__ import annotations

from collections import deque

from adapter.demo.client import Answer
from adapter.demo.fleet import Stage
from adapter.demo.server import SCRAPE, WINDOW
from adapter.demo.world import World
from adapter.hpa import Missing

_KEPT = round(WINDOW / SCRAPE)


class Gauge:
    """Answers as ``serve`` would: each ready pod's percentage, averaged over its window."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._busy: dict[str, deque[float]] = {}

    def look(self) -> None:
        """Take the sample that a scrape would return now."""
        samples: dict[str, deque[float]] = {}
        for pod in self._world.fleet.pods.values():
            if pod.stage is Stage.READY and pod.device is not None:
                samples[pod.name] = self._busy.get(pod.name, deque(maxlen=_KEPT))
                samples[pod.name].append(100 * pod.device.busy)
        self._busy = samples

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the service's pods; ``namespace`` and ``metric`` are not used."""
        service = label_selector.removeprefix("app=")
        values = {
            pod.name: round(1000 * sum(seen) / len(seen))
            for pod in self._world.fleet.of(service)
            if (seen := self._busy.get(pod.name))
        }
        return values or Missing("no pod has a value")
