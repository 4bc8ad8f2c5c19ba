"""What speaks against rows of a batch that was read: the pods, and other exporters' rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from adapter.attribution.nodecontext import Sites
from adapter.attribution.pods import CONFLICT
from adapter.devices.assignment import refusal
from adapter.devices.rejects import Reject, Rejects
from adapter.devices.series import Track, disagree
from adapter.devices.state import Exporter
from adapter.store.index import OriginIndex
from apiservice.runtime.steps import Steps

_STEP: Final = 64
"""Devices that one step looks at."""


class Objections:
    """Belongs to a store. Its state may change between two steps.

    Args:
        sites: the cluster.
        exporters: the store's, by origin.
        devices: which exporters speak of a device.
        forgotten: origins that are no target any more.
        interval: seconds between two scrapes.
    """

    def __init__(
        self,
        sites: Sites,
        exporters: Mapping[str, Exporter],
        devices: OriginIndex[str],
        forgotten: Collection[str],
        interval: float,
    ) -> None:
        self._sites = sites
        self._exporters = exporters
        self._devices = devices
        self._forgotten = forgotten
        self._interval = interval

    def against(self, after: Exporter, found: Rejects) -> Steps[None]:
        """Count in ``found`` what speaks against an exporter's state after a batch."""
        yield from self._refusals(after, found)
        yield from self._conflicts(after, found)

    def _refusals(self, exporter: Exporter, found: Rejects) -> Steps[None]:
        looked = 0
        for ref, tracks in exporter.pods.items():
            pod = self._sites.pod(ref)
            for track in tracks:
                looked += 1
                if not looked % _STEP:
                    yield
                old = track.superseded or track.received != exporter.received
                if track.claim is None or old:
                    continue
                reason = refusal(track.claim, pod, track.node)
                if reason is not None:
                    reject = Reject(reason, "", track.device.id)
                    found.add(reject, exporter.received, detail=f"{ref.namespace}/{ref.name}")

    def _conflicts(self, after: Exporter, found: Rejects) -> Steps[None]:
        """Two live exporters that disagree on whom a device works for, or on its value."""
        looked = 0
        for device, tracks in after.devices.items():
            mine: list[Track] | None = None
            for origin in self._devices.of(device):
                if origin == after.origin:
                    continue
                other = self._exporters.get(origin)
                if other is None or not self._live(other, after):
                    continue
                looked += len(tracks)
                if looked >= _STEP:
                    looked = 0
                    yield
                mine = self._believed(tracks) if mine is None else mine
                if disagree(mine, self._believed(other.devices.get(device, ()))):
                    reject = Reject(CONFLICT, "", device)
                    found.add(reject, after.received, detail=f"{after.origin} and {origin}")

    def _live(self, other: Exporter, after: Exporter) -> bool:
        recent = other.received > after.received - 2 * self._interval
        return recent and other.origin not in self._forgotten

    def _believed(self, tracks: Iterable[Track]) -> list[Track]:
        """The tracks without those that name a pod which cannot have the device."""
        return [track for track in tracks if track.claim is None or self._sites.believes(track)]
