"""Every surface shows the same state of an HPA, over the worlds of :mod:`.worlds`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from adapter.client.tables import ObjectTable, TableRow
from adapter.cluster.manifest import PodDecoder, PodManifest
from adapter.explain.hpafacts import HpaFacts
from adapter.explain.hpajudge import judge as explain
from adapter.explain.hpareport import HpaReport
from adapter.explain.metricvalues import ReadValues
from adapter.explain.scaletarget import Scale
from adapter.hpa import MetricKind, Missing, Values, from_manifest
from adapter.idle.prices import PriceList
from adapter.judgement.states import LEVELS, ScalingState
from adapter.overview.hpas import HpaSummary, read_hpa, summarize, workload_pods
from adapter.top.facts import ClusterLists
from adapter.top.summaries import tables_of
from adapter.ui.model import Model, PageFacts
from adapter.ui.panels import EVENTS, GPUS, HPAS, PODS, WORKLOADS, HpaList, PanelState
from adapter.view.gpuworkloads import GPUWORKLOADS
from tests.adapter.judgement.worlds import NOW, NS, UTIL, WORLDS, JudgedWorld
from tests.adapter.view.viewer import Viewer
from tests.adapter.world import World, row

Json = dict[str, Any]
_DECODER = PodDecoder()


def _explained(world: JudgedWorld) -> HpaReport:
    spec = from_manifest(world.hpa)
    other: Iterator[Values] = iter(world.other)
    of_pods = {
        pod["metadata"]["name"]: int(1000 * pod["value"])
        for pod in world.pods
        if pod["value"] is not None
    }
    values: list[Values] = []
    for metric in spec.metrics:
        if metric.kind is MetricKind.PODS and metric.name == UTIL:
            values.append(of_pods or Missing("no metrics returned from custom metrics API"))
        else:
            values.append(next(other))
    size = world.hpa["status"]["currentReplicas"]
    replicas = world.hpa["status"]["desiredReplicas"] if world.replicas is None else world.replicas
    facts = HpaFacts(
        world.hpa,
        spec,
        NOW,
        Scale(replicas, size, "app=llm"),
        pods=world.pods,
        values=[ReadValues(each) for each in values],
    )
    return explain(facts)


def _viewer(world: JudgedWorld) -> Viewer:
    pods = [_DECODER.reduce(msgspec.convert(pod, PodManifest, strict=False)) for pod in world.pods]
    stage = World(*pods)
    page = "".join(
        row("DCGM_FI_DEV_GPU_UTIL", pod["value"], pod["metadata"]["name"], uuid=f"GPU-{at}")
        for at, pod in enumerate(world.pods)
        if pod["value"] is not None
    )
    stage.scrape(page, NOW, node="n1")
    return Viewer(stage, read_hpa(world.hpa))


def _table(viewer: Viewer) -> ObjectTable:
    shelf = viewer.workloads
    rows = [TableRow(name, NS, {}, (name, *shelf.cells(name, NOW, NS))) for name in shelf.names(NS)]
    return ObjectTable(("Name", *(column.name for column in GPUWORKLOADS.columns)), rows)


@pytest.mark.parametrize("name", WORLDS)
def test_every_surface_shows_the_same_state(name: str) -> None:
    world = WORLDS[name]
    wanted = (world.state, world.level)
    viewer = _viewer(world)
    table, hpa = _table(viewer), read_hpa(world.hpa)
    (listed,) = summarize([hpa], workload_pods(table, NOW), NOW)
    assert (listed.state, listed.level) == wanted, listed.text
    assert world.says in listed.text
    assert _row_of_top(listed) == (world.state, listed.text)
    page = _page(hpa, table)
    assert (page["decision"], page["level"], page["text"]) == (*wanted, listed.text)
    for place in table.rows:
        shown = viewer.workloads.get(place.name, NOW, NS)["hpas"][0]
        assert (shown["state"], shown["level"], shown["summary"]) == (*wanted, listed.text)
        assert viewer.workloads.row(place.name, NOW, NS)["State"] == world.state


@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world.explained])
def test_an_explanation_has_the_state_of_the_lists(name: str) -> None:
    world = WORLDS[name]
    report = _explained(world)
    assert report.judgement is not None
    found = report.judgement
    assert (found.state, found.level) == (world.state, world.level), found.text
    assert not (report.blocks and found.level == "good"), report.blocks


def _row_of_top(listed: HpaSummary) -> tuple[object, object]:
    (table,) = tables_of("hpas", ClusterLists(hpas=[listed], at=NOW), everywhere=False)
    (found,) = table.rows
    return found.cells[table.index("STATE")], found.cells[table.index("DECISION")]


def _page(hpa: Any, table: ObjectTable) -> Json:
    panels = {name: PanelState(name, "ok", updated=NOW) for name in (HPAS, WORKLOADS)}
    panels |= {name: PanelState(name) for name in (GPUS, PODS, EVENTS)}
    seen = PageFacts(panels, {HPAS: HpaList([hpa]), WORKLOADS: table})
    parts = Model(PriceList({}), 600.0).parts(seen, {HPAS, WORKLOADS}, NOW)
    (found,) = msgspec.json.decode(parts["hpas"])
    return dict(found)


def test_the_worlds_have_every_state() -> None:
    assert {world.state for world in WORLDS.values()} == set(ScalingState)
    assert set(LEVELS) == set(ScalingState)
