"""A cluster as `top` reads it: tables with the real columns of the view API, and HPAs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.errors import VIEW
from adapter.tools.client.tables import Cell, ObjectTable, TableRow
from adapter.tools.top.facts import ClusterLists
from apiservice.view.resource import ViewResource
from tests.adapter.clientapi import ApiServer, table_row
from tests.adapter.tablenumbers import number_cells, number_names
from tests.adapter.tools.overview.hpas import at_maximum, hpa, state_of, stuck

Json = dict[str, Any]
AT = 1767323045.0
HPAS = "/apis/autoscaling/v2"
POOL = "karpenter.sh/nodepool"


def row(
    resource: ViewResource, name: str, namespace: str, labels: Mapping[str, str], **cells: Cell
) -> TableRow:
    """A row with these cells, by column in lower case and ``_`` for ``-``; the others are empty."""
    keys = [column.name.lower().replace("-", "_") for column in resource.columns]
    assert set(cells) <= set(keys)
    row_cells = [cells.get(key) for key in keys]
    texts = dict(zip((column.name for column in resource.columns), row_cells, strict=True))
    return TableRow(name, namespace, labels, [name, *row_cells, *number_cells(resource, texts)])


def table(resource: ViewResource, rows: Sequence[TableRow]) -> ObjectTable:
    names = (*(column.name for column in resource.columns), *number_names(resource))
    return ObjectTable(("Name", *names), rows)


def gpu(name: str, util: str | None = None, pods: str | None = None, **cells: Cell) -> TableRow:
    node, _, number = name.partition(".gpu")
    defaults: dict[str, Cell] = {"node": node, "gpu": number, "model": "H100", "age": "2s"}
    defaults |= {"util": util, "pods": pods}
    return row(GPUS, name, "", {POOL: "h100"}, **{**defaults, **cells})


def pod(name: str, util: str | None = None, namespace: str = "chat", **cells: Cell) -> TableRow:
    return row(GPUPODS, name, namespace, {}, util=util, **cells)


def node(name: str, **cells: Cell) -> TableRow:
    return row(GPUNODES, name, "", {}, **{"pool": "h100", "gpus": 8, "silent": 0, **cells})


def pool(name: str, **cells: Cell) -> TableRow:
    return row(GPUPOOLS, name, "", {}, **{"nodes": 1, "gpus": 8, "free": 0, **cells})


def workload(name: str, namespace: str = "chat", **cells: Cell) -> TableRow:
    return row(GPUWORKLOADS, name, namespace, {}, **cells)


GPU_ROWS = [
    gpu("n1.gpu0", "92%", "chat/llm-7f9", mem="71.9/80Gi"),
    gpu("n1.gpu1", "88%", "chat/llm-a11", mem="68.8/80Gi"),
    gpu("n2.gpu0", "0%", "chat/embed-0 +1", mem="32/80Gi", sharing="time-slicing", idle_since="3h"),
    gpu("n2.gpu10", None, None, age="40s"),
    gpu("n2.gpu9", "0.4%", None, mem="512/81920Mi"),
]
POD_ROWS = [
    pod("embed-0", "0%", mem="32Gi", how="copied", devices="1", age="2s", node="n2"),
    pod("llm-7f9", "92%", mem="71.9Gi", how="exact", devices="1", age="2s", node="n1"),
    pod("llm-a11", "88%", mem="68.8Gi", how="exact", devices="1", age="2s", node="n1"),
    pod("llm-x2k", None, why_not="exporter_names_no_pod", node="n3"),
    pod("train-0", None, "research", why_not="not_scheduled"),
]
WORKLOAD_ROWS = [
    workload("deployment.embed", pods=1, measured=1, util="0%", max="0%", idle="3h"),
    workload(
        "deployment.llm",
        pods=3,
        measured=2,
        util="90%",
        max="92%",
        hpa="llm +1",
        target="gpu_utilization 90/70",
        wants="3",
        why_not="exporter_names_no_pod",
    ),
]
NODE_ROWS = [node("n1", gpus=2, reported=2, left=0), node("n2", gpus=3, reported=3, left=1)]
HPA_ROWS = [hpa("embed"), stuck("llm"), at_maximum("rank", "search")]


POOL_ROWS = (
    pool("h100", busy=6, idle=2, largest=None),
    pool("l4", gpus=4, busy=1, idle=0, free=3, largest="2 nvidia.com/gpu", fragmented="33%"),
)


def facts(
    gpus: Sequence[TableRow] = GPU_ROWS,
    pods: Sequence[TableRow] = POD_ROWS,
    workloads: Sequence[TableRow] = WORKLOAD_ROWS,
    hpas: Sequence[Json] = HPA_ROWS,
    nodes: Sequence[TableRow] = NODE_ROWS,
) -> ClusterLists:
    """What a look found."""
    return ClusterLists(
        {
            "gpus": table(GPUS, gpus),
            "gpunodes": table(GPUNODES, nodes),
            "gpupools": table(GPUPOOLS, POOL_ROWS),
            "gpupods": table(GPUPODS, pods),
            "gpuworkloads": table(GPUWORKLOADS, workloads),
        },
        [state_of(manifest) for manifest in hpas],
        at=AT,
        took=0.1,
    )


def serve(
    server: ApiServer,
    gpus: Sequence[TableRow] = GPU_ROWS,
    pods: Sequence[TableRow] = POD_ROWS,
    workloads: Sequence[TableRow] = WORKLOAD_ROWS,
    hpas: Sequence[Json] = HPA_ROWS,
    nodes: Sequence[TableRow] = NODE_ROWS,
) -> None:
    """Let a server answer with these rows, of all namespaces and of the namespace chat."""
    for name, resource, rows in (
        ("gpus", GPUS, gpus),
        ("gpunodes", GPUNODES, nodes),
        ("gpupools", GPUPOOLS, POOL_ROWS),
        ("gpupods", GPUPODS, pods),
        ("gpuworkloads", GPUWORKLOADS, workloads),
    ):
        columns = table(resource, ()).columns
        here = [line for line in rows if line.namespace == "chat"]
        server.tables[f"{VIEW}/{name}"] = (columns, list(map(_answer, rows)))
        server.tables[f"{VIEW}/namespaces/chat/{name}"] = (columns, list(map(_answer, here)))
    path = "horizontalpodautoscalers"
    server.answers[f"{HPAS}/{path}"] = list(hpas)
    here_too = [manifest for manifest in hpas if manifest["metadata"]["namespace"] == "chat"]
    server.answers[f"{HPAS}/namespaces/chat/{path}"] = here_too


def _answer(found: TableRow) -> Json:
    return table_row(found.name, list(found.cells[1:]), found.namespace, dict(found.labels))
