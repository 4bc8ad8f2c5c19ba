"""Read a recording for its servers' latencies, and learn what a pod can take at a promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from adapter.answers.promises.capacity import PodCapacity
from adapter.answers.promises.workload import PromisedWorkload
from adapter.hpa import HpaSpec
from adapter.pipeline.catalog.promise import SLO_RATIO, Promise
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.recording.events import Begun, Missed, PageRead, Recording
from adapter.server.recording.settings import restore_settings
from adapter.tools.replay.servedlatencies import PAGE_METRICS, ServedLatencies
from adapter.tools.replay.virtualcluster import VirtualCluster
from apiservice.labels.selector import Selector

_ASKED: Final = 15.0
"""Seconds between two questions, as an HPA asks."""


class SettledWorkload(PromisedWorkload):
    """A workload whose capacities are known from the whole of a recording.

    Args:
        promise: what is to be kept.
        capacities: type of GPU -> what a pod can take; None if nobody knows.
    """

    def __init__(self, promise: Promise, capacities: Mapping[str, PodCapacity | None]) -> None:
        super().__init__(promise)
        self._known = capacities

    def capacities(self) -> Mapping[str, PodCapacity | None]:
        """Return what is known."""
        return self._known


class ServerReading:
    """One reading of a recording, for one HPA.

    All evidence of the recording has the same weight: its first day says as much as its last.

    Args:
        spec: the HPA.
        promise: to learn the capacity for; empty to learn none.
        selector: the same as a metric's selector.
    """

    def __init__(self, spec: HpaSpec, promise: Promise, selector: Selector) -> None:
        self.served = ServedLatencies()
        self.workload = PromisedWorkload(promise, math.inf)
        self._spec = spec
        self._selector = selector
        self._cluster = VirtualCluster(lambda _: self.workload, tuple(PAGE_METRICS.values()))
        self._stored = False
        """The pages are of a store, which does not name the pod of a page."""
        self._next: float | None = None
        """Epoch seconds of the next question; None before the first page of a server."""

    def read(self, recording: Recording) -> None:
        """Read it; raises RecordingError."""
        for event in recording.events():
            if isinstance(event, Missed):
                continue
            self._ask_until(event.time)
            if isinstance(event, Begun):
                self._stored = restore_settings(event.settings).source.kind == "prometheus"
                self._next = None
            if not isinstance(event, PageRead):
                self._cluster.take(event)
                continue
            if self._about(event.result):
                self._cluster.take(event)
                self._page(event.result)
        self._ask_until(self._cluster.now)

    def _about(self, page: ScrapeResult) -> bool:
        """Return whether a page may be about a server of the HPA's target."""
        return page.serves != self._stored and self._cluster.may_show(page, self._spec)

    def _page(self, page: ScrapeResult) -> None:
        """Add up what a page counts that was taken."""
        pods = [pod for pod, _ in self._cluster.shown_pods(page, self._spec)]
        if pods:
            self.served.take(pods, self._cluster.store.snapshot, page.received)
            self._next = page.received if self._next is None else self._next

    def _ask_until(self, time: float) -> None:
        """Ask as the HPA would have done: each answer teaches."""
        while self.workload.promise and self._next is not None and self._next <= time:
            pods = self._cluster.pods_of(self._spec)
            self._cluster.values(pods, SLO_RATIO, self._selector, self._next)
            self._next += _ASKED
