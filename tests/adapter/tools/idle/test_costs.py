"""GPU-hours and costs over a time: the ledger's own counters, in a real Prometheus."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

from adapter.config.process.output import Screen
from adapter.config.settings.accounting import AccountingSettings
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.seriesreader import SeriesReader, reader_of
from adapter.server.serve.gpuledger import GpuLedger
from adapter.server.serve.selfmetrics import GPU_SECONDS
from adapter.tools.client.errors import ClientError
from adapter.tools.idle.costreport import GROUPS, CostReport
from adapter.tools.idle.hours import GpuHours, HeldHours, HoursAnswer, read_hours, step_of
from adapter.tools.idle.prices import InstancePrice, PriceList
from tests.adapter.commandline import invoke
from tests.adapter.pipeline.sources.prometheus.engines import engine, scrape_config
from tests.adapter.tools.ui.test_prometheusrange import answering
from tests.adapter.world import World, make_pod, row
from tests.docs.pages import ROOT
from tests.needs import PROMETHEUS, PROMTOOL, needed_by_fixture, needs

UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
HOUR: Final = 3600.0
SPOT: Final = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "karpenter.sh/capacity-type": "spot",
}
SLICED: Final = {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.replicas": "4"}
PRICES: Final = PriceList(
    {"A10": 2.0}, "EUR", True, instances={"p5.48xlarge": InstancePrice(8.0, 3.0)}
)


def llm_load(hours: float) -> int | None:
    """Percent in a time since the start: busy, then without a page, then idle."""
    return 80 if hours < 2 else None if hours < 3 else 0


def world() -> World:
    """An LLM with two GPUs of a spot node, and a notebook with a quarter of another one."""
    llm = make_pod("llm", node="h", uid="a", gpus={"nvidia.com/gpu": 2}, labels={"team": "search"})
    notebook = make_pod("notebook", namespace="lab", node="s", uid="b")
    return World(llm, notebook, nodes={"h": SPOT, "s": SLICED})


class Replica:
    """A replica of `serve`, whose counters a Prometheus scrapes.

    Args:
        alive: hours since the start, from and to.
    """

    def __init__(self, name: str, start: float, alive: tuple[float, float]) -> None:
        self.name = name
        self._start, (self._from, self._to) = start, alive
        self._now = start
        self._world = world()
        self._ledger = GpuLedger(AccountingSettings(), lambda: self._now)

    def samples(self, now: float) -> Iterator[str]:
        """Count, and yield what a scrape takes from `/metrics`."""
        self._now, hours = now, (now - self._start) / HOUR
        if not self._from <= hours < self._to:
            return
        load = llm_load(hours)
        if load:  # bursts, of which each replica sees others
            load += 20 if (round(now / 60) + ord(self.name)) % 2 else -20
        if load is not None:
            page = row(UTIL, load, "llm", uuid="GPU-a") + row(UTIL, load, "llm", uuid="GPU-b")
            self._world.scrape(page, now, node="h", origin="http://h")
        notebook = 'gpu="0",UUID="GPU-c",pod="notebook",namespace="lab",container="server"'
        self._world.scrape(f"{UTIL}{{{notebook}}} 0\n", now, node="s", origin="http://s")
        self._ledger.begin(60.0)
        for pod in self._world.index.each():
            reading = self._world.read(pod.name, "gpu_utilization", now, namespace=pod.namespace)
            self._ledger.add(pod, reading, self._world.store.snapshot)
        self._ledger.end()
        for sample in GPU_SECONDS.rows(self._ledger.rows()).samples:
            labels = sample.labels | {"pod": f"serve-{self.name}", "job": "serve"}
            text = ",".join(f'{key}="{value}"' for key, value in labels.items() if value)
            yield f"{sample.name}{{{text}}} {sample.value} {now:.3f}"


def exposition(start: float, minutes: int = 1) -> str:
    """Four hours of two replicas; one is replaced after 90 minutes, and the other one after two.

    Args:
        minutes: between two scrapes.
    """
    spans = {"a": (0.0, 1.53), "b": (0.0, 2.03), "c": (1.53, 4.1), "d": (2.03, 4.1)}
    replicas = [Replica(name, start, alive) for name, alive in spans.items()]
    lines = [f"# TYPE {GPU_SECONDS.name.removesuffix('_total')} counter"]
    for minute in range(0, 4 * 60 + 1, minutes):
        for replica in replicas:
            lines += replica.samples(start + minute * 60.0)
    return "\n".join([*lines, "# EOF", ""])


class Store:
    """A Prometheus with four hours of counters.

    Args:
        end: epoch seconds of the last count.
    """

    def __init__(self, url: str, end: float) -> None:
        self.url = url
        self.end = end

    def read(self, over: float = 4 * HOUR, step: float = 300.0, matchers: str = "") -> HoursAnswer:
        """The GPU-hours up to the last count."""

        async def ask(reader: SeriesReader) -> HoursAnswer:
            try:
                return await read_hours(reader, over, step=step, at=self.end, matchers=matchers)
            finally:
                await reader.close()

        return asyncio.run(ask(reader_of(PrometheusOptions(self.url))))

    def query(self, text: str) -> dict[tuple[str, ...], float]:
        """The values of a query by the values of its labels."""

        async def ask(reader: SeriesReader) -> dict[tuple[str, ...], float]:
            try:
                answer = await reader.instant(text, self.end)
            finally:
                await reader.close()
            return {
                tuple(value for _, value in sorted(series.labels.items())): series.points.values[-1]
                for series in answer.series
            }

        return asyncio.run(ask(reader_of(PrometheusOptions(self.url))))


@contextmanager
def filled(folder: Path, minutes: int = 1) -> Iterator[Store]:
    """A Prometheus that scraped each so many minutes."""
    end = time.time() // 900 * 900  # a query counts whole steps since the epoch
    written = folder / "history.txt"
    written.write_text(exposition(end - 4 * HOUR, minutes))
    command = [PROMTOOL.path(), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*command, written, folder / "data"], check=True, capture_output=True, timeout=120
    )
    with engine("prometheus", folder, scrape_config(1, [])) as url:
        yield Store(url, end)


@pytest.fixture(scope="module")
@needed_by_fixture(PROMETHEUS, PROMTOOL)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with filled(tmp_path_factory.mktemp("costs")) as one:
        yield one


TRUTH: Final = {
    ("ml", "Pod/llm"): GpuHours(used=3.2, idle=2.8, unknown=2.0),
    ("lab", "Pod/notebook"): GpuHours(idle=1.0),
}
"""Two GPUs at 80 % for two hours, without a page for one, at 0 % for one; and a quarter of one."""


@pytest.mark.parametrize("step", [120.0, 300.0])
def test_the_hours_are_those_of_the_pods_though_replicas_come_and_go(
    store: Store, step: float
) -> None:
    answer = store.read(step=step)
    by_workload = {(one.namespace, one.workload): one.hours for one in answer.rows}
    assert by_workload.keys() == TRUTH.keys()
    for workload, truth in TRUTH.items():
        for state, hours in truth._asdict().items():
            # The first count begins at 0, and a value counts until its age limit.
            assert getattr(by_workload[workload], state) == pytest.approx(hours, abs=0.16), (
                workload,
                state,
            )
    llm = next(one for one in answer.rows if one.namespace == "ml")
    assert llm[2:6] == ("search", "NVIDIA-H100-80GB-HBM3", "p5.48xlarge", "spot")
    notebook = next(one for one in answer.rows if one.namespace == "lab")
    assert notebook.team == "lab"
    assert answer.counted == pytest.approx(4 * HOUR, rel=0.08)


def test_the_counters_cover_a_part_of_a_longer_time(store: Store) -> None:
    answer = store.read(over=48 * HOUR)
    assert answer.counted == pytest.approx(4 * HOUR, rel=0.08)
    report = CostReport(answer, 48 * HOUR, "namespace", PRICES)
    text = "\n".join(report.lines(Screen(width=200)))
    assert re.search(r"`serve` counted for 4h of the 2d; nothing is known about the rest\.", text)


def test_matchers_select_series_and_none_is_an_error(store: Store) -> None:
    assert [one.namespace for one in store.read(matchers='namespace="lab"').rows] == ["lab"]
    with pytest.raises(
        ClientError, match=r"no gma_gpu_seconds_total of the last 4h: let it scrape"
    ):
        store.read(matchers='cluster="elsewhere"')


@needs(PROMETHEUS, PROMTOOL)
def test_counters_that_are_scraped_too_rarely_are_an_error_and_not_0_hours(tmp_path: Path) -> None:
    with filled(tmp_path, minutes=10) as rare:
        with pytest.raises(ClientError, match="no two samples within 5m of the last 4h: let it"):
            rare.read()
        assert rare.read(step=1800.0).rows


def test_the_shortest_time_has_twelve_steps(store: Store) -> None:
    command = ("costs", "--from-prometheus", store.url, "--over")
    refused = invoke(*command, "59m")
    assert refused.code == 2
    assert "give a time from 60m" in refused.output
    done = invoke(*command, "1h")
    assert done.code == 0, done.output
    assert step_of(HOUR) * 12 == HOUR


RECORDED: Final = "gma:gpu_hours:increase5m"


def documented() -> list[str]:
    """The queries of docs/costs.md, with the recording rule written out."""
    text = (ROOT / "docs" / "costs.md").read_text()
    rule = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    (recorded,) = rule["groups"][0]["rules"]
    assert recorded["record"] == RECORDED
    queries = "\n\n".join(re.findall(r"```promql\n(.*?)```", text, re.DOTALL)).split("\n\n")
    used = re.compile(rf"{RECORDED}(\{{[^}}]*\}})?\[(\w+)\]")

    def written_out(match: re.Match[str]) -> str:
        inner = recorded["expr"].replace("total[", f"total{match[1] or ''}[")
        return f"({inner})[{match[2]}:5m]"

    return [used.sub(written_out, query) for query in queries]


def test_the_queries_of_the_page_answer_as_the_command_does(store: Store) -> None:
    hours, efficiency, idlest, now, priced = documented()
    by_state = store.query(hours)
    assert by_state["ml", "used"] == pytest.approx(3.2, abs=0.16)
    assert by_state["lab", "idle"] == pytest.approx(1.0, abs=0.16)
    assert store.query(efficiency)[("search",)] == pytest.approx(3.2 / 6.0, abs=0.03)
    most, second = sorted(store.query(idlest).items(), key=lambda one: -one[1])[:2]
    assert (most[0], second[0]) == (("ml", "Pod/llm"), ("lab", "Pod/notebook"))
    assert store.query(now) == {
        ("ml",): pytest.approx(2.0, abs=0.05),
        ("lab",): pytest.approx(0.25, abs=0.05),
        ("other",): 0.0,
    }
    prices = 'label_replace(vector(3), "instance_type", "p5.48xlarge", "", "")'
    priced = priced.replace("node_gpu_hourly_cost", prices)
    assert store.query(priced) == {("ml",): pytest.approx(2.8 * 3, abs=0.5)}


def test_the_command_reads_prices_and_writes_each_format(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "currency: EUR\nprices: {A10: 2}\ninstances: {p5.48xlarge: {gpu: H100, gpus: 8, spot: 24}}"
    )
    command = ("costs", "--from-prometheus", store.url, "--over", "5h", "--prices", str(file))
    text = invoke(*command)
    assert text.code == 0, text.output
    lines = text.output.splitlines()
    assert lines[0].split() == [
        *("NAMESPACE", "ALLOCATED", "USED", "IDLE", "UNKNOWN", "EFFICIENCY", "COST", "IDLE", "COST")
    ]
    assert [line.split()[0] for line in lines[1:3]] == ["ml", "lab"]
    content = json.loads(invoke(*command, "-o", "json", "-n", "lab", "--by", "workload").output)
    (group,) = content["groups"]
    assert group["name"] == "lab/Pod/notebook"
    assert group["idleCost"] == pytest.approx(2.0, abs=0.4)
    rows = list(csv.DictReader(io.StringIO(invoke(*command, "-o", "csv", "--by", "team").output)))
    assert [one["team"] for one in rows] == ["search", "lab"]


def test_a_store_that_renames_the_label_is_named_with_the_fix() -> None:
    labels = {"namespace": "gpu-metrics", "exported_namespace": "ml"}
    content = {"resultType": "vector", "result": [{"metric": labels, "value": [0, "1"]}]}
    body = json.dumps({"status": "success", "data": content}).encode()
    with answering(body) as url, pytest.raises(ClientError, match="honorLabels: true"):
        Store(url, 1000.0).read()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "--from-prometheus is missing: name a Prometheus that scrapes serve"),
        (("--from-prometheus", "ftp://x"), "--from-prometheus"),
        (("--from-prometheus", "http://127.0.0.1:1"), "http://127.0.0.1:1"),
        (("--from-prometheus", "http://127.0.0.1:1", "--over", "1m"), "give a time from"),
        (("--from-prometheus", "http://127.0.0.1:1", "--prices", "/none"), "/none cannot be read"),
        (("--from-prometheus", "http://127.0.0.1:1", "--by", "pod"), "--by"),
    ],
)
def test_what_cannot_be_asked_is_one_line(given: tuple[str, ...], words: str) -> None:
    done = invoke("costs", *given)
    assert done.code == 2
    assert words in done.output
    assert "Traceback" not in done.output


def held(namespace: str, hours: GpuHours, **changes: str) -> HeldHours:
    fields = {"workload": "Deployment/x", "team": namespace, "model": "NVIDIA-A10"} | changes
    return HeldHours(
        namespace, fields["workload"], fields["team"], fields["model"],
        fields.get("instance_type", ""), fields.get("capacity", ""), hours,
    )  # fmt: skip


ROWS: Final = (
    held("chat", GpuHours(90.0, 10.0, 4.0)),
    held("lab", GpuHours(2.0, 50.0, 0.0), workload="Pod/notebook"),
    held("train", GpuHours(10.0, 70.0, 8.0), model="NVIDIA-H100", capacity="spot"),
    held("other", GpuHours(0.0, 0.0, 3.0), workload="other", model="other"),
)
COSTS: Final = """
NAMESPACE   ALLOCATED   USED    IDLE    UNKNOWN   EFFICIENCY   COST     IDLE COST
lab         52.0h       2.0h    50.0h   0.0h      4%           104.00   100.00
chat        104.0h      90.0h   10.0h   4.0h      90%          208.00   20.00
train       88.0h       10.0h   70.0h   8.0h      12%          -        -
other       3.0h        0.0h    0.0h    3.0h      -            -        -

247.0 GPU-hours in the last 7d: 102.0 used, 130.0 idle, 15.0 unknown; efficiency 44%
312.00 EUR, of which 120.00 idle and 8.00 unknown
`other` are the smallest workloads: accounting.accounts limits how many are counted one by one.
91.0 GPU-hours have no price and are in no cost: NVIDIA-H100 spot, other.
"""
WEEK: Final = 7 * 24 * HOUR


def costs(
    by: str = "namespace",
    *,
    rows: tuple[HeldHours, ...] = ROWS,
    namespace: str = "",
    counted: float = WEEK,
) -> CostReport:
    return CostReport(HoursAnswer(rows, counted, ""), WEEK, by, PRICES, namespace)


def test_what_costs_most_without_being_used_comes_first_and_what_has_no_price_is_said() -> None:
    assert costs().lines(Screen(width=200)) == COSTS.strip().splitlines()


@pytest.mark.parametrize("by", GROUPS)
def test_the_groups_add_up_to_the_same(by: str) -> None:
    body = costs(by).json()
    for key in ("allocatedGpuHours", "usedGpuHours", "idleGpuHours", "unknownGpuHours"):
        assert sum(group[key] for group in body["groups"]) == pytest.approx(body[key])
    paid = [group["allocatedCost"] or 0.0 for group in body["groups"]]
    assert sum(paid) == pytest.approx(312.0)


def test_a_missing_number_is_not_0() -> None:
    (group,) = costs(rows=ROWS[-1:]).json()["groups"]
    assert (group["efficiency"], group["allocatedCost"], group["idleCost"]) == (None, None, None)
    assert group["withoutPriceGpuHours"] == 3.0
    (line,) = list(csv.reader(io.StringIO(costs(rows=ROWS[-1:]).csv())))[1:]
    assert line == ["other", "3.0", "0.0", "0.0", "3.0", *[""] * 5, "3.0", "EUR"]


def test_a_name_in_the_csv_is_not_a_formula() -> None:
    text = costs(rows=(held("=cmd", GpuHours(1.0)),)).csv()
    assert text.splitlines()[1].startswith("'=cmd,")


def test_nothing_held_is_said() -> None:
    assert costs(rows=()).lines(Screen()) == ["No pod held a GPU in the last 7d."]
    assert costs(namespace="idle").rows == []
    assert costs(rows=ROWS[:1], namespace="idle").lines(Screen()) == [
        "No pod of namespace idle held a GPU in the last 7d."
    ]
    assert costs(rows=(), counted=4 * HOUR).lines(Screen(width=200)) == [
        "No pod held a GPU in the last 7d.",
        "`serve` counted for 4h of the 7d; nothing is known about the rest.",
    ]


SOME_MAY_BE: Final = (
    "3.0 GPU-hours of the smallest workloads of all namespaces are not in this, and some may be of "
    "{}: accounting.accounts limits how many are counted one by one."
)


@pytest.mark.parametrize("by", GROUPS)
def test_the_hours_of_one_namespace_may_be_among_those_of_the_smallest_workloads(by: str) -> None:
    report = costs(by, namespace="chat")
    assert SOME_MAY_BE.format("chat") in report.lines(Screen(width=200))
    content = report.json()
    assert (content["allocatedGpuHours"], content["otherGpuHours"]) == (104.0, 3.0)
    assert costs(by).json()["otherGpuHours"] == 3.0


def test_a_namespace_without_hours_of_its_own_may_have_some_among_the_smallest_workloads() -> None:
    report = costs(namespace="idle")
    assert report.lines(Screen(width=200)) == [
        "No workload of namespace idle was counted one by one in the last 7d.",
        SOME_MAY_BE.format("idle"),
    ]
    assert report.json()["otherGpuHours"] == 3.0


def test_a_namespace_with_the_name_of_the_smallest_workloads_has_its_own_hours_only() -> None:
    own = held("other", GpuHours(1.0), workload="Deployment/web")
    (group,) = costs(rows=(*ROWS, own), namespace="other").groups()
    assert group.hours == GpuHours(1.0)
    assert SOME_MAY_BE.format("other") in costs(namespace="other").lines(Screen(width=200))


@pytest.mark.parametrize(
    ("over", "step"), [(600.0, 300), (HOUR, 300), (WEEK, 300), (100 * 86400.0, 864)]
)
def test_a_time_is_divided_into_steps_that_a_store_can_count(over: float, step: float) -> None:
    assert step_of(over) == step
