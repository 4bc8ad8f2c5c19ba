"""What happened, newest first: differences between two looks, and the cluster's events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from adapter.tools.overview.hpas import HpaSummary
from adapter.tools.ui.clusterevents import entry_of
from adapter.tools.ui.devicechanges import Devices, NodesSeen, device_changes
from adapter.tools.ui.entries import TimelineEntry
from adapter.tools.ui.objectchanges import PodFact, PodKey, hpa_changes, panel_changes, pod_changes
from adapter.tools.ui.panels import PanelState

Json = dict[str, Any]

MOST: Final = 500
"""Entries; the oldest are dropped."""
_SAME: Final = 90.0
"""Seconds between a change of replicas that was seen, and the event that explains it."""


class Timeline:
    """Compares each list with its last version. The first version of a list changes nothing."""

    def __init__(self) -> None:
        self._seen: list[TimelineEntry] = []
        self._events: dict[str, TimelineEntry] = {}
        self._devices: Devices | None = None
        self._lost: set[str] = set()
        """Nodes that may be there, and that exporters no longer report."""
        self._pods: Mapping[PodKey, PodFact] | None = None
        self._hpas: Mapping[PodKey, HpaSummary] | None = None
        self._panels: Mapping[str, PanelState] = {}

    def devices(self, now: float, after: Devices, nodes: NodesSeen) -> None:
        """Take the devices, and the nodes that are there."""
        if self._devices is not None:
            self._add(device_changes(self._devices, after, now, nodes._replace(lost=self._lost)))
            gone = {fact.node for fact in self._devices.values()}
            gone -= {fact.node for fact in after.values()}
            lost = self._lost | gone if nodes.there is None else (self._lost | gone) & nodes.there
            self._lost = lost - {fact.node for fact in after.values()}
        self._devices = after

    def pods(self, now: float, after: Mapping[PodKey, PodFact]) -> None:
        """Take the pods."""
        if self._pods is not None:
            self._add(pod_changes(self._pods, after, now))
        self._pods = after

    def hpas(self, now: float, states: Iterable[HpaSummary]) -> None:
        """Take the HPAs."""
        after = {(state.namespace, state.name): state for state in states}
        if self._hpas is not None:
            self._add(hpa_changes(self._hpas, after, now))
        self._hpas = after

    def panels(self, now: float, after: Mapping[str, PanelState]) -> None:
        """Take how the lists were read."""
        self._add(panel_changes(self._panels, after, now))
        self._panels = after

    def events(self, rows: Iterable[Json]) -> None:
        """Take the cluster's events. An event that the cluster deleted stays."""
        gpu_pods: Collection[PodKey] = self._pods.keys() if self._pods is not None else ()
        for row in rows:
            try:
                entry = entry_of(row, gpu_pods)
            except (AttributeError, TypeError, ValueError):  # an event of another form
                continue
            if entry is not None:
                self._events[str((row.get("metadata") or {}).get("uid") or entry[3:])] = entry
        if len(self._events) > MOST:
            newest = sorted(self._events.items(), key=lambda item: -item[1].time)[:MOST]
            self._events = dict(newest)

    def entries(self) -> list[TimelineEntry]:
        """Return the entries, newest first. An event stands for the change that it explains."""
        scaled = [entry for entry in self._events.values() if entry.kind == "scale"]
        unexplained = [entry for entry in self._seen if not _is_explained(entry, scaled)]
        return sorted([*unexplained, *self._events.values()], key=lambda entry: -entry.time)[:MOST]

    def _add(self, entries: Iterable[TimelineEntry]) -> None:
        self._seen = [*self._seen, *entries][-MOST:]


def _is_explained(entry: TimelineEntry, events: Iterable[TimelineEntry]) -> bool:
    if entry.kind != "scale":
        return False
    size = entry.text.rpartition(" ")[2]
    return any(
        event.about == entry.about
        and event.text.rpartition(" ")[2] == size
        and abs(event.time - entry.time) <= _SAME
        for event in events
    )
