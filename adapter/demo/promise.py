"""``inference_slo_ratio`` of the simulated servers, by the control law that ``serve`` has.

``serve`` counts requests over a minute of real time, which is a large part of the story. So the
story's minutes are counted here, and the rest is the real code: windows of the servers' counters,
what they teach, and the value of each pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from adapter.answers.promises.workload import PromisedWorkload
from adapter.demo.client import Answer
from adapter.demo.fleet import Stage
from adapter.demo.service import FIRST_BOUNDS, ReplicaPage
from adapter.demo.world import World
from adapter.hpa import Missing
from adapter.pipeline.catalog.increases import increase_between
from adapter.pipeline.catalog.promise import parse_promise
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow
from adapter.pipeline.catalog.servermeasures import WINDOW

_TOKENS: Final = 60.0
"""Tokens of an answer for each second of work."""

_Pages = deque[tuple[float, ReplicaPage]]


class PromiseReader:
    """Answers an HPA on a promise.

    Args:
        world: the simulated cluster.
        promise: as the HPA's metric selector states it.
    """

    def __init__(self, world: World, promise: Mapping[str, str]) -> None:
        self._world = world
        self.workload = PromisedWorkload(parse_promise(promise))
        self._pages: dict[str, _Pages] = {}

    def scrape(self) -> None:
        """Take the page of each server that is ready."""
        now, earlier = self._world.now, self._pages
        self._pages = {}
        for pod in self._world.fleet.pods.values():
            if pod.stage is not Stage.READY:
                continue
            pages = self._pages[pod.name] = earlier.get(pod.name) or deque()
            while pages and pages[0][0] < now - WINDOW:
                pages.popleft()
            if not pages or pages[-1][0] < now:
                pages.append((now, self._world.services[pod.service].page(pod.name)))

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the ratio of the service's pods; ``namespace`` and ``metric`` are not used."""
        names = {pod.name for pod in self._world.fleet.of(label_selector.removeprefix("app="))}
        windows = {
            name: _window(pages)
            for name, pages in self._pages.items()
            if name in names and len(pages) > 1
        }
        self.workload.observe(windows, {})
        ratios = self.workload.ratios(windows, {})
        values = {name: round(1000 * ratio.value) for name, (ratio, _) in ratios.items()}
        return values or Missing("no pod has a value")


def _window(pages: _Pages) -> RequestWindow:
    """Return what ``serve`` makes of a server's pages."""
    (start, before), (now, after) = pages[0], pages[-1]
    seconds = now - start
    rows = [(time, tuple(accumulate(page.first)), None) for time, page in (pages[0], pages[-1])]
    return RequestWindow(
        time=now,
        latencies={Latency.FIRST_TOKEN: increase_between(rows, FIRST_BOUNDS)},
        output_tokens=_TOKENS * (after.worked - before.worked) / seconds,
        requests=(after.ended - before.ended) / seconds,
        running=after.running,
        waiting=after.waiting,
        cache=None,
    )
