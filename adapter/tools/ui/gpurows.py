"""The parts ``gpus`` and ``load``: what a device is, and what it does now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.answers.view.gpuclass import IDLE, GpuClass
from adapter.pipeline.cluster.nodelabels import pool
from adapter.tools.client.tables import Cell, ObjectTable, TableRow
from adapter.tools.overview.columns import ZONE, Columns, natural_key
from adapter.tools.overview.gpuclasses import gpu_classes

Json = dict[str, Any]

COLUMNS: Final = (
    *("name", "node", "pool", "zone", "gpu", "model", "profile", "vendor", "sharing", "uuid"),
    "unreported",
)
_JITTER: Final = 5.0
"""Seconds by which an age may differ from the clock: requests take time."""
_PLACES: Final = 2
"""Decimals of a utilization on the page: for order and colour, and not sent again for less."""


class SilentNode(NamedTuple):
    """A node with GPUs that no exporter reports: nothing is known but that they are there."""

    name: str
    pool: str | None
    zone: str | None
    model: str | None
    gpus: int
    """All that it has."""


class DeviceParts(NamedTuple):
    """The devices that exporters report, in the order of the page."""

    static: Json
    load: Json
    """``load`` without ``of``: what the page shows, since all of it changes at each look."""
    classes: Sequence[GpuClass]
    exporters: Sequence[str | None]
    idle_since: Mapping[str, float]
    """Epoch seconds, by the device's name."""
    pools: Mapping[str, str]
    """Node -> node pool."""
    models: Mapping[str, str]
    """UUID -> model."""
    unhealthy: Mapping[str, str]
    """UUID -> why this device is not healthy."""


def fleet(
    table: ObjectTable, now: float, idle_before: Mapping[str, float], idle_after: float = IDLE
) -> DeviceParts:
    """Return the devices.

    Args:
        table: ``gpus``.
        now: epoch seconds of the table.
        idle_before: since when devices were idle at the last look.
        idle_after: seconds for which a held device is idle until it counts as idle.
    """
    by = Columns(table)
    nodes, numbers = by.texts("Node"), by.texts("GPU")
    pools = [pool(row.labels) for row in table.rows]
    keys = [
        (natural_key(pools[i]), natural_key(nodes[i]), natural_key(numbers[i]), row.name)
        for i, row in enumerate(table.rows)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    by = Columns(table, [table.rows[i] for i in order])
    names = ("Node", "GPU", "Model", "UUID", "Sharing")
    columns = zip(by.rows, (pools[i] for i in order), *map(by.texts, names), strict=True)
    static = [_static_row(*row) for row in columns]
    idle = _idle_since(by, now, idle_before)
    classes = gpu_classes(by, idle_after)
    return DeviceParts(
        {"columns": COLUMNS, "rows": static},
        _load(by, idle, classes),
        classes,
        by.texts("Exporter"),
        idle,
        {str(row[1]): str(row[2]) for row in static if row[1] and row[2]},
        {str(row[9]): str(row[5]) for row in static if row[9] and row[5]},
        {
            str(row[9]): text
            for row, text in zip(static, by.texts("Unhealthy"), strict=True)
            if row[9] and text
        },
    )


def _static_row(
    row: TableRow,
    node_pool: str | None,
    node: str | None,
    gpu: str | None,
    model: str | None,
    uuid: str | None,
    sharing: str | None,
) -> tuple[Cell, ...]:
    labels = row.labels
    return (
        *(row.name, node, node_pool, labels.get(ZONE), gpu, model),
        *(labels.get("mig-profile"), labels.get("vendor"), sharing, uuid, None),
    )


def silent_nodes(table: ObjectTable) -> list[SilentNode]:
    """Return the nodes of ``gpunodes`` with GPUs that no exporter reports."""
    by = Columns(table)
    columns = zip(by.rows, by.texts("Model"), *map(by.numbers, ("Reported", "Silent")), strict=True)
    return [
        SilentNode(
            row.name, pool(row.labels), row.labels.get(ZONE), model, int(silent + (reported or 0))
        )
        for row, model, reported, silent in columns
        if silent
    ]


def with_silent(parts: DeviceParts, nodes: Collection[SilentNode]) -> tuple[Json, Json]:
    """Return ``static`` and ``load`` with a row more for each GPU that no exporter reports.

    The devices may have been read after the nodes, and count.
    """
    listed = Counter(row[1] for row in parts.static["rows"]) if nodes else {}
    unreported = [row for node in nodes for row in _unreported_rows(node, listed.get(node.name, 0))]
    if not unreported:
        return parts.static, parts.load
    rows = [*parts.static["rows"], *unreported]
    keys = [(natural_key(row[2]), natural_key(row[1])) for row in rows]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    load = {}
    for name, column in parts.load.items():
        blank = "unmeasured" if name == "class" else None
        load[name] = [column[i] if i < len(column) else blank for i in order]
    return {"columns": COLUMNS, "rows": [rows[i] for i in order]}, load


def _unreported_rows(node: SilentNode, listed: int) -> Iterator[tuple[Cell, ...]]:
    missing = max(0, node.gpus - listed)
    for number in range(1, missing + 1):
        name = f"{node.name}: no exporter ({number} of {missing})"
        yield (name, node.name, node.pool, node.zone, None, node.model, *(None,) * 4, True)


def _load(by: Columns, idle: Mapping[str, float], classes: Sequence[GpuClass]) -> Json:
    util = by.numbers("Util-Percent")
    memory = zip(by.numbers("Mem-Bytes"), by.numbers("Mem-Total-Bytes"), strict=True)
    return {
        "class": classes,
        "util": [None if value is None else round(value, _PLACES) for value in util],
        "utilText": by.texts("Util"),
        "mem": by.texts("Mem"),
        "memShare": [share(*pair) for pair in memory],
        "pods": by.texts("Pods"),
        "unhealthy": by.texts("Unhealthy"),
        "blocked": [
            text if kind == "blocked" else None
            for text, kind in zip(by.texts("Blocked"), classes, strict=True)
        ],
        "idleSince": [idle.get(row.name) for row in by.rows],
    }


def share(used: float | None, total: float | None) -> float | None:
    """Return the used share of a memory; None without a total."""
    if used is None or not total or total < 0:
        return None
    return round(min(1.0, used / total), 4)


def _idle_since(by: Columns, now: float, before: Mapping[str, float]) -> dict[str, float]:
    idle_since = {}
    for row, ago in zip(by.rows, by.numbers("Idle-Seconds"), strict=True):
        if ago is None:
            continue
        since, earlier = now - ago, before.get(row.name)
        same = earlier is not None and abs(earlier - since) <= _JITTER
        idle_since[row.name] = earlier if earlier is not None and same else round(since, 3)
    return idle_since
