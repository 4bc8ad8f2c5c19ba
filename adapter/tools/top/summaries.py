"""Tables that sum up: the nodes, and the overview."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from adapter.answers.view.gpuclass import GpuClass, block_withheld_devices
from adapter.figures import age, percent
from adapter.pipeline.cluster.nodelabels import pool
from adapter.tools.client.tables import Cell, ObjectTable
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.gpuclasses import count_classes, gpu_classes
from adapter.tools.top import tables
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.order import Sort, first_rows
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
    TopColumn("BLOCKED", 1, "BLOCKED"),
    TopColumn("NO-POD", 2, "NO-POD"),
    TopColumn("NO-VALUE", 1, "NO-VALUE"),
    TopColumn("IDLE-FOR", 3, "IDLE-FOR"),
    TopColumn("WHY", 1),
)
"""The six columns from BUSY on add up to GPUS; see :mod:`adapter.tools.overview.gpuclasses`."""
_REASONS: Final = (TopColumn("WHY-NOT", 0), TopColumn("PODS", 0, "PODS"), TopColumn("FIRST", 1))


@dataclass(slots=True)
class _Node:
    """The devices of a node, and what its own row says."""

    pools: list[str | None] = field(default_factory=list)
    models: list[Cell] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    classes: list[GpuClass] = field(default_factory=list)
    longest: float | None = None
    """Seconds of the device that has been idle longest; None without an idle one."""
    why: list[str] = field(default_factory=list)
    """What is wrong with the node, in words."""

    def row(self, name: str) -> TopRow:
        """Return the row. A mean is over the devices that have a value."""
        count = count_classes(self.classes)
        models = Counter(filter(None, (str(model or "") for model in self.models)))
        model = models.most_common(1)[0][0] if models else ""
        more = f" +{len(models) - 1}" if len(models) > 1 else ""
        mean = sum(self.loads) / len(self.loads) if self.loads else None
        most = max(self.loads, default=None)
        counts = (count.busy, count.idle, count.free, count.blocked, count.unheld, count.unmeasured)
        cells = (
            name,
            next(filter(None, self.pools), None),
            f"{model}{more}" if model else None,
            str(count.total),
            None if mean is None else percent(mean),
            None if most is None else percent(most),
            *map(str, counts),
            None if self.longest is None else age(self.longest),
            "; ".join(self.why) or None,
        )
        numbers = (None, None, None, count.total, mean, most, *counts, self.longest, None)
        key, doubtful = RowKey("node", "", name), count.unmeasured or count.unheld or self.why
        return TopRow(key, cells, key, "warning" if doubtful else "", numbers)


def nodes(facts: ClusterLists) -> TopTable:
    """Return the nodes with GPUs, the busiest first."""
    by_name = _reported_nodes(facts.tables["gpus"])
    if (table := facts.tables.get("gpunodes")) is not None:
        _add_node_rows(by_name, Columns(table))
    for name, text in (facts.kept or {}).items():
        if name in by_name:
            by_name[name].why.append(text)
    rows = [node.row(name) for name, node in by_name.items()]
    return TopTable(_NODES, rows, "UTIL", none=facts.none("node", "No node has a GPU."))


def _reported_nodes(table: ObjectTable) -> dict[str, _Node]:
    """Return the nodes whose GPUs exporters report."""
    by_name: dict[str, _Node] = {}
    by = Columns(table)
    texts = (by.cells(name) for name in ("Node", "Model"))
    numbers = (by.numbers(name) for name in ("Util-Percent", "Idle-Seconds"))
    rows = zip(table.rows, gpu_classes(by), *texts, *numbers, strict=True)
    for row, of, name, model, load, idle in rows:
        if not name:
            continue
        node = by_name.get(str(name)) or by_name.setdefault(str(name), _Node())
        node.pools.append(pool(row.labels))
        node.models.append(model)
        node.classes.append(of)
        if load is not None:
            node.loads.append(load)
        if of == "idle":
            node.longest = max(node.longest or 0.0, idle or 0.0)
    return by_name


def _add_node_rows(by_name: dict[str, _Node], by: Columns) -> None:
    """Add what the list of nodes says: why no pod can start there, and GPUs without an exporter."""
    texts = (by.texts(name) for name in ("Pool", "Model", "Blocked", "Withheld"))
    rows = zip(by.rows, *texts, *map(by.numbers, ("GPUs", "Silent", "Left")), strict=True)
    for row, node_pool, model, blocked, withheld, gpus, silent, left in rows:
        node = by_name.setdefault(row.name, _Node())
        node.pools.append(node_pool)
        if not node.models:
            node.models.append(model)
        node.classes += ["unmeasured"] * int(silent or 0)
        if blocked is not None:
            node.why.append(blocked)
        elif withheld is not None:
            node.why.append(f"does not offer {withheld}")
            node.classes = block_withheld_devices(node.classes, left)
        if silent:
            part = "its GPUs" if silent == gpus else f"{silent:g} of its {gpus:g} GPUs"
            node.why.append(f"no exporter reports {part}")


def overview(facts: ClusterLists) -> list[TopTable]:
    """Return what needs attention, and the busiest and the idle GPUs."""
    parts: list[TopTable] = []
    if facts.hpas is not None:
        parts.append(_attention(facts))
    if "gpupods" in facts.tables:
        parts.append(_reasons(facts, facts.tables["gpupods"]))
    if "gpus" in facts.tables:
        table = nodes(facts)
        parts += (
            [_closed_nodes(table, looked=facts.kept is not None)]
            if "gpunodes" in facts.tables
            else []
        )
        parts += [_busiest_gpus(facts), _idle_nodes(table)]
    return parts


def _attention(facts: ClusterLists) -> TopTable:
    table = tables.attention(facts)
    return _cut(table, Sort("STATE"), "HPAs that need attention", "No HPA needs attention.")


def _reasons(facts: ClusterLists, table: ObjectTable) -> TopTable:
    """Group the pods without a value by reason."""
    index = table.columns.index("Why-Not")
    by_reason: dict[str, list[RowKey]] = {}
    for row in table.rows:
        if (reason := row.cells[index]) is not None:
            by_reason.setdefault(str(reason), []).append(RowKey("pod", row.namespace, row.name))
    rows = [
        TopRow(
            RowKey("note", "", reason),
            (reason, str(len(keys)), f"{keys[0].namespace}/{keys[0].name}"),
            keys[0],
            "warning",
            (None, len(keys), None),
        )
        for reason, keys in by_reason.items()
    ]
    none = "Every GPU pod has a value."
    if not table.rows:
        none = facts.none("GPU pod", "No pod holds a GPU.")
    return _cut(TopTable(_REASONS, rows, "PODS"), Sort("PODS"), "Pods without a value", none)


def _busiest_gpus(facts: ClusterLists) -> TopTable:
    return _cut(tables.gpus(facts), Sort("UTIL"), "Busiest GPUs", "No GPU has a utilization.")


def _closed_nodes(node_table: TopTable, *, looked: bool) -> TopTable:
    """Return the nodes where no pod can start, whose GPUs no exporter reports, or that an
    autoscaler cannot remove."""
    index = node_table.index("WHY")
    rows = [row for row in node_table.rows if row.cells[index] is not None]
    table = TopTable(node_table.columns, rows, "WHY")
    causes = (
        ", without an exporter or kept from its autoscaler" if looked else " or without an exporter"
    )
    none = f"No GPU node is closed to pods{causes}."
    return _cut(table, Sort("WHY"), "Nodes that need attention", none)


def _idle_nodes(node_table: TopTable) -> TopTable:
    index = node_table.index("IDLE")
    rows = [row for row in node_table.rows if row.cells[index] != "0"]
    idle = TopTable(node_table.columns, rows, node_table.sort)
    none = "No GPU that a pod holds has been idle for 10 minutes."
    return _cut(idle, Sort("IDLE"), "Nodes with idle GPUs", none)


def _cut(table: TopTable, sort: Sort, title: str, none: str) -> TopTable:
    """Return the first rows of an order, under a title that says how many have a value."""
    cells = column(table.rows, table.index(sort.column))
    count = len(cells) - cells.count(None)
    rows = first_rows(table, sort, SHOWN)
    more = f" ({len(rows)} of {count})" if count > len(rows) else ""
    return TopTable(table.columns, rows, sort.column, f"{title}{more}", none)


def tables_of(view: ViewName, facts: ClusterLists, *, everywhere: bool) -> list[TopTable]:
    """Return the tables of a view, as far as their lists have been read."""
    if view == "overview":
        return overview(facts)
    if not all(facts.has(name) for name in tables.NEEDS[view]):
        return []
    if view in ("gpus", "nodes", "pools"):
        whole = {"gpus": tables.gpus, "nodes": nodes, "pools": tables.pools}
        return [whole[view](facts)]
    made = {"pods": tables.pods, "workloads": tables.workloads, "hpas": tables.hpas}[view]
    return [made(facts, everywhere=everywhere)]
