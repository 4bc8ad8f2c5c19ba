"""What is known now: sources put batches in, readers take snapshots out.

An :class:`~adapter.devices.state.Exporter` is replaced whole by each of its batches, so a batch
costs what its own rows cost and a reader never sees half of one. A snapshot is taken when
somebody reads, not when something is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping
from functools import partial
from typing import Final, NamedTuple

import structlog

from adapter.attribution.nodecontext import NodeTable, Places, Pods, Sites, nodes_of
from adapter.attribution.policy import SharingOptions
from adapter.attribution.recognition import Recognition
from adapter.attribution.servers import Servers
from adapter.catalog import Catalog
from adapter.cluster.pod import PodRef
from adapter.devices.ingest import absorb
from adapter.devices.options import TelemetryOptions
from adapter.devices.rejects import Rejects
from adapter.devices.state import Exporter
from adapter.exposition.limits import OVER_BUDGET
from adapter.exposition.samples import Batch
from adapter.store.index import OriginIndex
from adapter.store.objections import Objections
from adapter.store.serverbudget import ServerBudget
from adapter.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps, at_once

log = structlog.get_logger(__name__)

_RETENTION: Final = 600.0
"""Seconds that a silent exporter's last rows are kept, too old to be served, so that
``stale`` can be told from ``no_rows``."""


class Size(NamedTuple):
    """How much a store holds."""

    exporters: int
    devices: int
    pods: int
    """That rows name."""
    tracks: int
    """Devices, once for each pod that rows name for one."""


class Store:
    """Implements :class:`adapter.exposition.samples.Sink`. Belongs to one thread."""

    def __init__(
        self,
        catalog: Catalog,
        options: TelemetryOptions,
        pods: Pods,
        nodes: NodeTable | None = None,
        sharing: SharingOptions | None = None,
    ) -> None:
        self.rejects = Rejects()
        self._catalog = catalog
        self._options = options
        self._pods = pods
        self._sites = Sites(catalog, pods, nodes, sharing or SharingOptions())
        self._recognition = Recognition(self._sites)
        self._exporters: OrderedDict[str, Exporter] = OrderedDict()
        """In order of the last batch, the longest silent first."""
        self._holders: OriginIndex[PodRef] = OriginIndex()
        self._servers = Servers(pods)
        self._devices: OriginIndex[str] = OriginIndex()
        self._nodes: OriginIndex[str] = OriginIndex()
        self._nodes_of: dict[str, frozenset[str]] = {}
        self._forgotten: set[str] = set()
        self._objections = Objections(
            self._sites,
            self._exporters,
            self._devices,
            self._forgotten,
            options.scrape_interval,
        )
        self._server_budget = ServerBudget(options.server_bytes)
        self._version = 0
        self._snapshot: Snapshot | None = None

    def ingest(self, batch: Batch) -> None:
        """Take a batch. Never raises for bad rows: they are counted."""
        at_once(self.steps(batch))

    def steps(self, batch: Batch) -> Steps[None]:
        """Take a batch in steps. Nothing of it is visible, or counted, before the last.

        Batches of several origins may be under way. A batch whose origin changes meanwhile, since
        another batch of it was taken or it was dropped, is read again, without a pause.
        """
        before = self._exporters.get(batch.origin)
        after, rejects = yield from self._read(before, batch)
        if self._exporters.get(batch.origin) is not before:
            before = self._exporters.get(batch.origin)
            after, rejects = at_once(self._read(before, batch))
        self.rejects.merge(rejects)
        evict = partial(self._drop, now=batch.received)
        if batch.serves and not self._server_budget.admit(after, evict):
            self.rejects.count(OVER_BUDGET, len(batch.rows))
        else:
            self._forgotten.discard(batch.origin)
            self._put(before, after)
        self._evict(batch.received)
        self._changed()

    def _read(self, before: Exporter | None, batch: Batch) -> Steps[tuple[Exporter, Rejects]]:
        """What a batch makes of its origin, and what is to be counted. Changes nothing."""
        rejects = Rejects()
        for reason, times in batch.rejects.items():
            rejects.count(reason, times)
        after = yield from absorb(before, batch, self._catalog, self._options, rejects, self._sites)
        yield from self._objections.against(after, rejects)
        return after, rejects

    def forget(self, origin: str) -> None:
        """The origin is no longer a target; its rows stand until the age limit."""
        if origin in self._exporters:
            self._forgotten.add(origin)

    @property
    def size(self) -> Size:
        """How much is held."""
        rows = sum(len(exporter.tracks) for exporter in self._exporters.values())
        return Size(len(self._exporters), len(self._devices), len(self._holders), rows)

    def silent(self, now: float) -> int:
        """Exporters held whose last rows are past the age limit."""
        last = now - self._options.oldest
        return sum(1 for exporter in self._exporters.values() if exporter.received < last)

    @property
    def sharing_nodes(self) -> Mapping[str, int]:
        """Evidence -> nodes known by it to share devices."""
        return self._recognition.by_evidence()

    def attributions(self) -> Generator[None, None, Mapping[str, int]]:
        """How pods are given their devices' utilisation -> devices, once per pod, in steps."""
        return self.snapshot.attributions(dict(self._recognition.exclusive))

    @property
    def version(self) -> int:
        """Changes with every batch."""
        return self._version

    @property
    def snapshot(self) -> Snapshot:
        """Everything known now. The same object until a batch arrives."""
        if self._snapshot is None:
            holders, _ = self._holders.lend()
            _, contested = self._devices.lend()
            on_node, _ = self._nodes.lend()
            exporters = dict(self._exporters)
            self._snapshot = Snapshot(
                version=self._version,
                catalog=self._catalog,
                options=self._options,
                exporters=exporters,
                holders=holders,
                contested=contested,
                servers=self._servers,
                places=Places(self._sites, exporters, on_node, self._recognition.lend()),
            )
        return self._snapshot

    def _changed(self) -> None:
        self._version += 1
        self._snapshot = None

    def _put(self, before: Exporter | None, after: Exporter) -> None:
        origin = after.origin
        nodes = nodes_of(after, self._sites)
        self._move(origin, before, after, nodes)
        self._recognition.note(after, nodes)
        self._exporters[origin] = after
        self._exporters.move_to_end(origin)

    def _evict(self, now: float) -> None:
        """Drop the forgotten exporters past the age limit and the silent ones past retention."""
        for origin in [o for o in self._forgotten if self._silence(o, now) >= self._options.oldest]:
            self._drop(origin, now)
        keep = max(_RETENTION, 2 * self._options.oldest)
        while self._exporters and self._silence(next(iter(self._exporters)), now) >= keep:
            self._drop(next(iter(self._exporters)), now)

    def _silence(self, origin: str, now: float) -> float:
        """Seconds since the last batch, in either direction: the clock may be set back."""
        return abs(now - self._exporters[origin].received)

    def _drop(self, origin: str, now: float) -> None:
        exporter = self._exporters.pop(origin)
        self._server_budget.drop(origin)
        self._forgotten.discard(origin)
        self._move(origin, exporter, None, frozenset())
        self._recognition.silent(origin)
        log.info("exporter forgotten", origin=origin, silent_seconds=now - exporter.received)

    def _move(
        self, origin: str, before: Exporter | None, after: Exporter | None, nodes: frozenset[str]
    ) -> None:
        """Tell every index what an exporter speaks of now: nodes and devices come and go."""
        pods, devices = (before.pods, before.devices) if before else ({}, {})
        still = after.devices if after else {}
        gone = pods.keys() - after.pods.keys() if after else pods.keys()
        self._servers.note(ref for ref in gone if any(track.serves for track in pods[ref]))
        self._holders.move(origin, pods, after.pods if after else ())
        self._devices.move(origin, devices, still)
        for device in devices.keys() - still.keys():
            if not self._devices.of(device):
                self._recognition.forget(device)
        known = self._nodes_of.pop(origin, frozenset())
        self._nodes.move(origin, known, nodes)
        if nodes:
            self._nodes_of[origin] = nodes
        for node in known - nodes:
            self._recognition.forget_node(node, origin)
            if not self._nodes.of(node):
                self._sites.forget(node)
