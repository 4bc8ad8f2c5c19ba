"""The parts that follow from tables: order, numbers, missing values, and times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from adapter.answers.judgement.counts import CLASSES
from adapter.answers.judgement.states import LEVELS, ORDER
from adapter.answers.view.gpuclass import GpuClass
from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.errors import ClientError
from adapter.tools.client.histories import HpaPast
from adapter.tools.explain.headroom import HeadroomRow, HeldHeadroom
from adapter.tools.idle.prices import PriceList
from adapter.tools.overview.scalers import ReadScalers
from adapter.tools.ui.gpurows import fleet, share, silent_nodes, with_silent
from adapter.tools.ui.history import MOST_HPAS, POINTS, HpaHistory, as_json
from adapter.tools.ui.hparows import hpa_rows
from adapter.tools.ui.idlecosts import idle_price
from adapter.tools.ui.idlelist import MOST_PODS, candidates
from adapter.tools.ui.model import Model, PageFacts
from adapter.tools.ui.panels import NODES, PanelState, failed_state, readers
from adapter.tools.ui.podrows import pods, pools, workloads
from tests.adapter.clientapi import table_row
from tests.adapter.tools.overview.hpas import state_of
from tests.adapter.tools.ui.cluster import (
    POOL,
    columns,
    gpu,
    hpa,
    node,
    pod,
    stuck,
    table_of,
    workload,
)

NOW = 1_000_000.0
STATIC = Path(__file__).parents[4] / "adapter" / "tools" / "ui" / "static"
PRICES = PriceList({"H100": 4.0}, "EUR", own=True)


def test_devices_are_sorted_by_pool_node_and_number() -> None:
    rows = [
        gpu("d", "n10", "0"),
        gpu("c", "n2", "10"),
        gpu("b", "n2", "2"),
        gpu("e", "n1", "0", labels={POOL: "p2"}),
        gpu("f", "n1", "0", labels={}),
    ]
    devices = fleet(table_of(GPUS, rows), NOW, {})
    assert [row[0] for row in devices.static["rows"]] == ["b", "c", "d", "e", "f"]
    assert devices.pools == {"n2": "p1", "n10": "p1", "n1": "p2"}


def test_a_missing_value_is_none_and_a_small_one_is_not_zero() -> None:
    rows = [gpu("a", Util=None, Mem=None), gpu("b", Util="0%", Mem="<0.1/80Gi")]
    load = fleet(table_of(GPUS, rows), NOW, {}).load
    assert load["util"] == [None, 0.0]
    assert load["memShare"][0] is None
    assert 0 < load["memShare"][1] < 0.01


def test_gpus_that_no_exporter_reports_are_rows_of_their_node() -> None:
    listed = fleet(table_of(GPUS, [gpu("a", "n1"), gpu("b", "n2"), gpu("c", "n3")]), NOW, {})
    rows = [
        node("n1", Reported=1, Silent=0),
        node("n2", Reported=0, Silent=3, Model="H100", labels={POOL: "p1"}),
        node("n9", Reported=0, Silent=1, labels={POOL: "p1"}),
    ]
    static, load = with_silent(listed, silent_nodes(table_of(GPUNODES, rows)))
    at = {name: index for index, name in enumerate(static["columns"])}
    shown = [(row[at["name"]], row[at["model"]], row[at["unreported"]]) for row in static["rows"]]
    assert shown == [
        ("a", "H100 80GB HBM3", None),
        ("b", "H100 80GB HBM3", None),  # reported since the nodes were read
        ("n2: no exporter (1 of 2)", "H100", True),
        ("n2: no exporter (2 of 2)", "H100", True),
        ("c", "H100 80GB HBM3", None),
        ("n9: no exporter (1 of 1)", None, True),
    ]
    assert load["class"] == ["busy", "busy", "unmeasured", "unmeasured", "busy", "unmeasured"]
    assert load["util"] == [54.0, 54.0, None, None, 54.0, None]
    assert {len(column) for column in load.values()} == {6}


def test_without_such_gpus_the_parts_stay_the_same_objects() -> None:
    listed = fleet(table_of(GPUS, [gpu("a", "n1")]), NOW, {})
    every = silent_nodes(table_of(GPUNODES, [node("n1", Reported=1, Silent=0)]))
    assert with_silent(listed, every) == (listed.static, listed.load)
    late = silent_nodes(table_of(GPUNODES, [node("n1", Reported=0, Silent=1)]))
    assert with_silent(listed, late)[0] is listed.static


def test_a_device_that_is_not_healthy_and_its_pods_say_why() -> None:
    rows = [gpu("a", Unhealthy="XID error 79", UUID="GPU-a"), gpu("b", UUID="GPU-b")]
    devices = fleet(table_of(GPUS, rows), NOW, {})
    assert devices.load["unhealthy"] == ["XID error 79", None]
    pod_rows = [
        pod("one", Device_IDs="GPU-b,GPU-a"),
        pod("two", Device_IDs="GPU-b"),
        pod("three", Unhealthy="gpu-0 (nvidia.com/gpu)"),
    ]
    part = pods(table_of(GPUPODS, pod_rows), devices.pools, devices.models, devices.unhealthy)
    column = part["columns"].index("unhealthy")
    assert [row[column] for row in part["rows"]] == [
        "XID error 79",
        None,
        "gpu-0 (nvidia.com/gpu)",
    ]


def test_each_device_has_its_class_and_the_time_of_idle_is_that_of_the_command() -> None:
    rows = [gpu("a"), gpu("b", Util="0%", Idle_Since="20m"), gpu("c", Pods=None, Util="0%")]
    devices = fleet(table_of(GPUS, rows), NOW, {})
    assert devices.load["class"] == devices.classes == ["busy", "idle", "free"]
    assert fleet(table_of(GPUS, rows), NOW, {}, 7200.0).classes == ["busy", "busy", "free"]


def test_devices_are_sent_again_only_if_they_or_the_unreported_ones_changed() -> None:
    model, names = Model(PRICES, 600.0), readers("")
    panels = {name: PanelState(name, "ok", updated=NOW) for name in names}
    devices = table_of(GPUS, [gpu("a", "n1")])

    def sent(changed: str, *nodes: dict[str, Any]) -> set[str]:
        facts = PageFacts(panels, {"gpus": devices, NODES: table_of(GPUNODES, nodes)})
        return model.parts(facts, {changed}, NOW).keys() & {"gpus", "load"}

    whole, silent = node("n9"), node("n9", Reported=0, Silent=8)
    assert sent("gpus", whole) == {"gpus", "load"}
    assert sent(NODES, whole) == set()
    assert sent(NODES, silent) == {"gpus", "load"}
    assert sent(NODES, silent) == set()
    assert sent(NODES, whole) == {"gpus", "load"}


def test_the_verdict_counts_gpus_that_no_exporter_reports() -> None:
    names = readers("")
    nodes = table_of(GPUNODES, [node("n1"), node("n9", Silent=8)])
    facts = PageFacts({name: PanelState(name, "ok", updated=NOW) for name in names}, {NODES: nodes})
    parts = Model(PRICES, 600.0).parts(facts, {NODES}, NOW)
    verdict = msgspec.json.decode(parts["verdict"])
    assert (verdict["level"], verdict["text"]) == ("warning", "8 GPUs are reported by no exporter.")


def test_a_gpu_that_no_pod_can_get_says_why() -> None:
    rows = [
        gpu("n1.gpu0", "n1", "0", Util="0%", Pods=None, Blocked="cordoned"),
        gpu("n1.gpu1", "n1", "1", Util="80%", Blocked="cordoned"),
    ]
    parts = fleet(table_of(GPUS, rows), NOW, {})
    assert list(parts.classes) == ["blocked", "busy"]
    assert parts.load["blocked"] == ["cordoned", None]


@pytest.mark.parametrize(
    ("used", "total", "found"),
    [
        (31.2, 80, 0.39),
        (80, 80, 1.0),
        (81, 80, 1.0),
        (4, None, None),
        (None, 80, None),
        (1, 0, None),
    ],
)
def test_the_share_of_memory(used: float | None, total: float | None, found: float | None) -> None:
    assert share(used, total) == found


def test_the_time_since_which_a_device_is_idle_does_not_jump() -> None:
    """Requests take time: the time of the first look stays while a look is close to it."""
    before: dict[str, float] = {}
    times = []
    for at, ago in ((0, "1200s"), (30, "1229s"), (61, "1263s"), (4000, "5197s"), (5000, "300s")):
        table = table_of(GPUS, [gpu("a", Idle_Since=ago)])
        before = dict(fleet(table, NOW + at, before).idle_since)
        times.append(before["a"])
    assert times[:4] == [NOW - 1200.0] * 4
    assert times[4] == NOW + 5000.0 - 300.0


def test_pods_have_the_pool_and_model_of_their_device() -> None:
    devices = fleet(table_of(GPUS, [gpu("g0")]), NOW, {})
    table = table_of(GPUPODS, [pod("a", Device_IDs="GPU-g0,GPU-g1"), pod("b", Device_IDs=None)])
    part = pods(table, devices.pools, devices.models, devices.unhealthy)
    rows = [dict(zip(part["columns"], row, strict=True)) for row in part["rows"]]
    assert [(row["pool"], row["model"]) for row in rows] == [
        ("p1", "H100 80GB HBM3"),
        ("p1", None),
    ]


def test_workloads_have_numbers_beside_the_texts_of_their_utilization() -> None:
    part = workloads(table_of(GPUWORKLOADS, [workload("llm", Util="54%", Max="92%")]))
    (row,) = (dict(zip(part["columns"], cells, strict=True)) for cells in part["rows"])
    assert (row["util"], row["max"]) == ("54%", "92%")
    assert (row["utilNumber"], row["maxNumber"]) == (54.0, 92.0)


def test_only_held_devices_that_are_idle_for_ten_minutes_cost() -> None:
    rows = [
        gpu("a", Idle_Since="60m"),
        gpu("b", Idle_Since="9m"),
        gpu("c", Idle_Since="5h", Pods=None),
        gpu("d", Idle_Since="5h", Model="B200"),
    ]
    assert idle_price(table_of(GPUS, rows), PRICES) == (4.0, 4.0, 1)
    assert idle_price(table_of(GPUS, rows[3:]), PRICES) == (None, None, 1)
    assert idle_price(table_of(GPUS, rows), PRICES, idle_after=7200.0) == (None, None, 1)
    assert idle_price(table_of(GPUS, rows), PRICES, idle_after=540.0) == (8.0, 4.6, 1)


def test_idle_pods_are_found_by_their_devices() -> None:
    gpus = table_of(GPUS, [gpu("a", Idle_Since="20m"), gpu("b", Idle_Since="5h"), gpu("c")])
    gpupods = table_of(
        GPUPODS,
        [
            pod("x", Device_IDs="GPU-a"),
            pod("y", Device_IDs="GPU-c,GPU-b"),
            pod("z", Device_IDs="GPU-c", Util="0%"),
            pod("w", Device_IDs=None, Util=None, Why_Not="exporter_down"),
        ],
    )
    idle = candidates(gpus, gpupods)
    assert idle.pods == (("chat", "y"), ("chat", "x"))
    assert (idle.left, idle.held) == (0, 3)
    assert candidates(None, gpupods).pods == (("chat", "z"),)
    assert candidates(gpus, None).pods == ()
    assert candidates(gpus, gpupods, idle_after=7200.0).pods == (("chat", "y"),)


def test_idle_pods_are_bounded() -> None:
    rows = [pod(f"p{i}", Util="0%") for i in range(MOST_PODS + 7)]
    idle = candidates(None, table_of(GPUPODS, rows))
    assert (len(idle.pods), idle.left) == (MOST_PODS, 7)


def state(name: str = "llm", **status: Any) -> Any:
    return state_of(hpa(name, **status))


def test_the_history_of_an_hpa_has_gaps_and_an_end() -> None:
    history = HpaHistory()
    for second in range(POINTS + 5):
        history.add([state()], float(second))
    history.add([state(currentMetrics=None)], 5000.0)
    histories = as_json(history.copy(["chat/llm", "chat/other", "x"]))
    assert list(histories) == ["chat/llm"]
    points = histories["chat/llm"]
    assert {len(column) for column in points.values()} == {POINTS}
    assert points["time"][0] == 6.0
    assert points["value"][-2:] == [54.0, None]
    assert points["goal"][-1] == 60.0
    assert points["current"][-1] == 3


def _past(metric: str = "gpu_utilization") -> HpaPast:
    gap = [1.0, None, 3.0]
    times = [60.0, 120.0, 180.0]
    return HpaPast(metric, times, gap, [60.0, None, 60.0], gap, gap, ["healthy", None, "held"])


@pytest.mark.parametrize("late", [True, False], ids=["after the first look", "before it"])
def test_the_history_begins_with_what_was_noted_before_the_page(late: bool) -> None:
    history = HpaHistory()
    if not late:
        history.begin({("chat", "llm"): _past()})
    history.add([state()], 179.0 if late else 181.0)
    if late:
        history.begin({("chat", "llm"): _past(), ("chat", "other"): _past()})
    points = as_json(history.copy(["chat/llm"]))["chat/llm"]
    times = [60, 120, 179] if late else [60, 120, 180, 181]
    assert points["time"] == times
    assert points["value"] == [1, None, *([] if late else [3]), 54]
    assert points["current"][:2] == [1, None]


def _minutes(*times: float) -> HpaPast:
    some: list[float | None] = [float(number) for number in range(len(times))]
    return HpaPast("gpu_utilization", [*times], some, some, some, some, ["healthy"] * len(times))


def lacks(history: HpaHistory) -> bool:
    """Whether minutes are missing now."""
    return history.gap


def test_no_minute_that_serve_kept_is_missing_where_the_past_meets_the_page() -> None:
    history = HpaHistory()
    history.begin({("chat", "llm"): _minutes(60, 120)})
    history.add([state()], 305.0)
    assert lacks(history), "180 and 240 came after the past was read, and before the first look"
    history.add([state()], 310.0)
    history.add([state()], 500.0)
    history.begin({("chat", "llm"): _minutes(60, 120, 180, 240, 300, 360, 420, 480, 540)})
    assert not lacks(history)
    times = as_json(history.copy(["chat/llm"]))["chat/llm"]["time"]
    assert times == [60, 120, 180, 240, 300, 305, 310, 360, 420, 480, 500]
    history.add([state()], 505.0)
    assert not lacks(history), "it is not read again for nothing"


def test_a_past_that_ends_before_the_first_look_is_read_again_while_it_grows() -> None:
    history = HpaHistory()
    history.add([state()], 305.0)
    history.begin({("chat", "llm"): _minutes(60, 120)})
    assert lacks(history)
    history.begin({("chat", "llm"): _minutes(60, 120)})
    assert not lacks(history), "serve has no more"
    history.begin({("chat", "llm"): _minutes(60, 120, 180, 240, 300)})
    assert not lacks(history)
    times = as_json(history.copy(["chat/llm"]))["chat/llm"]["time"]
    assert times == [60, 120, 180, 240, 300, 305]


def test_what_was_noted_of_another_metric_is_left_out() -> None:
    history = HpaHistory()
    history.begin({("chat", "llm"): _past("inference_requests_waiting")})
    history.add([state()], 181.0)
    points = as_json(history.copy(["chat/llm"]))["chat/llm"]
    assert points["value"] == [*points["goal"][:3], 54] == [None, None, None, 54]
    assert points["current"] == [1, None, 3, 3]


def test_the_history_is_bounded_in_hpas() -> None:
    history = HpaHistory()
    states = [state(f"h{i}") for i in range(MOST_HPAS + 3)]
    history.add(states, 1.0)
    assert history.left == 3
    history.add(states[-10:], 2.0)
    assert history.left == 0
    last = f"chat/h{MOST_HPAS + 2}"
    assert as_json(history.copy([last]))[last]["time"] == [2.0]


def test_hpas_that_one_cause_stops_name_it_and_those_that_do_well_do_not() -> None:
    lost = stuck("unable to get metric gpu_utilization: 2 of 3 pods have no value: exporter_down")
    states = [state(f"s{n}", conditions=lost, currentReplicas=n) for n in range(5)]
    alone = state("alone", conditions=stuck("the target does not exist"))
    rows = hpa_rows([*states, alone, *(state(f"h{n}") for n in range(5))])
    (shared,) = {row["group"] for row in rows[:5]}
    assert shared.endswith("gpu_utilization: pods have no value: exporter_down")
    assert [row["group"] for row in rows[5:]] == [None] * 6


def test_an_hpa_of_another_form_is_counted() -> None:
    assert ReadScalers([], odd=2).odd == 2
    before = PanelState("hpas", "ok", updated=5.0)
    after = failed_state(before, ClientError("GET /x: 500 no", 500), 0.1)
    assert (after.status, after.updated, after.message) == ("failed", 5.0, "GET /x: 500 no")
    assert set(readers("")) == {
        *("gpus", "gpunodes", "gpupools", "headroom", "gpupods", "gpuworkloads", "hpas", "events")
    }


def test_the_page_knows_each_state_of_an_hpa_and_each_class_of_a_gpu_with_its_level() -> None:
    """The table of the page is beside the server's: neither has a state that the other lacks."""
    text = (STATIC / "states.js").read_text()
    levels: dict[str, dict[str, str]] = {}
    for name, body in re.findall(r"export const (\w+) = \{\n(.*?)\n\};", text, re.DOTALL):
        rows = re.findall(r'^  "?([\w ]+?)"?: \{.*?level: "(\w+)"', body, re.MULTILINE)
        levels[name] = dict(rows)
    assert list(levels["HPA_STATES"].items()) == [(str(state), LEVELS[state]) for state in ORDER]
    assert set(levels["GPU_CLASSES"]) == set(get_args(GpuClass))
    counts = set(re.findall(r'count: "(\w+)"', text))
    assert counts == {row.key for row in CLASSES}


def test_each_pool_has_the_headroom_of_nodepool_and_the_forecast_behind_it() -> None:
    table = table_of(
        GPUPOOLS, [table_row(name, [None] * (len(columns(GPUPOOLS)) - 1)) for name in ("p1", "p2")]
    )
    buffer = HeadroomRow("CapacityBuffer", "gpu-metrics", "a", 2, "p1", "2 more are expected")
    other = buffer._replace(pods=1, why="a fixed surplus")

    def shown(headroom: HeldHeadroom) -> list[tuple[Any, ...]]:
        part = pools(table, headroom)
        index = part["columns"].index("headroom")
        return [row[index:] for row in part["rows"]]

    assert shown(HeldHeadroom([buffer, other])) == [
        (3, "2 more are expected; a fixed surplus"),
        (0, None),
    ]
    denied = HeldHeadroom((), ClientError("GET /apis/x: 403 you may not list apiservices", 403))
    assert [row[0] for row in shown(denied)] == [None, None]
    assert "you may not list apiservices" in shown(denied)[0][1]
