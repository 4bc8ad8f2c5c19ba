"""Find objections to a scrape result: mismatches with pods, and conflicts between exporters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from adapter.pipeline.attribution.nodecontext import ClusterContext, Stamp, nodes_of
from adapter.pipeline.attribution.values import CONFLICT
from adapter.pipeline.devices.assignment import mismatch
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.series import DeviceSeries, disagree
from adapter.pipeline.devices.state import Contents, ExporterState
from adapter.pipeline.store.index import OriginIndex
from apiservice.runtime.steps import Steps

_STEP: Final = 64
"""Devices that one step checks."""


class _Clear(NamedTuple):
    """An exporter to whose last page there was no objection, and what that depends on."""

    outline: Contents
    """What its pages are about."""
    nodes: Mapping[str, Stamp]


class Objections:
    """Checks scrape results against a store, whose state may change between two steps.

    Args:
        cluster: the pods and nodes.
        exporters: the store's exporter states, by origin.
        devices: which exporters report a device.
        forgotten: origins that are no longer targets.
        interval: seconds between two scrapes.
    """

    def __init__(
        self,
        cluster: ClusterContext,
        exporters: Mapping[str, ExporterState],
        devices: OriginIndex[str],
        forgotten: Collection[str],
        interval: float,
    ) -> None:
        self._cluster = cluster
        self._exporters = exporters
        self._devices = devices
        self._forgotten = forgotten
        self._interval = interval
        self._clear: dict[str, _Clear] = {}

    def is_clear(self, after: ExporterState) -> bool:
        """Return whether there can be no objection, as only numbers changed since the last page."""
        clear = self._clear.get(after.origin)
        return (
            clear is not None
            and clear.outline is after.outline
            and all(self._cluster.stamp(node) == stamp for node, stamp in clear.nodes.items())
            and not self._devices.is_any_contested(clear.outline.devices)
        )

    def note(self, after: ExporterState, rejects: Rejects) -> None:
        """Note the objections to an exporter's last page."""
        self.drop(after.origin)
        if after.pages is None or rejects.totals:
            return
        pods = [self._cluster.pod(ref) for ref in after.outline.pods]
        # One that starts after the page may be compared with a later page differently.
        if all(pod is None or pod.born < after.received for pod in pods):
            nodes = nodes_of(after, self._cluster)
            stamps = {node: self._cluster.stamp(node) for node in nodes}
            self._clear[after.origin] = _Clear(after.outline, stamps)

    def drop(self, origin: str) -> None:
        """Forget an exporter."""
        self._clear.pop(origin, None)

    def against(self, after: ExporterState, rejects: Rejects) -> Steps[None]:
        """Count in ``rejects`` the objections to an exporter's state after a scrape result."""
        yield from self._refusals(after, rejects)
        yield from self._conflicts(after, rejects)

    def _refusals(self, exporter: ExporterState, rejects: Rejects) -> Steps[None]:
        looked = 0
        for ref, all_series in exporter.pods.items():
            pod = self._cluster.pod(ref)
            for series in all_series:
                looked += 1
                if not looked % _STEP:
                    yield
                old = series.superseded or series.received != exporter.received
                if series.assignment is None or old:
                    continue
                reason = mismatch(series.assignment, pod, series.node)
                if reason is not None:
                    reject = Reject(reason, "", series.device.id)
                    rejects.add(reject, exporter.received, detail=f"{ref.namespace}/{ref.name}")

    def _conflicts(self, after: ExporterState, rejects: Rejects) -> Steps[None]:
        """Count live exporters that disagree on the pod of a device, or on its value."""
        looked = 0
        for device, all_series in after.devices.items():
            mine: list[DeviceSeries] | None = None
            for origin in self._devices.of(device):
                if origin == after.origin:
                    continue
                other = self._exporters.get(origin)
                if other is None or not self._is_live(other, after):
                    continue
                looked += len(all_series)
                if looked >= _STEP:
                    looked = 0
                    yield
                mine = self._believed_series(all_series) if mine is None else mine
                if disagree(mine, self._believed_series(other.devices.get(device, ()))):
                    reject = Reject(CONFLICT, "", device)
                    rejects.add(reject, after.received, detail=f"{after.origin} and {origin}")

    def _is_live(self, other: ExporterState, after: ExporterState) -> bool:
        recent = other.received > after.received - 2 * self._interval
        return recent and other.origin not in self._forgotten

    def _believed_series(self, all_series: Iterable[DeviceSeries]) -> list[DeviceSeries]:
        """Return the device series without those that name a pod which cannot have the device."""
        return [
            series
            for series in all_series
            if series.assignment is None or self._cluster.believes(series)
        ]
