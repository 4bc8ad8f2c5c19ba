"""Tables that sum up: the nodes, and the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.client.tables import Cell, ObjectTable
from adapter.figures import percent
from adapter.fleet.cells import number, seconds
from adapter.fleet.columns import Columns, pool
from adapter.fleet.verdict import IDLE
from adapter.top import tables
from adapter.top.facts import ClusterLists
from adapter.top.order import Sort, ordered
from adapter.top.tables import RowKey, TopColumn, TopRow, TopTable, ViewName

SHOWN: Final = 10
"""Rows of one part of the overview."""
_NODES: Final = (
    TopColumn("NAME", 0),
    TopColumn("POOL", 3),
    TopColumn("MODEL", 2),
    TopColumn("GPUS", 1, number),
    TopColumn("UTIL", 0, number, bar=True),
    TopColumn("MAX", 2, number),
    TopColumn("NO-VALUE", 1, number),
    TopColumn("IDLE", 1, number),
    TopColumn("IDLE-FOR", 3, seconds),
    TopColumn("FREE", 2, number),
)
_REASONS: Final = (TopColumn("WHY-NOT", 0), TopColumn("PODS", 0, number), TopColumn("FIRST", 1))


class _GpuCells(NamedTuple):
    """The cells of a device that its node sums up."""

    node: Cell
    model: Cell
    util: Cell
    pods: Cell
    idle: Cell


@dataclass(slots=True)
class _Node:
    """The devices of a node."""

    pool: str = ""
    models: Counter[str] = field(default_factory=Counter)
    gpus: int = 0
    busy: list[float] = field(default_factory=list)
    idle: int = 0
    longest: tuple[float, str] = (0.0, "")
    """Seconds, and the text of them."""
    free: int = 0

    def add(self, cells: _GpuCells, labels: Mapping[str, str]) -> None:
        """Add a device."""
        self.gpus += 1
        self.pool = self.pool or pool(labels) or ""
        self.models[str(cells.model or "")] += 1
        busy = number(cells.util)
        if busy is not None:
            self.busy.append(busy)
        if cells.pods is None:
            self.free += 1
        elif (idle := seconds(cells.idle) or 0.0) >= IDLE:
            self.idle += 1
            self.longest = max(self.longest, (idle, str(cells.idle)))

    def row(self, name: str) -> TopRow:
        """Return the row. A mean is over the devices that have a value."""
        without = self.gpus - len(self.busy)
        model = self.models.most_common(1)[0][0]
        more = f" +{len(self.models) - 1}" if len(self.models) > 1 else ""
        cells = (
            name,
            self.pool or None,
            f"{model}{more}" if model else None,
            str(self.gpus),
            percent(sum(self.busy) / len(self.busy)) if self.busy else None,
            percent(max(self.busy)) if self.busy else None,
            str(without),
            str(self.idle),
            self.longest[1] or None,
            str(self.free),
        )
        key = RowKey("node", "", name)
        return TopRow(key, cells, key, "warning" if without else "")


def nodes(facts: ClusterLists) -> TopTable:
    """Return the nodes whose GPUs an exporter reports, the busiest first."""
    return TopTable(
        _NODES, _node_rows(facts.tables["gpus"]), "UTIL", none="No exporter reports a GPU."
    )


def _node_rows(table: ObjectTable) -> list[TopRow]:
    found: dict[str, _Node] = {}
    by = Columns(table)
    columns = (by.cells(name) for name in ("Node", "Model", "Util", "Pods", "Idle-Since"))
    for row, *cells in zip(table.rows, *columns, strict=True):
        gpu = _GpuCells(*cells)
        if gpu.node:
            found.setdefault(str(gpu.node), _Node()).add(gpu, row.labels)
    return [node.row(name) for name, node in found.items()]


def overview(facts: ClusterLists) -> list[TopTable]:
    """Return what needs attention, and the busiest and the idle GPUs."""
    parts: list[TopTable] = []
    if facts.hpas is not None:
        parts.append(_attention(facts))
    if "gpupods" in facts.tables:
        parts.append(_reasons(facts.tables["gpupods"]))
    if "gpus" in facts.tables:
        parts += [_busiest(facts), _idle(facts)]
    return parts


def _attention(facts: ClusterLists) -> TopTable:
    found = tables.hpas(facts, everywhere=True)
    rows = [row for row in found.rows if row.emphasis in ("warning", "bad")]
    return _cut(
        found, rows, Sort("DECISION"), "HPAs that need attention", "No HPA needs attention."
    )


def _reasons(table: ObjectTable) -> TopTable:
    """Group the pods without a value by reason."""
    at = table.columns.index("Why-Not")
    found: dict[str, list[RowKey]] = {}
    for row in table.rows:
        if (reason := row.cells[at]) is not None:
            found.setdefault(str(reason), []).append(RowKey("pod", row.namespace, row.name))
    rows = [
        TopRow(
            RowKey("note", "", reason),
            (reason, str(len(keys)), f"{keys[0].namespace}/{keys[0].name}"),
            keys[0],
            "warning",
        )
        for reason, keys in found.items()
    ]
    none = "Every GPU pod has a value." if table.rows else "No pod holds a GPU."
    return _cut(TopTable(_REASONS, rows, "PODS"), rows, Sort("PODS"), "Pods without a value", none)


def _busiest(facts: ClusterLists) -> TopTable:
    found = tables.gpus(facts)
    at = found.index("UTIL")
    rows = [row for row in found.rows if row.cells[at] is not None]
    return _cut(found, rows, Sort("UTIL"), "Busiest GPUs", "No GPU has a utilization.")


def _idle(facts: ClusterLists) -> TopTable:
    found = nodes(facts)
    at = found.index("IDLE")
    rows = [row for row in found.rows if row.cells[at] != "0"]
    none = "No GPU that a pod holds has been idle for 10 minutes."
    return _cut(found, rows, Sort("IDLE"), "Nodes with idle GPUs", none)


def _cut(table: TopTable, rows: Sequence[TopRow], sort: Sort, title: str, none: str) -> TopTable:
    """Return the first rows of an order, under a title that says how many there are."""
    kept = TopTable(table.columns, rows, table.sort)
    first = ordered(kept, sort)[:SHOWN]
    more = f" ({len(first)} of {len(rows)})" if len(rows) > len(first) else ""
    return TopTable(table.columns, first, sort.column, f"{title}{more}", none)


def tables_of(view: ViewName, facts: ClusterLists, *, everywhere: bool) -> list[TopTable]:
    """Return the tables of a view, as far as their lists have been read."""
    if view == "overview":
        return overview(facts)
    if not all(facts.has(name) for name in tables.NEEDS[view]):
        return []
    if view in ("gpus", "nodes"):
        return [tables.gpus(facts) if view == "gpus" else nodes(facts)]
    made = {"pods": tables.pods, "workloads": tables.workloads, "hpas": tables.hpas}[view]
    return [made(facts, everywhere=everywhere)]
