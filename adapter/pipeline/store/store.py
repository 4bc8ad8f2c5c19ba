"""The store: sources add scrape results, and readers take snapshots.

Each scrape result replaces the :class:`~adapter.pipeline.devices.state.ExporterState` of its
origin as a whole. So its cost depends only on its own samples, and a reader never sees an
incomplete one. A snapshot is made when a reader asks for it, not with every scrape result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping
from functools import partial
from typing import Final, NamedTuple

import structlog

from adapter.pipeline.attribution.nodecontext import (
    ClusterContext,
    NodeContexts,
    NodeTable,
    Pods,
    nodes_of,
)
from adapter.pipeline.attribution.policy import SharingOptions
from adapter.pipeline.attribution.recognition import Recognition
from adapter.pipeline.attribution.servers import Servers
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.seriesdemand import SeriesDemand
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.ingest import absorb
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.pages import LastPages
from adapter.pipeline.devices.readpages import NO_PAGES, ReadPages
from adapter.pipeline.devices.rejects import Rejects
from adapter.pipeline.devices.state import ExporterState
from adapter.pipeline.exposition.limits import OVER_BUDGET
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.index import OriginIndex
from adapter.pipeline.store.objections import Objections
from adapter.pipeline.store.outlook import NO_OUTLOOK, Outlook
from adapter.pipeline.store.serverbudget import ServerBudget
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps, at_once

log = structlog.get_logger(__name__)

_RETENTION: Final = 600.0
"""Seconds for which a silent exporter's last samples are kept, at least.

Past the age limit they are not served. They distinguish the reason ``stale`` from
``exporter_down``.
"""


class Size(NamedTuple):
    """How much a store holds."""

    exporters: int
    devices: int
    pods: int
    """Pods that samples name."""
    all_series: int
    """Devices, once for each pod that samples name for one."""


class _Read(NamedTuple):
    """What a scrape result changes."""

    state: ExporterState
    rejects: Rejects
    objections: Rejects | None
    """Those of ``rejects`` that depend on other exporters and on pods; None if there can be none,
    because only numbers changed."""


class Store:
    """Implements :class:`adapter.pipeline.exposition.samples.Sink`. Not thread-safe."""

    def __init__(
        self,
        catalog: Catalog,
        options: TelemetryOptions,
        pods: Pods,
        nodes: NodeTable | None = None,
        sharing: SharingOptions | None = None,
    ) -> None:
        self.rejects = Rejects()
        self.pages: ReadPages = NO_PAGES
        """The pages that the source reads; the source's owner sets it."""
        self.outlook: Outlook = NO_OUTLOOK
        """What is known of the next minutes; the owner of the store sets it."""
        self.demand = SeriesDemand(catalog)
        """Which series the source should read now."""
        self._catalog = catalog
        self._options = options
        self._pods = pods
        self._cluster = ClusterContext(catalog, pods, nodes, sharing or SharingOptions())
        self._recognition = Recognition(self._cluster)
        self._exporters: dict[str, ExporterState] = {}
        self._order: OrderedDict[str, None] = OrderedDict()
        """The same origins in order of the last scrape result, the oldest first. They are kept
        apart because each snapshot copies the exporters, and a copy of an OrderedDict takes ten
        times as long."""
        self._holders: OriginIndex[PodRef] = OriginIndex()
        self._servers = Servers(pods)
        self._devices: OriginIndex[str] = OriginIndex()
        self._nodes: OriginIndex[str] = OriginIndex()
        self._nodes_of: dict[str, frozenset[str]] = {}
        self._forgotten: set[str] = set()
        self._objections = Objections(
            self._cluster,
            self._exporters,
            self._devices,
            self._forgotten,
            options.scrape_interval,
        )
        self._server_budget = ServerBudget(options.server_bytes)
        self._series = 0
        """Device series of all exporters."""
        self._version = 0
        self._snapshot: Snapshot | None = None

    def ingest(self, result: ScrapeResult) -> None:
        """Take a scrape result. Invalid samples do not raise an error: they are counted."""
        at_once(self.steps(result))

    def steps(self, result: ScrapeResult) -> Steps[None]:
        """Take a scrape result in steps. It becomes visible, and is counted, with the last step.

        Scrape results of several origins may be in progress. If the state of a result's origin
        changes in the meantime, because another result was taken or the origin was dropped, the
        result is read again without a pause.
        """
        before = self._exporters.get(result.origin)
        read = yield from self._read(before, result)
        if self._exporters.get(result.origin) is not before:
            before = self._exporters.get(result.origin)
            read = at_once(self._read(before, result))
        after = read.state
        self.rejects.merge(read.rejects)
        evict = partial(self._drop, now=result.received)
        if result.serves and not self._server_budget.admit(after, evict):
            self.rejects.count(OVER_BUDGET, len(result.samples))
        else:
            self._forgotten.discard(result.origin)
            if read.objections is None:
                self._keep(after)
            else:
                self._put(before, after)
                self._objections.note(after, read.objections)
            self._replace_pages(result)
        self._evict(result.received)
        self.demand.forget(result.received)
        self._note_change()

    def _read(self, before: ExporterState | None, result: ScrapeResult) -> Steps[_Read]:
        """Return the new state of the origin, and its rejects, without a change to the store."""
        rejects = Rejects()
        for reason, times in result.rejects.items():
            rejects.count(reason, times)
        after = None
        if before is not None and isinstance(before.pages, LastPages):
            after = yield from before.pages.after(before, result, rejects, self._cluster)
        if after is None:
            after = yield from absorb(
                before, result, self._catalog, self._options, rejects, self._cluster
            )
        if self._objections.is_clear(after):
            return _Read(after, rejects, None)
        objections = Rejects()
        yield from self._objections.against(after, objections)
        rejects.merge(objections)
        return _Read(after, rejects, objections)

    def forget(self, origin: str) -> None:
        """Note that the origin is no longer a target; its samples are kept until the age limit."""
        if origin in self._exporters:
            self._forgotten.add(origin)

    @property
    def size(self) -> Size:
        """Return how much the store holds."""
        return Size(len(self._exporters), len(self._devices), len(self._holders), self._series)

    def count_silent(self, now: float) -> int:
        """Return the number of exporters whose last samples are past the age limit."""
        last = now - self._options.oldest
        return sum(1 for exporter in self._exporters.values() if exporter.received < last)

    def ages(self, now: float) -> tuple[float, float] | None:
        """Return the seconds since the youngest and since the oldest scrape result of an exporter.

        None before the first.
        """
        if not self._exporters:
            return None
        received = [exporter.received for exporter in self._exporters.values()]
        return max(0.0, now - max(received)), max(0.0, now - min(received))

    @property
    def sharing_nodes(self) -> Mapping[str, int]:
        """Return evidence -> number of nodes that are known to share devices because of it."""
        return self._recognition.by_evidence()

    def attributions(self) -> Generator[None, None, Mapping[str, int]]:
        """Count in steps: attribution of utilisation -> devices, once per pod."""
        return self.snapshot.attributions(dict(self._recognition.exclusive))

    @property
    def version(self) -> int:
        """A number that changes with every scrape result."""
        return self._version

    @property
    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current state; the same object until a scrape result arrives."""
        if self._snapshot is None:
            holders, _ = self._holders.view()
            _, contested = self._devices.view()
            on_node, _ = self._nodes.view()
            exporters = dict(self._exporters)
            self._snapshot = Snapshot(
                version=self._version,
                catalog=self._catalog,
                options=self._options,
                exporters=exporters,
                holders=holders,
                contested=contested,
                servers=self._servers,
                pages=self.pages,
                demand=self.demand,
                rejects=self.rejects.recent,
                outlook=self.outlook,
                contexts=NodeContexts(self._cluster, exporters, on_node, self._recognition.view()),
            )
        return self._snapshot

    def _note_change(self) -> None:
        self._version += 1
        self._snapshot = None

    def _put(self, before: ExporterState | None, after: ExporterState) -> None:
        origin = after.origin
        nodes = nodes_of(after, self._cluster)
        self._move(origin, before, after, nodes)
        self._recognition.note(after, nodes)
        self._keep(after)

    def _keep(self, after: ExporterState) -> None:
        before = self._exporters.get(after.origin)
        self._series += len(after.outline.all_series)
        self._series -= len(before.outline.all_series) if before else 0
        self._exporters[after.origin] = after
        self._order[after.origin] = None
        self._order.move_to_end(after.origin)

    def _evict(self, now: float) -> None:
        """Drop forgotten exporters past the age limit, and silent ones past the retention."""
        for origin in [o for o in self._forgotten if self._silence(o, now) >= self._options.oldest]:
            self._drop(origin, now)
        keep = max(_RETENTION, 2 * self._options.oldest)
        while self._order and self._silence(next(iter(self._order)), now) >= keep:
            self._drop(next(iter(self._order)), now)

    def _replace_pages(self, result: ScrapeResult) -> None:
        """Drop the forgotten pages of a pod whose page is read: its annotations name other ports.

        The servers at the old and at the new ports would be added up until the age limit.
        """
        if not result.serves or result.pod is None or not self._forgotten:
            return
        ref = PodRef(*result.pod)
        for origin in self._forgotten.intersection(self._holders.of(ref)):
            # The page of an exporter names the pod too; it is kept until the age limit.
            if all(series.serves for series in self._exporters[origin].outline.pods[ref]):
                self._drop(origin, result.received)

    def _silence(self, origin: str, now: float) -> float:
        """Return the absolute time since the last scrape result: the clock may be set back."""
        return abs(now - self._exporters[origin].received)

    def _drop(self, origin: str, now: float) -> None:
        exporter = self._exporters.pop(origin)
        del self._order[origin]
        self._series -= len(exporter.outline.all_series)
        self._server_budget.drop(origin)
        self._objections.drop(origin)
        self._forgotten.discard(origin)
        self._move(origin, exporter, None, frozenset())
        self._recognition.forget_exporter(origin)
        log.info("exporter forgotten", origin=origin, silent_seconds=now - exporter.received)

    def _move(
        self,
        origin: str,
        before: ExporterState | None,
        after: ExporterState | None,
        nodes: frozenset[str],
    ) -> None:
        """Update every index with the nodes, devices and pods that an exporter reports now."""
        pods, devices = (before.outline.pods, before.outline.devices) if before else ({}, {})
        now_pods, still = (after.outline.pods, after.outline.devices) if after else ({}, {})
        gone = pods.keys() - now_pods.keys()
        self._servers.note(ref for ref in gone if any(series.serves for series in pods[ref]))
        self._holders.move(origin, pods, now_pods)
        self._devices.move(origin, devices, still)
        for device in devices.keys() - still.keys():
            if not self._devices.of(device):
                self._recognition.forget(device)
        old_nodes = self._nodes_of.pop(origin, frozenset())
        self._nodes.move(origin, old_nodes, nodes)
        if nodes:
            self._nodes_of[origin] = nodes
        for node in old_nodes - nodes:
            self._recognition.forget_node(node, origin)
            if not self._nodes.of(node):
                self._cluster.forget(node)
