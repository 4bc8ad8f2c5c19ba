"""The parts ``pods``, ``workloads`` and ``pools``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapter.tools.client.tables import ObjectTable
from adapter.tools.explain.headroom import HeadroomRow, HeldHeadroom
from adapter.tools.overview.columns import Columns

Json = dict[str, Any]

_PODS: Final = {
    "node": "Node",
    "util": "Util",
    "mem": "Mem",
    "waiting": "Waiting",
    "firstToken": "First-Token",
    "how": "How",
    "whyNot": "Why-Not",
}
"""Name on the page -> column of the table."""
_POD_NUMBERS: Final = {
    "utilNumber": "Util-Percent",
    "waitingNumber": "Waiting-Requests",
    "firstTokenNumber": "First-Token-Seconds",
}
"""Those by which the page sorts its texts."""
_WORKLOADS: Final = {
    "pods": "Pods",
    "measured": "Measured",
    "util": "Util",
    "max": "Max",
    "hpa": "HPA",
    "target": "Target",
    "wants": "Wants",
    "idle": "Idle",
}
_WORKLOAD_NUMBERS: Final = {
    "utilNumber": "Util-Percent",
    "maxNumber": "Max-Percent",
    "measuredNumber": "Measured",
    "wantsNumber": "Wants-Replicas",
}


_POOLS: Final = {
    **{name.lower(): name for name in ("Nodes", "GPUs", "Busy", "Idle", "Free", "Blocked")},
    "unheld": "No-Pod",
    "unmeasured": "No-Value",
    "largest": "Largest",
    "fragmented": "Fragmented",
    "closed": "Closed",
    "left": "Left",
    "layouts": "Layouts",
}
_POOL_NUMBERS: Final = {"fragmentedNumber": "Fragmented-Percent"}


def pools(table: ObjectTable, headroom: HeldHeadroom) -> Json:
    """Return the part ``pools`` from ``gpupools``, with what `nodepool` holds in each."""
    by_pool: dict[str, list[HeadroomRow]] = {}
    for row in headroom.rows:
        by_pool.setdefault(row.pool, []).append(row)
    problem = headroom.problem.brief if headroom.problem else ""
    mine = [by_pool.get(row.name, ()) for row in table.rows]
    columns = [
        *_build_columns(Columns(table), _POOLS, _POOL_NUMBERS),
        [None if problem else sum(part.pods for part in rows) for rows in mine],
        [problem or "; ".join(part.why for part in rows) or None for rows in mine],
    ]
    return {
        "columns": ("namespace", "name", *_POOLS, *_POOL_NUMBERS, "headroom", "headroomWhy"),
        "rows": list(zip(*columns, strict=True)),
    }


def pods(
    table: ObjectTable,
    pools: Mapping[str, str],
    models: Mapping[str, str],
    unhealthy: Mapping[str, str],
) -> Json:
    """Return the part ``pods``.

    Args:
        table: ``gpupods``.
        pools: node -> node pool.
        models: UUID of a device -> model.
        unhealthy: UUID of a device -> why it is not healthy.
    """
    by = Columns(table)
    nodes, devices = by.texts("Node"), by.texts("Device-IDs")
    columns = [
        *_build_columns(by, _PODS, _POD_NUMBERS),
        [pools.get(node or "") for node in nodes],
        [models.get((ids or "").partition(",")[0]) for ids in devices],
        [
            "; ".join(unhealthy[key] for key in (ids or "").split(",") if key in unhealthy) or why
            for ids, why in zip(devices, by.texts("Unhealthy"), strict=True)
        ],
    ]
    return {
        "columns": ("namespace", "name", *_PODS, *_POD_NUMBERS, "pool", "model", "unhealthy"),
        "rows": list(zip(*columns, strict=True)),
    }


def workloads(table: ObjectTable) -> Json:
    """Return the part ``workloads`` from ``gpuworkloads``."""
    rows = list(zip(*_build_columns(Columns(table), _WORKLOADS, _WORKLOAD_NUMBERS), strict=True))
    return {"columns": ("namespace", "name", *_WORKLOADS, *_WORKLOAD_NUMBERS), "rows": rows}


def _build_columns(
    by: Columns, columns: Mapping[str, str], numbers: Mapping[str, str]
) -> list[list[Any]]:
    return [
        [row.namespace for row in by.rows],
        [row.name for row in by.rows],
        *map(by.texts, columns.values()),
        *map(by.numbers, numbers.values()),
    ]
