"""The pages of both processes: clean, declared, and whole for alerts and dashboard."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from adapter.nodepool.run.selfmetrics import FAMILIES as NODEPOOL
from adapter.server.serve import ahead
from adapter.server.serve.selfmetrics import FAMILIES as SERVE
from apiservice.selfmetrics.families import Family
from charts.generate.dashboard import BOARDS, dashboard, list_panels
from tests.adapter.serving import Exporter, Lab
from tests.apiservice.delegate.server import OtherServer
from tests.charts.alertrules import rendered
from tests.charts.conftest import Monitored, until
from tests.needs import PROMTOOL, needs

pytestmark = pytest.mark.timeout(900)

IN_A_CLUSTER = {
    "gma_external_other_adapter",
    "gma_memory_ok",
    *(family.name for family in ahead.FAMILIES),
}
"""Exist only with an API server, or if they are turned on: tests of these parts read them."""
OTHERS = ("DCGM_FI_", "kube_", "process_", "aggregator_", "node_gpu_")


def names(page: str) -> set[str]:
    """Every name that a query may use."""
    return {
        sample.name for family in text_string_to_metric_families(page) for sample in family.samples
    }


def labels(page: str) -> dict[str, set[str]]:
    """Family -> the labels that its series have, less a histogram's own."""
    families: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            name = re.sub(r"_(bucket|sum|count)$", "", sample.name)
            families.setdefault(name, set()).update(sample.labels.keys() - {"le"})
    return families


def used(texts: Iterable[str]) -> set[str]:
    """The adapter's own names in PromQL."""
    return {name for text in texts for name in re.findall(r"\bgma_\w+", text)}


@contextmanager
def delegate(folder: Path) -> Iterator[dict[str, Any]]:
    """Run a delegate that lists a metric; yield the settings that name it."""
    other, ready, over = OtherServer(), threading.Event(), threading.Event()
    other.lists("pods/queue")
    (folder / "token").write_text("good")

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            await other.start(folder, stack)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    one = {
        "name": "other",
        "service": {"namespace": "monitoring", "name": "other"},
        "address": f"127.0.0.1:{other.port}",
        "ca": other.ca.decode(),
    }
    try:
        yield {"delegates": [one], "token_file": str(folder / "token")}
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def from_a_store(monitored: Monitored, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a `serve` that reads the Prometheus, with rules, a delegate and a recording."""
    lab = Lab(tmp_path_factory.mktemp("store"), exporter := Exporter())
    url = {"url": monitored.url, "interval": 1}
    lab.config["source"] = {"kind": "prometheus", "prometheus": url}
    lab.config["keda"] = {"enabled": False}
    rules = lab.folder / "rules.yaml"
    rules.write_text("rules: [{seriesQuery: up, metricsQuery: up}]\n")
    lab.config["rules"] = {"file": str(rules)}
    lab.config["recording"] = {"file": str(lab.folder / "recording.gma")}
    try:
        with delegate(lab.folder) as named:
            lab.config["delegation"] = named
            return _page(lab)
    finally:
        exporter.close()


def _shows(client: httpx.Client, text: str) -> bool:
    return text in client.get("/metrics").text


def _page(lab: Lab) -> str:
    """The page once everything has been read."""
    with lab.serving() as running, running.client() as client:
        for text in (
            "gma_source_last_success_timestamp_seconds{",
            "gma_rule_discovery_last_success_timestamp_seconds ",
            "gma_delegate_metrics{",
        ):
            until(partial(_shows, client, text), text)
        return client.get("/metrics").text


@needs(PROMTOOL)
@pytest.mark.parametrize("which", ["serve", "serve on a store", "nodepool"])
def test_promtool_finds_nothing_wrong_with_a_page(
    which: str, monitored: Monitored, from_a_store: str
) -> None:
    program = PROMTOOL.path()
    page = {
        "serve": monitored.page(),
        "serve on a store": from_a_store,
        "nodepool": monitored.pages["/nodepool"],
    }[which]
    done = subprocess.run(
        [program, "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("which", ["serve", "nodepool"])
def test_a_page_shows_what_is_declared_and_nothing_else(
    which: str, monitored: Monitored, from_a_store: str
) -> None:
    families: dict[str, tuple[tuple[Family, ...], Callable[[], str]]] = {
        "serve": (
            SERVE,
            lambda: monitored.page() + monitored.pages["/reviews"] + from_a_store,
        ),
        "nodepool": (NODEPOOL, lambda: monitored.pages["/nodepool"]),
    }
    declared, page = families[which]
    wanted = {family.name: set(family.labels) for family in declared}
    # Empty where nothing has happened yet that they tell of.
    silent = {"gma_nodepool_pool_trap", "gma_delegate_discovery_problem"}
    lacking: set[str] = set()
    shown: dict[str, set[str]] = {}

    def whole() -> bool:
        monitored.ask()
        shown.clear()
        shown.update((k, v) for k, v in labels(page()).items() if k.startswith("gma_"))
        lacking.clear()
        lacking.update(wanted.keys() - shown.keys() - IN_A_CLUSTER - silent)
        return not lacking

    until(whole, lacking)
    assert {name: wanted.get(name) for name in shown} == shown


def test_every_name_in_alerts_and_dashboard_is_on_a_page(
    monitored: Monitored, from_a_store: str
) -> None:
    others = names(from_a_store) | IN_A_CLUSTER
    for page in monitored.pages.values():
        others |= names(page)
    queries = [
        target["expr"]
        for name in BOARDS
        for panel in list_panels(dashboard(name))
        for target in panel["targets"]
    ]
    ours = used([*(rule["expr"] for rule in rendered()), *queries])
    assert ours
    words = {word for text in queries for word in re.findall(r"\b(\w+_\w+)\{", text)}
    lacking: set[str] = set()

    def whole() -> bool:
        monitored.ask()
        lacking.clear()
        lacking.update(ours | {word for word in words if word.startswith(OTHERS)})
        lacking.difference_update(others | names(monitored.page()))
        return not lacking

    until(whole, lacking)


def test_descriptions_name_metrics_that_there_are() -> None:
    declared = {family.name for family in (*SERVE, *NODEPOOL)}
    mentioned = used(text for rule in rendered() for text in rule["annotations"].values())
    assert mentioned <= declared


def test_every_alert_that_can_be_changed_is_in_the_schema() -> None:
    chart = Path(__file__).parents[2] / "charts" / "gpu-metrics-adapter"
    schema = yaml.safe_load((chart / "values.schema.json").read_text(encoding="utf-8"))
    rules = schema["properties"]["alerts"]["properties"]["rules"]
    assert rules["propertyNames"]["enum"] == [rule["alert"] for rule in rendered()]
