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
        table: ObjectTable | None = self.data.get(panel)
        return table


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

    def hpas(self, facts: PageFacts, now: float) -> list[HpaSummary] | None:
        """Return what the HPAs do, by their status and the pods of their workloads.

        They are judged once for the same lists.
        """
        read: ReadScalers | None = facts.data.get(HPAS)
        if read is None:
            return None
        fresh = WORKLOADS in facts.panels and facts.panels[WORKLOADS].status == "ok"
        table = facts.table(WORKLOADS) if fresh else None
        if self._judged is None or self._judged[0] is not read or self._judged[1] is not table:
            read_at = now if table is None else facts.panels[WORKLOADS].updated or now
            self._judged = (
                read,
                table,
                [*summarize(read, workload_pods(table, read_at), now, complete=True)],
            )
        return self._judged[2]

    def parts(self, facts: PageFacts, changed: Set[str], now: float) -> dict[str, bytes]:
        """Return the parts, by name, in the order in which they are sent."""
        parts: dict[str, Any] = {"panels": panel_rows(list(facts.panels.values()))}
        gpus, gpu_pods, owners = facts.table(GPUS), facts.table(PODS), facts.table(WORKLOADS)
        if GPUS in changed and gpus is not None:
            read_at = facts.panels[GPUS].updated or now
            before = self.fleet.idle_since if self.fleet else {}
            self.fleet = fleet(gpus, read_at, before, self._idle_after)
        silent = self._make_once("silent nodes", _current_table(facts, NODES), silent_nodes) or []
        if self.fleet is not None and (GPUS in changed or silent != self._silent):
            self._silent = silent
            parts["gpus"], parts["load"] = with_silent(self.fleet, silent)
        whole = outage(list(facts.panels.values()))
        hpas = self.hpas(facts, now)
        made = self._verdict(facts, hpas).json()
        parts["verdict"] = made | {"detail": whole.detail if whole else ""}
        if changed & {HPAS, WORKLOADS} and hpas is not None:
            parts["hpas"] = hpa_rows(hpas)
        if (GPUS in changed or PODS in changed) and gpu_pods is not None:
            known = self.fleet
            of_devices = (known.pools, known.models, known.unhealthy) if known else ({}, {}, {})
            parts["pods"] = pods(gpu_pods, *of_devices)
        if WORKLOADS in changed and owners is not None:
            parts["workloads"] = workloads(owners)
        if changed & {POOLS, HEADROOM} and (table := facts.table(POOLS)) is not None:
            parts["pools"] = pools(table, facts.data.get(HEADROOM, NO_HEADROOM))
        self._compare(facts, changed, hpas, now)
        parts["timeline"] = [entry.json() for entry in self._timeline.entries()]
        return {name: _encode(content) for name, content in parts.items()}

    def _compare(
        self,
        facts: PageFacts,
        changed: Collection[str],
        hpas: Sequence[HpaSummary] | None,
        now: float,
    ) -> None:
        timeline, gpu_pods = self._timeline, facts.table(PODS)
        timeline.panels(now, facts.panels)
        if _is_fresh(facts, changed, GPUS) and self.fleet is not None:
            timeline.devices(now, device_facts(self.fleet), _seen_nodes(facts))
        if _is_fresh(facts, changed, PODS) and gpu_pods is not None:
            timeline.pods(now, pod_facts(gpu_pods))
        if _is_fresh(facts, changed, HPAS) and hpas is not None:
            timeline.hpas(now, hpas)
        if _is_fresh(facts, changed, EVENTS):
            timeline.events(facts.data[EVENTS])

    def _verdict(self, facts: PageFacts, hpas: Sequence[HpaSummary] | None) -> ClusterVerdict:
        gpus, gpu_pods = _current_table(facts, GPUS), _current_table(facts, PODS)
        nodes = _current_table(facts, NODES)
        made = verdict(
            hpas if _is_readable(facts, HPAS) else None,
            self._make_once("pods", gpu_pods, lambda table: count_pods(Columns(table).dicts())),
            count_classes(self.fleet.classes) if gpus and self.fleet else None,
            self._make_once("idle", gpus, self._idle_price),
            silent=self._make_once("silent", nodes, lambda table: silent_gpus(Columns(table))) or 0,
        )
        return with_trouble(made, list(facts.panels.values()))

    def _idle_price(self, table: ObjectTable) -> IdlePrice:
        return idle_price(table, self._prices, self._idle_after)

    def _make_once(
        self, name: str, table: ObjectTable | None, make: Callable[[ObjectTable], T]
    ) -> T | None:
        """Return what is made of a table; the same table is counted once."""
        if table is None:
            return None
        counted = self._counts.get(name)
        if counted is None or counted[0] is not table:
            counted = self._counts[name] = (table, make(table))
        made: T = counted[1]
        return made


def _seen_nodes(facts: PageFacts) -> NodesSeen:
    """Return which nodes are there, and of which of them no exporter reports a GPU."""
    table = _current_table(facts, NODES) if NODES in facts.panels else None
    if table is None:
        return NodesSeen()
    by = Columns(table)
    rows = zip(by.rows, by.numbers("Reported"), strict=True)
    reported = {row.name: number for row, number in rows}
    return NodesSeen(reported.keys(), frozenset(n for n, number in reported.items() if not number))


def _is_fresh(facts: PageFacts, changed: Collection[str], panel: str) -> bool:
    """Return whether a panel has new data."""
    return panel in changed and facts.panels[panel].status == "ok"


def _is_readable(facts: PageFacts, panel: str) -> bool:
    """Return whether the data of a panel count: a right that was lost hides them."""
    return facts.panels[panel].status in ("ok", "failed")


def _current_table(facts: PageFacts, panel: str) -> ObjectTable | None:
    return facts.table(panel) if _is_readable(facts, panel) else None
