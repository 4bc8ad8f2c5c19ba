"""Idle GPUs as ``idle`` lists them, from the objects of the view API."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import cast

import pytest
import yaml

from adapter.config.process.output import Screen
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from adapter.tools.idle import prices
from adapter.tools.idle.find import Json, idle_devices, with_lasting_hints
from adapter.tools.idle.prices import InstancePrice, PriceList, load
from adapter.tools.idle.report import CSV_HEADER, GROUPS, IdleReport
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, make_pod, row

UTIL, USED, FREE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
HOUR = 3600.0
NOW = 10 * HOUR
PRICES = PriceList({"H100": 4.0}, "EUR", own=True)
THEN = date(2026, 11, 1)
"""When the built-in lists are not stale."""
LIST_PRICES = {name: price for name, price in load(None, THEN).prices.items() if price is not None}
OWNER = Owner("apps/v1", "ReplicaSet", "llm-abc")


TABLE = """
POD            WORKLOAD         GPU     MODEL   MEM HELD   IDLE   PRICE/H   SO FAR
ml/llm-abc-x   Deployment/llm   gpu-0   H100    1/4Gi      10h    4.00      40.00
ml/notebook    -                gpu-2   H100    -          120m   4.00      8.00

2 of 3 GPUs that pods hold are idle: 8.00 EUR an hour, 48.00 so far
Longest idle: scale it in if nobody uses it: `kubectl -n ml scale deployment/llm --replicas=0`
"""


def objects() -> list[Json]:
    """One idle pod of a Deployment, one busy pod, and one that is idle without a workload."""
    pods = (
        make_pod(
            "llm-abc-x", node="n1", owner=OWNER, labels={"pod-template-hash": "abc", "team": "a"}
        ),
        make_pod("busy", node="n1"),
        make_pod("notebook", node="n1", namespace="ml", labels={"team": "b"}),
    )
    world = World(*pods)
    for time in range(0, int(NOW), 1200):
        page = (
            row(UTIL, 0, "llm-abc-x", uuid="GPU-0")
            + row(USED, 1024, "llm-abc-x", uuid="GPU-0")
            + row(FREE, 3072, "llm-abc-x", uuid="GPU-0")
            + row(UTIL, 80, "busy", uuid="GPU-1")
            + row(UTIL, 50 if time < 8 * HOUR else 0, "notebook", uuid="GPU-2")
        )
        world.scrape(page, float(time), node="n1")
    view = Viewer(world).pods
    return [view.get(name, NOW - 1200) for name in view.names()]


def report(by: str = "", minimum: float = 600.0, prices: PriceList = PRICES) -> IdleReport:
    return reported(objects(), by, minimum, prices)


def reported(
    pods: list[Json], by: str = "", minimum: float = 600.0, prices: PriceList = PRICES
) -> IdleReport:
    devices = idle_devices(pods, prices, "team", NOW, minimum)
    return IdleReport(
        devices.idle, NOW, devices.held, prices.currency, prices.note, by, minimum,
        unmeasured=devices.unmeasured, unsized=devices.unsized,
    )  # fmt: skip


class OneDeployment:
    """Answers the Deployment of a pod, as a cluster does."""

    async def get(self, path: str) -> Json:
        assert path == "/apis/apps/v1/namespaces/ml/deployments/llm"
        return {"metadata": {"name": "llm", "namespace": "ml"}}


async def test_the_longest_idle_pods_come_first_with_what_they_cost() -> None:
    devices = await with_lasting_hints(cast("Api", OneDeployment()), report().devices)
    shown = replace(report(), devices=devices)
    assert shown.lines(Screen(width=200)) == TABLE.strip().splitlines()
    assert report().status == 1


def test_a_name_cannot_run_a_command_in_the_hint() -> None:
    for pod in (pods := objects()):
        if pod["metadata"]["name"] == "llm-abc-x":
            pod["workload"] = {"kind": "Deployment", "name": "x; touch /tmp/evil"}
    devices = idle_devices(pods, PRICES, "team", NOW, 600.0).idle
    # A hint is a command only for an object that was read.
    assert devices[0].hint == (
        "scale Deployment x; touch /tmp/evil in namespace ml to 0 if nobody uses it"
    )


def test_a_cell_of_the_csv_is_not_a_formula_and_has_no_control_characters() -> None:
    pods = objects()
    for pod in pods:
        pod["metadata"]["labels"] = {"team": "=1+1\x1b[2J\x9b2J"}
        pod["devices"][0]["model"] = "+1|cmd\r=2"
    text = reported(pods).csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["model"] for row in rows} == {"'+1|cmd =2"}
    assert {row["team"] for row in rows} == {"'=1+1 [2J 2J"}
    assert "\x1b" not in text
    assert "\x9b" not in text


def test_what_is_idle_for_less_is_left_out() -> None:
    assert [device.pods for device in report(minimum=3 * HOUR).devices] == [("llm-abc-x",)]
    nothing = report(minimum=11 * HOUR)
    assert nothing.lines(Screen()) == [
        "Of 3 GPUs that pods hold, none has been idle for 11h or more."
    ]
    assert nothing.status == 0
    unheld = replace(nothing, held=0).lines(Screen())
    assert unheld == ["No pod holds a GPU that an exporter reports."]


def halved(*more: Pod) -> list[Json]:
    """The pods, and two on a node whose exporter has answered for no longer than an hour."""
    pods = (make_pod("seen", node="n1"), make_pod("lost", node="n2"), make_pod("lost-2", node="n2"))
    world = World(*pods, *more)
    for time in range(0, int(NOW), 1200):
        world.scrape(row(UTIL, 0, "seen", uuid="GPU-0"), float(time), node="n1", origin="one")
        if time <= HOUR:
            page = row(UTIL, 0, "lost", uuid="GPU-1") + row(UTIL, 0, "lost-2", uuid="GPU-2")
            world.scrape(page, float(time), node="n2", origin="two")
    view = Viewer(world).pods
    return [view.get(name, NOW - 1200) for name in view.names()]


def test_gpus_without_a_value_are_held_and_counted_with_their_reason() -> None:
    summary = reported(halved())
    assert summary.lines(Screen(width=200))[-3:-1] == [
        "1 of 3 GPUs that pods hold is idle: 4.00 EUR an hour, 40.00 so far",
        (
            "2 of the 3 GPUs are not measured, so nobody knows whether they are idle, or what that "
            "costs: 2 no_exporter_on_node."
        ),
    ]
    body = summary.json()
    assert (body["held"], body["unmeasured"]) == (3, 2)
    assert body["unmeasuredReasons"] == {"no_exporter_on_node": 2}
    assert body["pricePerHour"] == 4.0


def test_none_is_idle_is_not_said_of_gpus_without_a_value() -> None:
    summary = reported(halved(), minimum=11 * HOUR)
    assert summary.lines(Screen(width=200)) == [
        "Of 3 GPUs that pods hold, no measured one has been idle for 11h or more.",
        (
            "2 of the 3 GPUs are not measured, so nobody knows whether they are idle, or what that "
            "costs: 2 no_exporter_on_node."
        ),
    ]
    assert summary.status == 2
    lost = [pod for pod in halved() if pod["metadata"]["name"] != "seen"]
    assert reported(lost).lines(Screen(width=200))[0] == "No GPU that pods hold is measured."
    assert reported(lost).status == 2


def test_a_stale_value_does_not_show_that_a_gpu_works() -> None:
    pods = (make_pod("stale", node="n1"),)
    world = World(*pods)
    world.scrape(row(UTIL, 0, "stale", uuid="GPU-0"), NOW - 200, node="n1")
    summary = reported([Viewer(world).pods.get("stale", NOW)])
    assert (summary.held, summary.unmeasured, summary.status) == (1, {"stale": 1}, 2)


def test_how_many_gpus_of_a_shared_node_a_pod_holds_is_not_made_up() -> None:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
    pods = [make_pod(f"part-{i}", node="n1") for i in range(3)]
    view = Viewer(World(*pods, nodes={"n1": labels})).pods
    summary = reported([view.get(name, NOW) for name in view.names()])
    assert (summary.held, summary.unmeasured, summary.unsized, summary.status) == (0, {}, 3, 2)
    assert summary.lines(Screen(width=200)) == [
        "3 pods hold GPUs that nobody reports, and it is not known how many: they are not counted."
    ]


def team(*busy: float | None) -> list[Json]:
    """The pods of one Deployment, each with a utilization, or on a node without an exporter."""
    labels = {"pod-template-hash": "abc"}
    world = World(
        *[
            make_pod(
                f"llm-abc-{i}", node="n2" if util is None else "n1", owner=OWNER, labels=labels
            )
            for i, util in enumerate(busy)
        ]
    )
    for time in range(0, int(NOW), 1200):
        page = "".join(
            row(UTIL, util, f"llm-abc-{i}", uuid=f"GPU-{i}")
            for i, util in enumerate(busy)
            if util is not None
        )
        world.scrape(page, float(time), node="n1")
    view = Viewer(world).pods
    return [view.get(name, NOW - 1200) for name in view.names()]


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        (team(0, None, None), "1 of 3 pods is idle, 2 are not measured"),
        (team(0, 0, 70), "2 of 3 pods are idle, 1 is busy"),
        (team(0, 70, None), "1 of 3 pods is idle, 1 is busy, 1 is not measured"),
    ],
)
async def test_no_command_stops_a_pod_that_is_busy_or_not_measured(
    pods: list[Json], says: str
) -> None:
    devices = idle_devices(pods, PRICES, "team", NOW, 600.0).idle
    hint = f"{says}: ask the owner of Deployment llm in namespace ml whether it is still used"
    assert devices[0].hint == hint
    # Without a read of what manages the workload: an access that cannot be used fails.
    kept = await with_lasting_hints(cast("Api", None), devices)
    assert kept == devices
    assert f"Longest idle: {hint}" in reported(pods).lines(Screen(width=200))


def test_a_workload_of_which_all_pods_are_idle_may_be_scaled() -> None:
    scale = "scale Deployment llm in namespace ml to 0 if nobody uses it"
    assert {device.hint for device in reported(team(0, 0)).devices} == {scale}
    # The page reads the pods that seem idle, and not the others of their workloads.
    (one,) = idle_devices(team(0), PRICES, "team", NOW, 600.0, whole=False).idle
    assert one.hint == "ask the owner of Deployment llm in namespace ml whether it is still used"


@pytest.mark.parametrize("by", GROUPS)
def test_it_sums_up(by: str) -> None:
    lines = report(by).lines(Screen())
    assert lines[0].split() == [by.upper(), "GPUS", "PODS", "PRICE/H", "SO", "FAR"]
    sums = [line.split() for line in lines[1 : lines.index("")]]
    assert sum(int(cells[-4]) for cells in sums) == 2
    assert sum(float(cells[-1]) for cells in sums) == 48.0


@pytest.mark.parametrize("by", GROUPS)
def test_programs_get_the_same_sums(by: str) -> None:
    summary = report(by)
    groups = summary.json()["groups"]
    assert summary.json()["by"] == by
    assert "groups" not in report().json()
    assert [group["name"] for group in groups] == [
        line.split()[0] if by != "model" else "NVIDIA H100"
        for line in summary.lines(Screen())[1 : len(groups) + 1]
    ]
    assert sum(group["gpus"] for group in groups) == 2
    assert sum(group["costSoFar"] for group in groups) == 48.0
    rows = list(csv.DictReader(io.StringIO(summary.csv())))
    assert [(row[by], float(row["cost_so_far"])) for row in rows] == [
        (group["name"], group["costSoFar"]) for group in groups
    ]


def test_the_output_for_programs_has_the_same_numbers() -> None:
    summary = report()
    body = summary.json()
    assert (body["pricePerHour"], body["costSoFar"], body["withoutPrice"]) == (8.0, 48.0, 0)
    rows = list(csv.DictReader(io.StringIO(summary.csv())))
    assert tuple(rows[0]) == CSV_HEADER
    assert [(r["pods"], r["team"], r["idle_hours"], r["cost_so_far"]) for r in rows] == [
        ("llm-abc-x", "a", "10.00", "40.00"),
        ("notebook", "b", "2.00", "8.00"),
    ]


def test_a_model_without_a_price_has_none_and_is_counted() -> None:
    summary = report(prices=PriceList({"B200": 1.0}, own=True))
    assert "2 of them have a model without a price: see --prices." in summary.lines(Screen())
    assert summary.json()["withoutPrice"] == 2
    assert summary.json()["pricePerHour"] is None


def test_a_name_that_a_spreadsheet_would_run_is_quoted() -> None:
    pods = objects()
    pods[-1]["metadata"]["labels"]["team"] = "=HYPERLINK(1)"
    text = reported(pods).csv()
    assert "'=HYPERLINK(1)" in text


@pytest.mark.parametrize(
    ("model", "profile", "price"),
    [
        ("NVIDIA H100 80GB HBM3", "", LIST_PRICES["H100"]),
        ("NVIDIA A100-SXM4-80GB", "", LIST_PRICES["A100-SXM4-80GB"]),
        ("NVIDIA A100-SXM4-80GB", "3g.40gb", LIST_PRICES["A100-SXM4-80GB"] * 3 / 7),
        ("Tesla T4", "", LIST_PRICES["T4"]),
        ("NVIDIA L4", "", LIST_PRICES["L4"]),
        ("NVIDIA L40S", "", LIST_PRICES["L40S"]),
        ("NVIDIA L40", "", None),
        ("NVIDIA A100-PCIE-40GB", "", None),
        ("NVIDIA A100 80GB PCIe", "", LIST_PRICES["A100 80GB PCIe"]),
        ("NVIDIA A10", "", LIST_PRICES["A10"]),
        ("NVIDIA A10G", "", LIST_PRICES["A10G"]),
        ("NVIDIA H200", "", LIST_PRICES["H200"]),
        ("NVIDIA GH200 480GB", "", None),
        ("NVIDIA B200", "", LIST_PRICES["B200"]),
        ("NVIDIA GB200", "", LIST_PRICES["GB200"]),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "", LIST_PRICES["RTX PRO 6000"]),
        ("AMD Instinct MI300X OAM", "", LIST_PRICES["MI300X"]),
        ("AMD Instinct MI325X", "", None),
        ("NVIDIA H100 80GB HBM3", "odd", None),
    ],
)
def test_a_price_is_that_of_the_model_and_of_the_part(
    model: str, profile: str, price: float | None
) -> None:
    assert load(None, THEN).of(model, profile) == (price if price is None else pytest.approx(price))


BAD = {
    "prices: [1]": "write `prices:` with a price per hour for each model",
    "prices: {H100: 1" + "0" * 400 + "}": "write a number from 0 to 1e12",
    "prices: {H100: cheap}": "prices.H100 is 'cheap': write a number from 0 to 1e12",
    "prices: {H100: .nan}": "prices.H100 is nan",
    "prices: {H100: -1}": "prices.H100 is -1",
    "prices: {H100: 1}\nunit: h": "unknown key 'unit': remove it",
    "H100: 2.5": "unknown key 'H100': move it under `prices:`",
    "prices: {": "cannot be read",
    "currency: EUR": "write `prices:`",
    "date: July\nprices: {H100: 1}": "date is 'July': write it as 2026-07-20",
    "lists: {a: 1}": "write a list of lists of prices",
    "instances: {p5.48xlarge: 55}": "instances.p5.48xlarge: write gpu, gpus and price, or spot",
    "instances: {p5.48xlarge: {gpus: 0, price: 1}}": "instances.p5.48xlarge.gpus is 0",
    "instances: {p5.48xlarge: {cost: 1, price: 1}}": "unknown key 'instances.p5.48xlarge.cost'",
    "instances: {p5.48xlarge: {spot: x}}": "instances.p5.48xlarge.spot is 'x'",
    "prices: {H100: 1}\ninstances: [1]": "write `prices:`",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_of_prices_is_one_line_that_names_the_key(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(ClientError, match=r"prices\.yaml") as raised:
        load(file)
    assert BAD[text] in str(raised.value)
    assert "\n" not in str(raised.value)


OWN = """
currency: EUR
prices: {H100: 4}
spot: {H100: 1.5}
instances:
  p5.48xlarge: {gpu: H100, gpus: 8, price: 24, spot: 8}
  g6.xlarge: {gpu: L4, price: 0.5}
"""


@pytest.mark.parametrize(
    ("model", "instance", "capacity", "price"),
    [
        ("NVIDIA H100", "", "", 4.0),
        ("NVIDIA H100", "", "spot", 1.5),
        ("NVIDIA H100", "p5.48xlarge", "", 3.0),
        ("NVIDIA H100", "p5.48xlarge", "on-demand", 3.0),
        ("NVIDIA H100", "p5.48xlarge", "spot", 1.0),
        ("NVIDIA H100", "unheard-of", "spot", 1.5),
        ("NVIDIA L4", "", "", 0.5),
        ("NVIDIA L4", "g6.xlarge", "spot", None),
        ("NVIDIA L40S", "", "", None),
    ],
)
def test_the_price_of_an_instance_type_comes_before_that_of_a_model_and_spot_is_not_on_demand(
    model: str, instance: str, capacity: str, price: float | None, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(OWN)
    assert load(file).of(model, "", instance, capacity) == price


def test_the_built_in_lists_have_the_models_of_today_with_date_and_source() -> None:
    price_list = load(None, THEN)
    assert {"H100", "H200", "B200", "MI300X", "A10", "L40S"} <= price_list.prices.keys()
    assert price_list.of("NVIDIA A10G", "", "g5.48xlarge") == pytest.approx(16.288 / 8)
    assert price_list.of("NVIDIA A10G", "", "g5.48xlarge", "spot") is None
    assert (price_list.dated, price_list.stale) == ("July 2026", 0)
    text = (Path(prices.__file__).with_name("prices.yaml")).read_text()
    lists = yaml.safe_load(text)["lists"]
    assert all({"source", "date", "instances"} == one.keys() for one in lists)


def test_a_price_is_unknown_rather_than_stale() -> None:
    price_list = load(None, date(2027, 3, 1))
    assert price_list.stale == 1
    assert price_list.of("NVIDIA L4", "", "g6.xlarge") == 0.8048
    assert (
        "The prices are list prices of July 2026, and some are older than a year and not used: "
        "name yours with --prices."
    ) in report(prices=price_list).lines(Screen(width=200))
    later = load(None, date(2028, 1, 1))
    assert later.of("NVIDIA H100") is None
    summary = report(prices=later)
    assert (
        "The prices are older than a year and not used: name yours with --prices."
        in summary.lines(Screen(width=200))
    )


@pytest.mark.parametrize(
    ("model", "instance"), [("NVIDIA H100", "p5.4xlarge"), ("Tesla T4", "g4dn.16xlarge")]
)
def test_an_instance_type_of_a_stale_list_does_not_get_the_price_of_its_model(
    model: str, instance: str
) -> None:
    price_list = load(None, date(2027, 3, 1))
    assert load(None, THEN).of(model, "", instance) is not None
    assert price_list.of(model) is not None
    assert price_list.of(model, "", instance) is None


LISTS = """
lists:
- date: 2025-01-01
  instances: {a: {gpu: H100, price: 9, spot: 3}, b: {gpu: H100, price: 8}}
- date: 2026-07-01
  CURRENT
"""


@pytest.mark.parametrize(
    ("current", "note"),
    [
        (
            "instances: {b: {gpu: H100, price: 4}}",
            "Of the prices, some are older than a year and not used: update the file of --prices.",
        ),
        (
            "spot: {H100: 1}",
            "Of the prices, some are older than a year and not used: update the file of --prices.",
        ),
        (
            "prices: {}",
            "The prices are older than a year and not used: name yours with --prices.",
        ),
    ],
)
def test_a_stale_list_of_the_users_file_is_said(current: str, note: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(LISTS.replace("CURRENT", current))
    price_list = load(file, date(2026, 8, 1))
    assert price_list.note == note
    assert price_list.of("NVIDIA H100", "", "a") is None
    assert price_list.of("NVIDIA H100", "", "a", "spot") is None
    assert price_list.of("NVIDIA H100", "", "b") == (4.0 if "price: 4" in current else None)


@pytest.mark.parametrize(
    "stale", ["prices: {A100-SXM4-80GB: 9}", "instances: {a: {gpu: A100-SXM4-80GB, price: 9}}"]
)
def test_a_model_of_a_stale_list_does_not_get_the_price_of_a_shorter_name(
    stale: str, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    current = "{date: 2026-07-01, prices: {A100: 2}}"
    file.write_text(f"lists:\n- date: 2025-01-01\n  {stale}\n- {current}\n")
    price_list = load(file, date(2026, 8, 1))
    assert price_list.of("NVIDIA A100-SXM4-80GB") is None
    assert price_list.of("NVIDIA A100-PCIE-40GB") == 2.0


def test_an_idle_gpu_has_the_price_of_its_node() -> None:
    pods = objects()
    for pod in pods:
        for device in pod["devices"]:
            device |= {"instanceType": "p5.48xlarge", "capacityType": "spot"}
    spot = PriceList({"H100": 4.0}, instances={"p5.48xlarge": InstancePrice(3.0, 1.0)})
    devices = idle_devices(pods, spot, "team", NOW, 600.0).idle
    assert {device.price for device in devices} == {1.0}
