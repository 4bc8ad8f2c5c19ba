"""Rows, order and filter: kubectl's texts, and a dash with its reason for a missing value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from adapter.answers.keda.manifest import read_scaledobject
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.overview.columns import natural_key
from adapter.tools.overview.hpas import summarize
from adapter.tools.overview.scalers import ReadScalers
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.order import Sort, filter_rows, order_rows
from adapter.tools.top.rows import RowKey
from adapter.tools.top.summaries import SHOWN, tables_of
from adapter.tools.top.tables import TopTable, ViewName
from apiservice.view.resource import ViewResource
from tests.adapter.tools.overview.hpas import at_maximum, condition, hpa, stuck
from tests.adapter.tools.top.cluster import facts, gpu, node, pod


def shown(view: ViewName, *, everywhere: bool = True) -> TopTable:
    (table,) = tables_of(view, facts(), everywhere=everywhere)
    return table


def names(table: TopTable, sort: Sort | None = None) -> list[str]:
    return [row.key.name for row in order_rows(table, sort or Sort(table.sort))]


def column(table: TopTable, name: str) -> dict[str, str | None]:
    return {row.key.name: row.cells[table.index(name)] for row in table.rows}


@pytest.mark.parametrize(
    ("view", "resource"),
    [("gpus", GPUS), ("pods", GPUPODS), ("workloads", GPUWORKLOADS), ("pools", GPUPOOLS)],
)
def test_a_view_has_the_columns_of_kubectl_in_the_same_order(
    view: ViewName, resource: ViewResource
) -> None:
    columns = shown(view, everywhere=False).columns
    own = ["NAME", *(heading.name.upper() for heading in resource.columns)]
    assert [heading.name for heading in columns] == own
    kept = ["NAME", *(heading.name.upper() for heading in resource.columns if not heading.wide)]
    assert [heading.name for heading in columns if heading.rank < 5] == kept


def test_cells_are_the_texts_of_the_server_and_missing_ones_are_none() -> None:
    table = shown("pods")
    assert column(table, "MEM")["llm-7f9"] == "71.9Gi"
    assert column(table, "UTIL")["llm-x2k"] is None
    assert column(table, "WHY-NOT")["llm-x2k"] == "exporter_names_no_pod"
    assert column(table, "NAMESPACE")["train-0"] == "research"
    assert shown("pods", everywhere=False).columns[0].name == "NAME"


def test_a_column_that_an_older_server_lacks_is_empty() -> None:
    lists = facts()
    old = lists.tables["gpus"]
    place = list(old.columns).index("XID")
    rows = [
        replace(row, cells=[c for at, c in enumerate(row.cells) if at != place]) for row in old.rows
    ]
    less = old._replace(columns=[c for c in old.columns if c != "XID"], rows=rows)
    (table,) = tables_of("gpus", ClusterLists({**lists.tables, "gpus": less}), everywhere=True)
    assert set(column(table, "XID").values()) == {None}
    assert column(table, "UTIL")["n1.gpu0"] == "92%"


ORDERS: dict[str, tuple[ViewName, Sort, list[str]]] = {
    "the busiest first, and those without a value last": (
        "gpus",
        Sort("UTIL"),
        ["n1.gpu0", "n1.gpu1", "n2.gpu9", "n2.gpu0", "n2.gpu10"],
    ),
    "reversed, those without a value are last too": (
        "gpus",
        Sort("UTIL", reverse=True),
        ["n2.gpu0", "n2.gpu9", "n1.gpu1", "n1.gpu0", "n2.gpu10"],
    ),
    "memory by bytes and not by text": (
        "gpus",
        Sort("MEM"),
        ["n1.gpu0", "n1.gpu1", "n2.gpu0", "n2.gpu9", "n2.gpu10"],
    ),
    "names with numbers": (
        "gpus",
        Sort("NAME"),
        ["n1.gpu0", "n1.gpu1", "n2.gpu0", "n2.gpu9", "n2.gpu10"],
    ),
    "ages by time": (
        "gpus",
        Sort("AGE"),
        ["n2.gpu10", "n1.gpu0", "n1.gpu1", "n2.gpu0", "n2.gpu9"],
    ),
    "what needs attention first": ("hpas", Sort("STATE"), ["llm", "rank", "embed"]),
    "nodes": ("nodes", Sort("UTIL"), ["n1", "n2"]),
    "reasons by text": (
        "pods",
        Sort("WHY-NOT"),
        ["llm-x2k", "train-0", "embed-0", "llm-7f9", "llm-a11"],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_rows_are_sorted(name: str) -> None:
    view, sort, order = ORDERS[name]
    assert names(shown(view), sort) == order


def test_rows_with_the_same_value_stay_in_the_order_of_their_names() -> None:
    rows = [gpu(f"n{number}.gpu0", "50%") for number in (10, 2, 1)]
    (table,) = tables_of("gpus", facts(gpus=rows), everywhere=True)
    for reverse in (False, True):
        assert names(table, Sort("UTIL", reverse)) == ["n1.gpu0", "n2.gpu0", "n10.gpu0"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", 5),
        ("LLM", 3),
        ("chat llm", 3),
        ("exact !a11", 1),
        ("names_no", 1),
        ("research", 1),
        ("!chat", 1),
        ("nothing", 0),
        ("!", 0),
        ("[bold] \\", 0),
    ],
)
def test_the_filter_has_words_and_words_that_must_be_absent(typed: str, found: int) -> None:
    assert len(filter_rows(shown("pods").rows, typed)) == found


def test_a_node_sums_up_its_devices_and_a_mean_leaves_out_missing_values() -> None:
    table = shown("nodes")
    row = next(row for row in table.rows if row.key.name == "n2")
    cells = dict(zip([heading.name for heading in table.columns], row.cells, strict=True))
    assert cells == {
        "NAME": "n2",
        "POOL": "h100",
        "MODEL": "H100",
        "GPUS": "3",
        "UTIL": "0.2%",
        "MAX": "0.4%",
        "BUSY": "0",
        "IDLE": "1",
        "FREE": "0",
        "BLOCKED": "0",
        "NO-POD": "1",
        "NO-VALUE": "1",
        "IDLE-FOR": "3h",
        "WHY": None,
    }
    without = facts(gpus=[gpu("n1.gpu0", model=None), gpu("n1.gpu1", model="T4")], nodes=[])
    (one,) = tables_of("nodes", without, everywhere=True)
    assert one.rows[0].cells[one.index("UTIL")] is None
    assert one.rows[0].cells[one.index("IDLE-FOR")] is None


CELLS = st.tuples(
    st.sampled_from([None, "0%", "0.4%", "60%"]),
    st.sampled_from([None, "chat/llm-7f9"]),
    st.sampled_from([None, "30s", "3h"]),
    st.sampled_from([None, "DiskPressure"]),
)


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_each_gpu_of_a_node_is_in_one_column(cells: list[tuple[str | None, ...]]) -> None:
    devices = [
        gpu(f"n1.gpu{number}", util, pods, idle_since=idle, blocked=blocked)
        for number, (util, pods, idle, blocked) in enumerate(cells)
    ]
    (table,) = tables_of("nodes", facts(gpus=devices, nodes=[]), everywhere=True)
    row = dict(zip([heading.name for heading in table.columns], table.rows[0].cells, strict=True))
    counts = [
        int(row[name] or 0) for name in ("BUSY", "IDLE", "FREE", "BLOCKED", "NO-POD", "NO-VALUE")
    ]
    assert sum(counts) == int(row["GPUS"] or 0) == len(cells)
    running = [util for util, pods, idle, _ in cells if pods is None and idle is None and util]
    assert counts[2] <= len(cells) - sum(util != "0%" for util in running)


def test_a_node_where_no_pod_can_start_has_no_free_gpu() -> None:
    lists = facts(
        gpus=[gpu("n1.gpu0", "0%", None, blocked="cordoned"), gpu("n2.gpu0", "0%", None)],
        nodes=[
            node("n1", gpus=1, left=0, blocked="cordoned"),
            node("n2", gpus=1, left=1, withheld="1 of 2 nvidia.com/gpu"),
        ],
    )
    (table,) = tables_of("nodes", lists, everywhere=True)
    assert column(table, "FREE") == {"n1": "0", "n2": "1"}
    assert column(table, "BLOCKED") == {"n1": "1", "n2": "0"}
    assert column(table, "WHY") == {
        "n1": "cordoned",
        "n2": "does not offer 1 of 2 nvidia.com/gpu",
    }
    assert {row.emphasis for row in table.rows} == {"warning"}
    _, _, closed, *_ = tables_of("overview", lists, everywhere=True)
    assert closed.title == "Nodes that need attention"
    assert [row.key.name for row in closed.rows] == ["n1", "n2"]
    assert tables_of("gpus", lists, everywhere=True)[0].rows[0].emphasis == "warning"


def test_a_gpu_that_its_node_does_not_offer_is_not_free() -> None:
    """Nobody says which one it is, so that the number is right and not the device."""
    lists = facts(
        gpus=[gpu(f"n1.gpu{number}", "0%", None) for number in range(4)],
        nodes=[node("n1", gpus=4, left=3, withheld="1 of 4 nvidia.com/gpu")],
    )
    (table,) = tables_of("nodes", lists, everywhere=True)
    assert column(table, "FREE") == {"n1": "3"}
    assert column(table, "BLOCKED") == {"n1": "1"}


def test_a_node_without_an_exporter_is_listed_and_its_gpus_have_no_value() -> None:
    lists = facts(
        gpus=[gpu("n1.gpu0", "92%", "chat/llm")],
        nodes=[
            node("n1", gpus=2, silent=1),
            node("n9", gpus=8, silent=8, model="A100", pool="a100"),
        ],
    )
    (table,) = tables_of("nodes", lists, everywhere=True)
    assert column(table, "GPUS") == {"n1": "2", "n9": "8"}
    assert column(table, "NO-VALUE") == {"n1": "1", "n9": "8"}
    assert column(table, "UTIL") == {"n1": "92%", "n9": None}
    assert column(table, "MODEL")["n9"] == "A100"
    assert column(table, "POOL")["n9"] == "a100"
    assert column(table, "WHY") == {
        "n1": "no exporter reports 1 of its 2 GPUs",
        "n9": "no exporter reports its GPUs",
    }


def test_the_list_of_gpus_says_which_gpus_it_lacks() -> None:
    lists = facts(gpus=[gpu("n1.gpu0", "92%", "chat/llm")], nodes=[node("n9", gpus=8, silent=8)])
    (table,) = tables_of("gpus", lists, everywhere=True)
    assert [row.key.name for row in table.rows] == ["n1.gpu0"]
    assert table.notes == (
        (
            "8 GPUs of node n9 are not listed: no exporter reports them. See: "
            "gpu-metrics-adapter explain node n9"
        ),
    )
    (whole,) = tables_of("gpus", facts(gpus=[gpu("n1.gpu0", "92%")]), everywhere=True)
    assert whole.notes == ()


def test_without_the_list_of_nodes_nothing_is_said_about_them() -> None:
    lists = facts()
    less = ClusterLists({k: v for k, v in lists.tables.items() if k != "gpunodes"}, lists.hpas)
    (table,) = tables_of("nodes", less, everywhere=True)
    assert len(table.rows) == 2
    titles = [part.title for part in tables_of("overview", less, everywhere=True)]
    assert "Nodes that need attention" not in titles


def test_a_gpu_that_runs_without_a_pod_is_not_free() -> None:
    lists = facts(gpus=[gpu("n1.gpu0", "60%", None)], nodes=[])
    (table,) = tables_of("nodes", lists, everywhere=True)
    (row,) = table.rows
    assert (row.cells[table.index("FREE")], row.cells[table.index("NO-POD")]) == ("0", "1")
    assert row.emphasis == "warning"
    assert tables_of("gpus", lists, everywhere=True)[0].rows[0].emphasis == "warning"


def test_hpas_with_one_cause_are_one_row_of_the_overview() -> None:
    many = [stuck(f"svc-{n}") for n in range(30)]
    part, *_ = tables_of("overview", facts(hpas=[*many, at_maximum("rank")]), everywhere=True)
    group, alone = part.rows
    cells = dict(zip([heading.name for heading in part.columns], group.cells, strict=True))
    assert (cells["NAMESPACE"], cells["NAME"]) == ("chat", "30 HPAs, such as svc-0")
    assert cells["STATE"] == "stuck"
    assert group.about == RowKey("hpa", "chat", "svc-0")
    assert alone.key.name == "rank"
    (table,) = tables_of("hpas", facts(hpas=many), everywhere=True)
    assert len(table.rows) == 30


def test_each_row_leads_to_its_explanation() -> None:
    about = {
        view: {row.key.name: row.about for row in shown(view).rows}
        for view in ("gpus", "pods", "workloads", "hpas", "nodes")
    }
    assert about["gpus"]["n1.gpu0"] == RowKey("gpu", "", "n1.gpu0")
    assert about["pods"]["llm-x2k"] == RowKey("pod", "chat", "llm-x2k")
    assert about["workloads"]["deployment.llm"] == RowKey("workload", "chat", "deployment.llm")
    assert about["hpas"]["rank"] == RowKey("hpa", "search", "rank")
    assert about["nodes"]["n2"] == RowKey("node", "", "n2")


def test_the_target_of_an_hpa_without_a_value_has_a_dash_and_not_a_0() -> None:
    targets = column(shown("hpas"), "TARGETS")
    assert targets["llm"] == "gpu_utilization -/60"
    assert targets["rank"] == "gpu_utilization 92/60"
    (table,) = tables_of("hpas", facts(hpas=[hpa(metrics=())]), everywhere=False)
    assert column(table, "TARGETS") == {"llm": None}


def test_the_overview_has_what_needs_attention_and_the_busiest_and_idle_gpus() -> None:
    parts = {
        part.title: [row.key.name for row in part.rows]
        for part in tables_of("overview", facts(), everywhere=True)
    }
    assert parts == {
        "HPAs that need attention": ["llm", "rank"],
        "Pods without a value": ["exporter_names_no_pod", "not_scheduled"],
        "Nodes that need attention": [],
        "Busiest GPUs": ["n1.gpu0", "n1.gpu1", "n2.gpu9", "n2.gpu0"],
        "Nodes with idle GPUs": ["n2"],
    }


def test_each_part_of_the_overview_is_bounded_and_says_how_many_there_are() -> None:
    many = facts(
        gpus=[gpu(f"n{number}.gpu0", "5%", "a/b", idle_since="1h") for number in range(30)],
        pods=[pod(f"p{number}", why_not=f"reason_{number}") for number in range(30)],
        hpas=[stuck(f"h{number}", reason=f"Reason{number}") for number in range(30)],
        nodes=[node(f"n{number}", blocked=f"{number} CPU left") for number in range(30)],
    )
    parts = tables_of("overview", many, everywhere=True)
    assert {len(part.rows) for part in parts} == {SHOWN}
    assert all(part.title.endswith("(10 of 30)") for part in parts)


def test_an_overview_of_nothing_says_so() -> None:
    empty = facts([], [], [], [], [])
    assert [part.none for part in tables_of("overview", empty, everywhere=True)] == [
        "No HPA needs attention.",
        "No pod holds a GPU.",
        "No GPU node is closed to pods or without an exporter.",
        "No GPU has a utilization.",
        "No GPU that a pod holds has been idle for 10 minutes.",
    ]
    assert tables_of("overview", ClusterLists(), everywhere=True) == []
    assert tables_of("pods", ClusterLists(), everywhere=True) == []


def test_the_order_of_names_is_that_of_the_page() -> None:
    assert sorted(["b10", "b9"], key=natural_key) == ["b9", "b10"]


def _zero(name: str, metrics: Any = None) -> dict[str, Any]:
    disabled = condition("ScalingActive", "False", "ScalingDisabled", "replicas are 0")
    more = {} if metrics is None else {"metrics": metrics}
    return hpa(name, 0, 0, values=(), conditions=(disabled,), **more)


def test_a_workload_has_the_state_of_what_scales_it_also_without_pods() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    scalers = [_zero("embed"), _zero("sleeper"), _zero("web", (cpu,)), stuck("llm")]
    lists = facts(hpas=scalers)
    (table,) = tables_of("workloads", lists, everywhere=True)
    states = column(table, "STATE")
    assert states["deployment.embed"] == "paused", "the view API knew no HPA of it"
    assert states["deployment.sleeper"] == "paused"
    assert column(table, "PODS")["deployment.sleeper"] == "0"
    assert column(table, "UTIL")["deployment.sleeper"] is None
    assert "deployment.web" not in states, "no metric of this adapter scales it"
    (row,) = (row for row in table.rows if row.key.name == "deployment.sleeper")
    assert row.about == RowKey("workload", "chat", "deployment.sleeper")


def test_a_paused_scaled_object_is_the_state_of_its_workload() -> None:
    notes = {"autoscaling.keda.sh/paused": "true"}
    scaled = read_scaledobject(
        {
            "metadata": {"name": "so", "namespace": "chat", "annotations": notes},
            "spec": {"scaleTargetRef": {"name": "embed"}, "triggers": [{"type": "cron"}]},
        }
    )
    summaries = [*summarize(ReadScalers([], [scaled]), None, 1767323045.0)]
    lists = ClusterLists(facts().tables, summaries)
    (table,) = tables_of("workloads", lists, everywhere=True)
    assert column(table, "STATE")["deployment.embed"] == "paused"
    assert column(table, "HPA")["deployment.embed"] == "scaledobject/so"


def test_pools_with_the_most_free_gpus_are_first() -> None:
    table = shown("pools")
    assert names(table) == ["l4", "h100"]
    assert column(table, "LARGEST") == {"h100": None, "l4": "2 nvidia.com/gpu"}
    assert column(table, "FREE") == {"h100": "0", "l4": "3"}
