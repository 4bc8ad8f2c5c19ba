"""The tables of ``top``: columns and rows, from what was read. Cells are kubectl's own texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from adapter.answers.judgement.states import ORDER
from adapter.answers.view.gpuclass import gpu_class
from adapter.figures import age, count, spark
from adapter.tools.client.histories import SHOWN, HpaPast
from adapter.tools.client.tables import ObjectTable, TableRow
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.groups import CauseGroup, by_cause
from adapter.tools.overview.hpas import HpaSummary, with_states
from adapter.tools.top.facts import ClusterLists, ListName
from adapter.tools.top.rows import About, Emphasis, PickedRows, RowKey, TopRow, number_of

ViewName = Literal["overview", "gpus", "pods", "workloads", "hpas", "nodes", "pools"]
DASH: Final = "-"
"""Shown for a missing value."""


@dataclass(frozen=True, slots=True)
class TopColumn:
    """A column.

    Columns of a high rank are left out first on a narrow terminal, and ranks from 5 on are those
    that ``kubectl get`` shows with ``-o wide`` only.
    """

    name: str
    rank: int
    number: str = ""
    """The column of the list that has the number by which rows are sorted, in upper case; the
    column itself, if this command computes it. Empty for a text."""
    bar: bool = False
    """The cell is a percentage that is drawn as a bar too."""


@dataclass(frozen=True, slots=True)
class TopTable:
    """Rows with the same columns."""

    columns: tuple[TopColumn, ...]
    rows: Sequence[TopRow]
    sort: str
    """Column by which it is sorted at first."""
    title: str = ""
    none: str = ""
    """Said in place of rows, if there are none."""
    notes: tuple[str, ...] = ()
    """Said below the rows: what has none."""

    def index(self, column: str) -> int:
        """Return the place of a column."""
        return next(place for place, head in enumerate(self.columns) if head.name == column)


NEEDS: Final[Mapping[ViewName, tuple[ListName, ...]]] = {
    "overview": ("gpus", "gpupods", "hpas"),
    "gpus": ("gpus",),
    "pods": ("gpupods",),
    "workloads": ("gpuworkloads",),
    "hpas": ("hpas",),
    "nodes": ("gpus",),
    "pools": ("gpupools",),
}
"""The lists that a view shows."""
_BESIDE: Final[Mapping[ViewName, tuple[ListName, ...]]] = {
    "overview": ("gpuworkloads", "gpunodes", "nodeevents", "gpuhistories"),
    "hpas": ("gpuworkloads", "gpuhistories"),
    "workloads": ("hpas",),
    "gpus": ("gpunodes",),
    "nodes": ("gpunodes", "nodeevents"),
}
"""HPAs are judged by the pods of their workloads too; of a paused or sleeping workload, a
ScaledObject alone may say the state. Nodes say why no pod can start there, and what
keeps an autoscaler from removing them."""
READS: Final[Mapping[ViewName, tuple[ListName, ...]]] = {
    view: (*names, *_BESIDE.get(view, ())) for view, names in NEEDS.items()
}
"""The lists that a view reads."""

_NAMESPACE: Final = TopColumn("NAMESPACE", 0)
_GPUS: Final = (
    TopColumn("NAME", 0),
    TopColumn("NODE", 2),
    TopColumn("GPU", 4),
    TopColumn("MODEL", 3),
    TopColumn("UTIL", 0, "UTIL-PERCENT", bar=True),
    TopColumn("MEM", 1, "MEM-BYTES"),
    TopColumn("PODS", 1),
    TopColumn("SHARING", 4),
    TopColumn("AGE", 4, "AGE-SECONDS"),
    TopColumn("UUID", 8),
    TopColumn("POWER", 6, "POWER-WATTS"),
    TopColumn("TEMP", 6, "TEMP-CELSIUS"),
    TopColumn("XID", 6, "XID-CODE"),
    TopColumn("IDLE-SINCE", 5, "IDLE-SECONDS"),
    TopColumn("UNHEALTHY", 5),
    TopColumn("EXPORTER", 7),
    TopColumn("BLOCKED", 5),
)
_PODS: Final = (
    TopColumn("NAME", 0),
    TopColumn("UTIL", 0, "UTIL-PERCENT", bar=True),
    TopColumn("MEM", 2, "MEM-BYTES"),
    TopColumn("WAITING", 2, "WAITING-REQUESTS"),
    TopColumn("RUNNING", 2, "RUNNING-REQUESTS"),
    TopColumn("DEVICES", 3, "DEVICES-MEASURED"),
    TopColumn("HOW", 4),
    TopColumn("AGE", 4, "AGE-SECONDS"),
    TopColumn("WHY-NOT", 1),
    TopColumn("NODE", 5),
    TopColumn("DEVICE-IDS", 8),
    TopColumn("SERIES", 7),
    TopColumn("WINDOW", 6, "WINDOW-SECONDS"),
    TopColumn("FIRST-TOKEN", 5, "FIRST-TOKEN-SECONDS"),
    TopColumn("UNHEALTHY", 6),
)
_WORKLOADS: Final = (
    TopColumn("NAME", 0),
    TopColumn("PODS", 1, "PODS"),
    TopColumn("MEASURED", 1, "MEASURED"),
    TopColumn("UTIL", 0, "UTIL-PERCENT", bar=True),
    TopColumn("MAX", 2, "MAX-PERCENT"),
    TopColumn("HPA", 3),
    TopColumn("TARGET", 2),
    TopColumn("WANTS", 3, "WANTS-REPLICAS"),
    TopColumn("STATE", 2),
    TopColumn("IDLE", 4, "IDLE-SECONDS"),
    TopColumn("GPUS", 6, "GPUS"),
    TopColumn("REPLICAS", 6),
    TopColumn("WHY-NOT", 5),
    TopColumn("READY", 6, "READY"),
    TopColumn("UNREADY", 7, "UNREADY"),
    TopColumn("EXIST", 7, "EXIST"),
    TopColumn("UNSCHEDULED", 7, "UNSCHEDULED"),
    TopColumn("UNREADY-SECONDS", 7, "UNREADY-SECONDS"),
    TopColumn("TROUBLE", 7),
    TopColumn("FOREIGN", 7),
    TopColumn("UNMEASURED", 7, "UNMEASURED"),
)
_POOLS: Final = (
    TopColumn("NAME", 0),
    TopColumn("NODES", 3, "NODES"),
    TopColumn("GPUS", 1, "GPUS"),
    TopColumn("BUSY", 1, "BUSY"),
    TopColumn("IDLE", 1, "IDLE"),
    TopColumn("FREE", 0, "FREE"),
    TopColumn("BLOCKED", 2, "BLOCKED"),
    TopColumn("NO-POD", 3, "NO-POD"),
    TopColumn("NO-VALUE", 2, "NO-VALUE"),
    TopColumn("LARGEST", 1),
    TopColumn("FRAGMENTED", 2, "FRAGMENTED-PERCENT"),
    TopColumn("CLOSED", 5, "CLOSED"),
    TopColumn("LEFT", 5),
    TopColumn("LAYOUTS", 5),
)
_RANKS: Final = {state: float(rank) for rank, state in enumerate(reversed(ORDER))}
"""How much a state needs attention."""
_HPAS: Final = (
    TopColumn("NAME", 0),
    TopColumn("REFERENCE", 3),
    TopColumn("TARGETS", 4),
    TopColumn("MINPODS", 2, "MINPODS"),
    TopColumn("MAXPODS", 2, "MAXPODS"),
    TopColumn("REPLICAS", 1, "REPLICAS"),
    TopColumn("SINCE", 2, "SINCE"),
    TopColumn("STATE", 0, "STATE"),
    TopColumn("LAST-30-MIN", 2),
    TopColumn("DECISION", 1),
)


def gpus(facts: ClusterLists) -> TopTable:
    """Return the devices, the busiest first."""
    rows = _pick_columns(facts.tables["gpus"], _GPUS, _gpu)
    return TopTable(
        _GPUS,
        rows,
        "UTIL",
        none=facts.none("GPU", "No exporter reports a GPU."),
        notes=_unreported_nodes(facts),
    )


def _unreported_nodes(facts: ClusterLists) -> tuple[str, ...]:
    """Return the nodes with GPUs that no exporter reports: they have no row."""
    if "gpunodes" not in facts.tables:
        return ()
    by = Columns(facts.tables["gpunodes"])
    rows = zip(by.rows, by.numbers("Silent"), strict=True)
    return tuple(_describe_silent_node(row.name, int(silent)) for row, silent in rows if silent)


def _describe_silent_node(node: str, silent: int) -> str:
    are, them = ("is", "it") if silent == 1 else ("are", "them")
    return (
        f"{count(silent, 'GPU')} of node {node} {are} not listed: no exporter reports {them}. "
        f"See: gpu-metrics-adapter explain node {node}"
    )


def pools(facts: ClusterLists) -> TopTable:
    """Return the pools of nodes, with what is free in each."""
    rows = _pick_columns(facts.tables["gpupools"], _POOLS, _pool)
    return TopTable(_POOLS, rows, "FREE", none=facts.none("pool", "No node has a GPU."))


def pods(facts: ClusterLists, *, everywhere: bool) -> TopTable:
    """Return the GPU pods, the busiest first."""
    columns, table = _with_namespace(_PODS, everywhere), facts.tables["gpupods"]
    rows = _pick_columns(table, columns, _pod)
    return TopTable(columns, rows, "UTIL", none=facts.none("GPU pod", "No pod holds a GPU."))


def workloads(facts: ClusterLists, *, everywhere: bool) -> TopTable:
    """Return the workloads, the busiest first."""
    columns, table = _with_namespace(_WORKLOADS, everywhere), facts.tables["gpuworkloads"]
    table = with_states(table, facts.hpas or ())
    rows = _pick_columns(table, columns, _workload)
    none = facts.none("workload", "No workload has pods with GPUs.")
    return TopTable(columns, rows, "UTIL", none=none)


def hpas(facts: ClusterLists, *, everywhere: bool) -> TopTable:
    """Return the HPAs, those that need attention first."""
    columns = _with_namespace(_HPAS, everywhere)
    rows = [_hpa(state, facts, everywhere=everywhere) for state in facts.hpas or ()]
    return TopTable(columns, rows, "STATE", none=facts.none("HPA", "There is no HPA."))


def attention(facts: ClusterLists) -> TopTable:
    """Return the HPAs that need attention, of all namespaces. Those of one cause are one row."""
    troubled = [hpa for hpa in facts.hpas or () if _EMPHASES[hpa.level] in _ATTENTION]
    rows: list[TopRow] = []
    for group in by_cause([hpa.cause for hpa in troubled]):
        some = [troubled[index] for index in group.rows]
        made = [_hpa(hpa, facts, everywhere=True) for hpa in some]
        rows += [_group_row(group, some, made[0])] if group.shown else made
    return TopTable(_with_namespace(_HPAS, everywhere=True), rows, "STATE")


def _group_row(group: CauseGroup, summaries: Sequence[HpaSummary], first: TopRow) -> TopRow:
    """Return the row of several HPAs; Enter explains the first."""
    spaces = {hpa.namespace for hpa in summaries}
    cells: list[str | None] = [None] * (1 + len(_HPAS))
    cells[0] = spaces.pop() if len(spaces) == 1 else None
    names = [column.name for column in _HPAS]
    such = (
        f"{summaries[0].namespace}/{summaries[0].name}" if cells[0] is None else summaries[0].name
    )
    cells[1 + names.index("NAME")] = f"{group.count} {summaries[0].kind}s, such as {such}"
    cells[1 + names.index("STATE")] = summaries[0].state
    cells[1 + names.index("DECISION")] = group.text
    numbers: list[float | None] = [None] * len(cells)
    # Among the rows of one state, the largest group is first.
    numbers[1 + names.index("STATE")] = _RANKS[summaries[0].state] + 1 - 1 / group.count
    key = RowKey("note", "", group.key)
    return TopRow(key, tuple(cells), first.about, first.emphasis, tuple(numbers))


def _with_namespace(columns: tuple[TopColumn, ...], everywhere: bool) -> tuple[TopColumn, ...]:
    return (_NAMESPACE, *columns) if everywhere else columns


def _pick_columns(table: ObjectTable, columns: tuple[TopColumn, ...], about: About) -> PickedRows:
    """Return the rows with the cells of our columns; a column that the server lacks is empty."""
    names = [column.name for column in columns]
    spaced = columns[0] is _NAMESPACE
    if spaced:
        names[0] = ""
    return PickedRows(table, names, [column.number for column in columns], about, spaced=spaced)


def _gpu(row: TableRow, at: Mapping[str, int]) -> tuple[RowKey, RowKey, Emphasis]:
    util, idle = (number_of(row.cells[at[name]]) for name in ("UTIL-PERCENT", "IDLE-SECONDS"))
    blocked = row.cells[at["BLOCKED"]] if "BLOCKED" in at else None
    use = gpu_class(util, row.cells[at["PODS"]], idle, blocked)
    doubtful = use in ("blocked", "unheld", "unmeasured")
    emphasis: Emphasis = "warning" if doubtful else ""
    key = RowKey("gpu", "", row.name)
    return key, key, emphasis


def _pool(row: TableRow, at: Mapping[str, int]) -> tuple[RowKey, RowKey, Emphasis]:
    key = RowKey("note", "", row.name)  # nothing explains a pool
    return key, key, ""


def _pod(row: TableRow, at: Mapping[str, int]) -> tuple[RowKey, RowKey, Emphasis]:
    key = RowKey("pod", row.namespace, row.name)
    return key, key, "" if row.cells[at["WHY-NOT"]] is None else "warning"


def _workload(row: TableRow, at: Mapping[str, int]) -> tuple[RowKey, RowKey, Emphasis]:
    key = RowKey("workload", row.namespace, row.name)
    return key, key, "warning" if row.cells[at["UTIL"]] is None else ""


_EMPHASES: Final[Mapping[str, Emphasis]] = {
    "good": "",
    "warning": "warning",
    "bad": "bad",
    "off": "dim",
}


_ATTENTION: Final = frozenset(("warning", "bad"))


def _hpa(state: HpaSummary, facts: ClusterLists, *, everywhere: bool) -> TopRow:
    now = facts.at
    key = about = RowKey("hpa", state.namespace, state.name)
    if state.kind != "HPA":
        about = RowKey("scaledobject", state.namespace, state.name.partition("/")[2])
    cells: tuple[str | None, ...] = (
        state.name,
        state.target,
        targets(state),
        str(state.low),
        None if state.high is None else str(state.high),
        None if state.current is None else str(state.current),
        None if state.since is None else age(now - state.since),
        state.state.value,
        last_minutes((facts.pasts or {}).get((state.namespace, state.name)), now),
        state.text,
    )
    since = None if state.since is None else now - state.since
    numbers: tuple[float | None, ...] = (
        *(None, None, None, state.low, state.high, state.current),
        *(since, _RANKS[state.state], None, None),
    )
    if everywhere:
        cells, numbers = (state.namespace, *cells), (None, *numbers)
    return TopRow(key, cells, about, _EMPHASES[state.level], numbers)


def targets(state: HpaSummary) -> str | None:
    """Return the metric that leads, with value and target: ``gpu_utilization 54/60 +1``."""
    leading = state.leading
    if leading is None:
        return None
    more = f" +{len(state.metrics) - 1}" if len(state.metrics) > 1 else ""
    return f"{leading.name} {leading.value_text or DASH}/{leading.goal_text or DASH}{more}"


def last_minutes(past: HpaPast | None, now: float) -> str | None:
    """Return the value of an HPA over the last half hour as a graph; None without a point.

    A character stands for the highest value of two minutes; a blank for minutes without one.
    """
    if past is None:
        return None
    values: list[float | None] = [None] * SHOWN
    for time, value in zip(past.time, past.value, strict=True):
        ago = int((now - time) // 60)
        if 0 <= ago < SHOWN:
            values[SHOWN - 1 - ago] = value
    pairs = zip(values[::2], values[1::2], strict=True)
    shown = [max((point for point in pair if point is not None), default=None) for pair in pairs]
    top = max((point for point in shown if point is not None), default=None)
    return None if top is None else spark(shown, top if top > 0 else 1.0)
