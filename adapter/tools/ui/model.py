"""From what was read to the parts of the page. No I/O: it runs beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from adapter.tools.client.tables import ObjectTable
from adapter.tools.explain.headroom import NO_HEADROOM
from adapter.tools.idle.prices import PriceList
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.gpuclasses import count_classes, silent_gpus
from adapter.tools.overview.hpas import HpaSummary, summarize, workload_pods
from adapter.tools.overview.scalers import ReadScalers
from adapter.tools.overview.verdict import ClusterVerdict, IdlePrice, count_pods, verdict
from adapter.tools.ui.devicechanges import NodesSeen, device_facts
from adapter.tools.ui.gpurows import DeviceParts, SilentNode, fleet, silent_nodes, with_silent
from adapter.tools.ui.hparows import hpa_rows
from adapter.tools.ui.idlecosts import idle_price
from adapter.tools.ui.objectchanges import pod_facts
from adapter.tools.ui.panels import (
    EVENTS,
    GPUS,
    HEADROOM,
    HPAS,
    NODES,
    PODS,
    POOLS,
    WORKLOADS,
    PanelState,
)
from adapter.tools.ui.podrows import pods, pools, workloads
from adapter.tools.ui.timeline import Timeline
from adapter.tools.ui.trouble import outage, panel_rows, with_trouble

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What was read last, by panel. It is not changed."""

    panels: Mapping[str, PanelState]
    data: Mapping[str, Any]
    """Without the panels that were never read."""

    def table(self, panel: str) -> ObjectTable | None:
        """Return a panel's table."""
        found: ObjectTable | None = self.data.get(panel)
        return found


class Model:
    """Makes the parts that follow from changed panels. One call at a time.

    Args:
        prices: prices of GPUs.
        idle_after: seconds for which a device is idle.
    """

    def __init__(self, prices: PriceList, idle_after: float) -> None:
        self._prices = prices
        self._idle_after = idle_after
        self._timeline = Timeline()
        self.fleet: DeviceParts | None = None
        self._silent: list[SilentNode] = []
        """Those whose GPUs the page has as rows."""
        self._counts: dict[str, tuple[ObjectTable, Any]] = {}
        self._judged: tuple[ReadScalers, ObjectTable | None, list[HpaSummary]] | None = None

    def hpas(self, seen: PageFacts, now: float) -> list[HpaSummary] | None:
        """Return what the HPAs do, by their status and the pods of their workloads.

        They are judged once for the same lists.
        """
        read: ReadScalers | None = seen.data.get(HPAS)
        if read is None:
            return None
        fresh = WORKLOADS in seen.panels and seen.panels[WORKLOADS].status == "ok"
        table = seen.table(WORKLOADS) if fresh else None
        if self._judged is None or self._judged[0] is not read or self._judged[1] is not table:
            at = now if table is None else seen.panels[WORKLOADS].updated or now
            self._judged = (
                read,
                table,
                [*summarize(read, workload_pods(table, at), now, complete=True)],
            )
        return self._judged[2]

    def parts(self, seen: PageFacts, changed: Set[str], now: float) -> dict[str, bytes]:
        """Return the parts, by name, in the order in which they are sent."""
        found: dict[str, Any] = {"panels": panel_rows(list(seen.panels.values()))}
        gpus, gpu_pods, owners = seen.table(GPUS), seen.table(PODS), seen.table(WORKLOADS)
        if GPUS in changed and gpus is not None:
            at = seen.panels[GPUS].updated or now
            before = self.fleet.idle_since if self.fleet else {}
            self.fleet = fleet(gpus, at, before, self._idle_after)
        silent = self._once("silent nodes", _current(seen, NODES), silent_nodes) or []
        if self.fleet is not None and (GPUS in changed or silent != self._silent):
            self._silent = silent
            found["gpus"], found["load"] = with_silent(self.fleet, silent)
        whole = outage(list(seen.panels.values()))
        hpas = self.hpas(seen, now)
        made = self._verdict(seen, hpas).json()
        found["verdict"] = made | {"detail": whole.detail if whole else ""}
        if changed & {HPAS, WORKLOADS} and hpas is not None:
            found["hpas"] = hpa_rows(hpas)
        if (GPUS in changed or PODS in changed) and gpu_pods is not None:
            known = self.fleet
            of_devices = (known.pools, known.models, known.unhealthy) if known else ({}, {}, {})
            found["pods"] = pods(gpu_pods, *of_devices)
        if WORKLOADS in changed and owners is not None:
            found["workloads"] = workloads(owners)
        if changed & {POOLS, HEADROOM} and (table := seen.table(POOLS)) is not None:
            found["pools"] = pools(table, seen.data.get(HEADROOM, NO_HEADROOM))
        self._compare(seen, changed, hpas, now)
        found["timeline"] = [entry.json() for entry in self._timeline.entries()]
        return {name: _encode(content) for name, content in found.items()}

    def _compare(
        self,
        seen: PageFacts,
        changed: Collection[str],
        hpas: Sequence[HpaSummary] | None,
        now: float,
    ) -> None:
        timeline, gpu_pods = self._timeline, seen.table(PODS)
        timeline.panels(now, seen.panels)
        if _fresh(seen, changed, GPUS) and self.fleet is not None:
            timeline.devices(now, device_facts(self.fleet), _nodes_seen(seen))
        if _fresh(seen, changed, PODS) and gpu_pods is not None:
            timeline.pods(now, pod_facts(gpu_pods))
        if _fresh(seen, changed, HPAS) and hpas is not None:
            timeline.hpas(now, hpas)
        if _fresh(seen, changed, EVENTS):
            timeline.events(seen.data[EVENTS])

    def _verdict(self, seen: PageFacts, hpas: Sequence[HpaSummary] | None) -> ClusterVerdict:
        gpus, gpu_pods = _current(seen, GPUS), _current(seen, PODS)
        nodes = _current(seen, NODES)
        made = verdict(
            hpas if _readable(seen, HPAS) else None,
            self._once("pods", gpu_pods, lambda table: count_pods(Columns(table).dicts())),
            count_classes(self.fleet.classes) if gpus and self.fleet else None,
            self._once("idle", gpus, self._idle_price),
            silent=self._once("silent", nodes, lambda table: silent_gpus(Columns(table))) or 0,
        )
        return with_trouble(made, list(seen.panels.values()))

    def _idle_price(self, table: ObjectTable) -> IdlePrice:
        return idle_price(table, self._prices, self._idle_after)

    def _once(
        self, name: str, table: ObjectTable | None, make: Callable[[ObjectTable], T]
    ) -> T | None:
        """Return what is made of a table; the same table is counted once."""
        if table is None:
            return None
        known = self._counts.get(name)
        if known is None or known[0] is not table:
            known = self._counts[name] = (table, make(table))
        found: T = known[1]
        return found


def _nodes_seen(seen: PageFacts) -> NodesSeen:
    """Return which nodes are there, and of which of them no exporter reports a GPU."""
    table = _current(seen, NODES) if NODES in seen.panels else None
    if table is None:
        return NodesSeen()
    by = Columns(table)
    rows = zip(by.rows, by.numbers("Reported"), strict=True)
    reported = {row.name: number for row, number in rows}
    return NodesSeen(reported.keys(), frozenset(n for n, number in reported.items() if not number))


def _fresh(seen: PageFacts, changed: Collection[str], panel: str) -> bool:
    """Return whether a panel has new data."""
    return panel in changed and seen.panels[panel].status == "ok"


def _readable(seen: PageFacts, panel: str) -> bool:
    """Return whether the data of a panel count: a right that was lost hides them."""
    return seen.panels[panel].status in ("ok", "failed")


def _current(seen: PageFacts, panel: str) -> ObjectTable | None:
    return seen.table(panel) if _readable(seen, panel) else None
