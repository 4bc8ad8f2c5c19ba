"""Pictures of ``top`` at 10,000 GPUs: with new values in every round, and after a key.

The lists are those of the simulated cluster of ``load/uicluster.py``, read by the code of ``top``.
Measured is the CPU time of a picture of 120x40, from the lists to styled lines.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from adapter.config.process.output import Screen
from adapter.tools.client.errors import VIEW
from adapter.tools.client.tables import ObjectTable, TableRow, decode_table
from adapter.tools.overview.hpas import summarize
from adapter.tools.overview.scalers import ReadScalers, read_hpa
from adapter.tools.top.facts import ClusterLists, ListName
from adapter.tools.top.frame import Painter, Picture, Scene
from adapter.tools.top.state import TopState, press
from adapter.tools.top.tables import ViewName
from load.table import Goal, Run, Table
from load.uicluster import VERSIONS, SimulatedCluster
from tests.adapter.tools.ui.cluster import HPAS

GPUS: Final = 10_000
_VIEWS: Final[tuple[ViewName, ...]] = ("overview", "gpus", "pods", "workloads", "hpas", "nodes")
_TABLES: Final[tuple[ListName, ...]] = ("gpus", "gpunodes", "gpupods", "gpuworkloads")
_WIDTH, _HEIGHT = 120, 40
_GOAL: Final = 100.0
"""Milliseconds."""
_NOTE: Final = (
    "{:,} GPUs and pods, {:,} HPAs and workloads, a terminal of 120x40. CPU time from the lists to "
    "the styled lines of the picture; new values are in every list, and the names are the same. A "
    "key moves the cursor."
)


class ViewTimes(NamedTuple):
    """Milliseconds of CPU of a view's pictures."""

    first: float
    new: list[float]
    """With new values in every list."""
    key: list[float]
    """After a key that moves the cursor."""


def top(run: Run) -> Table:
    """Draw each view with new values."""
    gpus, rounds = (500, 2) if run.quick else (GPUS, 4 * VERSIONS)
    versions = _read(SimulatedCluster(gpus))
    # As the lists of a running process, they are not collected again.
    gc.collect()
    gc.freeze()
    return table(gpus, {view: _times(view, versions, rounds) for view in _VIEWS})


def table(gpus: int, times_by_view: dict[ViewName, ViewTimes]) -> Table:
    """Return the figures."""
    worst = max(max(times.new) for times in times_by_view.values())
    return Table(
        ("view", "first ms", "new values ms", "at most ms", "key ms"),
        tuple(
            (
                view,
                f"{times.first:.0f}",
                f"{median(times.new):.0f}",
                f"{max(times.new):.0f}",
                f"{median(times.key):.1f}",
            )
            for view, times in times_by_view.items()
        ),
        goals=(
            Goal(
                f"a picture with new values below {_GOAL:g} ms",
                f"{worst:.0f} ms at most",
                worst < _GOAL,
            ),
        ),
        notes=(_NOTE.format(gpus, gpus // 5),),
    )


def _times(view: ViewName, versions: Sequence[ClusterLists], rounds: int) -> ViewTimes:
    painter, state = Painter(Screen(width=_WIDTH, unicode=True)), TopState(view=view)
    new, keys = [], []
    for turn in range(rounds + 1):
        scene = Scene(versions[turn % len(versions)])
        picture, took = _draw_picture(painter, state, scene)
        new.append(took)
        state, _ = press(state, "down", picture.shown)
        keys.append(_draw_picture(painter, state, scene)[1])
    return ViewTimes(new[0], new[1:], keys)


def _draw_picture(painter: Painter, state: TopState, scene: Scene) -> tuple[Picture, float]:
    began = time.process_time()
    picture = painter.paint(state, scene, _WIDTH, _HEIGHT)
    return picture, 1000 * (time.process_time() - began)


def _read(cluster: SimulatedCluster) -> list[ClusterLists]:
    """Return the lists of each version."""
    return [
        ClusterLists(
            {name: _table(cluster, name) for name in _TABLES},
            [*summarize(ReadScalers(list(map(read_hpa, _items(cluster)))), {}, 1_767_603_540.0)],
            at=1_767_603_540.0,
        )
        for _ in range(VERSIONS)
    ]


def _table(cluster: SimulatedCluster, name: ListName) -> ObjectTable:
    rows: list[TableRow] = []
    columns: Sequence[str] = ()
    query: dict[str, list[str]] = {}
    while (body := cluster.answer(f"{VIEW}/{name}", query)) is not None:
        page = decode_table(body)
        rows += page.rows
        columns, query = page.columns, {"continue": [page.token]}
        if not page.token:
            break
    return ObjectTable(columns, rows)


def _items(cluster: SimulatedCluster) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    query: dict[str, list[str]] = {}
    while (body := cluster.answer(HPAS, query)) is not None:
        page = json.loads(body)
        items += page["items"]
        if not (token := page["metadata"].get("continue")):
            break
        query = {"continue": [token]}
    return items
