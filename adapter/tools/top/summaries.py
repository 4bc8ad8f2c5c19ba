"""Tables that sum up: the nodes, and the overview."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from adapter.figures import age, percent
from adapter.tools.client.tables import Cell, ObjectTable, TableRow
from adapter.tools.overview.columns import Columns, pool
from adapter.tools.overview.gpuclasses import GpuClass, count_classes, gpu_classes
from adapter.tools.top import tables
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.order import Sort, first
from adapter.tools.top.rows import RowKey, TopRow, column
from adapter.tools.top.tables import TopColumn, TopTable, ViewName

SHOWN: Final = 10
"""Rows of one part of the overview."""
_NODES: Final = (
    TopColumn("NAME", 0),
    TopColumn("POOL", 3),
    TopColumn("MODEL", 2),
    TopColumn("GPUS", 1, "GPUS"),
    TopColumn("UTIL", 0, "UTIL", bar=True),
    TopColumn("MAX", 2, "MAX"),
    TopColumn("BUSY", 2, "BUSY"),
    TopColumn("IDLE", 1, "IDLE"),
    TopColumn("FREE", 1, "FREE"),
    TopColumn("NO-POD", 2, "NO-POD"),
    TopColumn("NO-VALUE", 1, "NO-VALUE"),
    TopColumn("IDLE-FOR", 3, "IDLE-FOR"),
)
"""The five columns from BUSY on add up to GPUS; see :mod:`adapter.tools.overview.gpuclasses`."""
_REASONS: Final = (TopColumn("WHY-NOT", 0), TopColumn("PODS", 0, "PODS"), TopColumn("FIRST", 1))


@dataclass(slots=True)
class _Node:
    """The devices of a node."""

    rows: list[TableRow] = field(default_factory=list)
    models: list[Cell] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    classes: list[GpuClass] = field(default_factory=list)
    longest: float | None = None
    """Seconds of the device that has been idle longest; None without an idle one."""

    def row(self, name: str) -> TopRow:
        """Return the row. A mean is over the devices that have a value."""
        count = count_classes(self.classes)
        models = Counter(str(model or "") for model in self.models)
        model = models.most_common(1)[0][0]
        more = f" +{len(models) - 1}" if len(models) > 1 else ""
        mean = sum(self.loads) / len(self.loads) if self.loads else None
        most = max(self.loads, default=None)
        counts = (count.busy, count.idle, count.free, count.unheld, count.unmeasured)
        cells = (
            name,
            next(filter(None, (pool(row.labels) for row in self.rows)), None),
            f"{model}{more}" if model else None,
            str(count.total),
            None if mean is None else percent(mean),
            None if most is None else percent(most),
            *map(str, counts),
            None if self.longest is None else age(self.longest),
        )
        numbers = (None, None, None, count.total, mean, most, *counts, self.longest)
        key, doubtful = RowKey("node", "", name), count.unmeasured or count.unheld
        return TopRow(key, cells, key, "warning" if doubtful else "", numbers)


def nodes(facts: ClusterLists) -> TopTable:
    """Return the nodes whose GPUs an exporter reports, the busiest first."""
    return TopTable(
        _NODES, _node_rows(facts.tables["gpus"]), "UTIL", none="No exporter reports a GPU."
    )


def _node_rows(table: ObjectTable) -> list[TopRow]:
    found: dict[str, _Node] = {}
    by = Columns(table)
    texts = (by.cells(name) for name in ("Node", "Model"))
    numbers = (by.numbers(name) for name in ("Util-Percent", "Idle-Seconds"))
    rows = zip(table.rows, gpu_classes(by), *texts, *numbers, strict=True)
    for row, of, name, model, load, idle in rows:
        if not name:
            continue
        node = found.get(str(name)) or found.setdefault(str(name), _Node())
        node.rows.append(row)
        node.models.append(model)
        node.classes.append(of)
        if load is not None:
            node.loads.append(load)
        if of == "idle":
            node.longest = max(node.longest or 0.0, idle or 0.0)
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
    found = tables.attention(facts)
    return _cut(found, Sort("STATE"), "HPAs that need attention", "No HPA needs attention.")


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
            (None, len(keys), None),
        )
        for reason, keys in found.items()
    ]
    none = "Every GPU pod has a value." if table.rows else "No pod holds a GPU."
    return _cut(TopTable(_REASONS, rows, "PODS"), Sort("PODS"), "Pods without a value", none)


def _busiest(facts: ClusterLists) -> TopTable:
    return _cut(tables.gpus(facts), Sort("UTIL"), "Busiest GPUs", "No GPU has a utilization.")


def _idle(facts: ClusterLists) -> TopTable:
    found = nodes(facts)
    at = found.index("IDLE")
    rows = [row for row in found.rows if row.cells[at] != "0"]
    idle = TopTable(found.columns, rows, found.sort)
    none = "No GPU that a pod holds has been idle for 10 minutes."
    return _cut(idle, Sort("IDLE"), "Nodes with idle GPUs", none)


def _cut(table: TopTable, sort: Sort, title: str, none: str) -> TopTable:
    """Return the first rows of an order, under a title that says how many have a value."""
    cells = column(table.rows, table.index(sort.column))
    count = len(cells) - cells.count(None)
    rows = first(table, sort, SHOWN)
    more = f" ({len(rows)} of {count})" if count > len(rows) else ""
    return TopTable(table.columns, rows, sort.column, f"{title}{more}", none)


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
