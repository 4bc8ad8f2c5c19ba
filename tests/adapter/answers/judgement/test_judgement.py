"""Every surface shows the same state of an HPA, over the worlds of :mod:`.worlds`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.judgement.evidence import HpaEvidence, TargetPods
from adapter.answers.judgement.judge import judge
from adapter.answers.judgement.states import LEVELS, ScalingState
from adapter.answers.keda.manifest import SeenScaledObject, read_scaledobject
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.hpa import MetricKind, Missing, Values, from_manifest
from adapter.pipeline.cluster.manifest import PodDecoder, PodManifest
from adapter.tools.client.tables import ObjectTable, TableRow
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpajudge import judge as explain
from adapter.tools.explain.hpareport import HpaReport
from adapter.tools.explain.metricvalues import ReadValues
from adapter.tools.explain.scaletarget import Scale
from adapter.tools.idle.prices import PriceList
from adapter.tools.overview.hpas import HpaSummary, summarize, workload_pods
from adapter.tools.overview.scalers import ReadScalers, read_hpa
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.summaries import tables_of
from adapter.tools.ui.model import Model, PageFacts
from adapter.tools.ui.panels import EVENTS, GPUS, HPAS, NODES, PODS, WORKLOADS, PanelState
from tests.adapter.answers.judgement.worlds import NOW, NS, UTIL, WORLDS, JudgedWorld
from tests.adapter.answers.view.viewer import Viewer
from tests.adapter.world import World, row

Json = dict[str, Any]
_DECODER = PodDecoder()


def _explained(world: JudgedWorld, size: int | None = None) -> HpaReport:
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
    current = world.hpa["status"].get("currentReplicas", 0)
    replicas = current if world.replicas is None else world.replicas
    replicas = replicas if size is None else size
    facts = HpaFacts(
        world.hpa,
        spec,
        NOW,
        Scale(replicas, current, "app=llm"),
        pods=world.pods,
        values=[ReadValues(of_metric) for of_metric in values],
        triggers=_scaled(world).triggers,
    )
    return explain(facts)


def _scaled(world: JudgedWorld) -> SeenScaledObject:
    meta = {"namespace": NS, "name": "llm"}
    return read_scaledobject({"metadata": meta, "spec": {"triggers": [*world.triggers]}})


def _read(world: JudgedWorld) -> ReadScalers:
    hpa = read_hpa(world.hpa)
    return ReadScalers([hpa], [_scaled(world)] if hpa.scaled_object else [])


def _viewer(world: JudgedWorld) -> Viewer:
    pods = [_DECODER.reduce(msgspec.convert(pod, PodManifest, strict=False)) for pod in world.pods]
    stage = World(*pods)
    page = "".join(
        row("DCGM_FI_DEV_GPU_UTIL", pod["value"], pod["metadata"]["name"], uuid=f"GPU-{number}")
        for number, pod in enumerate(world.pods)
        if pod["value"] is not None
    )
    stage.scrape(page, NOW, node="n1")
    return Viewer(stage, read_hpa(world.hpa))


def _table(viewer: Viewer) -> ObjectTable:
    shelf = viewer.workloads
    rows = [
        TableRow(
            name,
            NS,
            shelf.get(name, NOW, NS)["metadata"]["labels"],
            (name, *shelf.cells(name, NOW, NS)),
        )
        for name in shelf.names(NS)
    ]
    return ObjectTable(("Name", *(column.name for column in GPUWORKLOADS.columns)), rows)


@pytest.mark.parametrize("name", WORLDS)
def test_every_surface_shows_the_same_state(name: str) -> None:
    world = WORLDS[name]
    wanted = (world.state, world.level)
    viewer = _viewer(world)
    table, read = _table(viewer), _read(world)
    (listed,) = summarize(read, workload_pods(table, NOW), NOW)
    assert (listed.state, listed.level) == wanted, listed.text
    assert world.says in listed.text
    assert _row_of_top(listed) == (world.state, listed.text)
    page = _page(read, table)
    assert (page["decision"], page["level"], page["text"]) == (*wanted, listed.text)
    for place in table.rows if not world.triggers else ():  # the server does not know triggers
        shown = viewer.workloads.get(place.name, NOW, NS)["hpas"][0]
        assert (shown["state"], shown["level"], shown["summary"]) == (*wanted, listed.text)
        assert viewer.workloads.row(place.name, NOW, NS)["State"] == world.state


@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world.explained])
def test_an_explanation_has_the_state_of_the_lists(name: str) -> None:
    world = WORLDS[name]
    report = _explained(world)
    assert report.judgement is not None
    judgement = report.judgement
    assert (judgement.state, judgement.level) == (world.state, world.level), judgement.text
    held = world.says.partition("held by ")[2].partition(":")[0]
    assert held in judgement.text, judgement.text
    assert not (report.blocks and judgement.level == "good"), report.blocks


def _row_of_top(listed: HpaSummary) -> tuple[object, object]:
    (table,) = tables_of("hpas", ClusterLists(hpas=[listed], at=NOW), everywhere=False)
    (shown,) = table.rows
    return shown.cells[table.index("STATE")], shown.cells[table.index("DECISION")]


def _page(read: ReadScalers, table: ObjectTable) -> Json:
    panels = {name: PanelState(name, "ok", updated=NOW) for name in (HPAS, WORKLOADS)}
    panels |= {name: PanelState(name) for name in (GPUS, NODES, PODS, EVENTS)}
    facts = PageFacts(panels, {HPAS: read, WORKLOADS: table})
    parts = Model(PriceList({}), 600.0).parts(facts, {HPAS, WORKLOADS}, NOW)
    (hpa,) = msgspec.json.decode(parts["hpas"])
    return dict(hpa)


def test_the_worlds_have_every_state() -> None:
    assert {world.state for world in WORLDS.values()} == set(ScalingState)
    assert set(LEVELS) == set(ScalingState)


def _caused(code: CauseCode, name: str = "at its target") -> HpaEvidence:
    cause = Cause(code, "Deployment ml/llm", f"why: {code}", "")
    return HpaEvidence(read_hpa(WORLDS[name].hpa), NOW, causes=[cause])


@pytest.mark.parametrize("code", CauseCode)
def test_no_green_stands_beside_a_cause(code: CauseCode) -> None:
    for name in ("at its target", "scales out", "replicas that do not exist yet"):
        judgement = judge(_caused(code, name))
        assert judgement.level in ("warning", "bad")
        assert f"why: {code}" in judgement.text


def test_a_cause_decides_before_a_start_is_over() -> None:
    evidence = _caused(CauseCode.QUOTA, "replicas that do not exist yet")
    judgement = judge(replace(evidence, pods=TargetPods(3, exist=3)))
    assert (judgement.state, judgement.by) == (ScalingState.BEHIND, "why: quota")


def test_a_stopped_controller_makes_every_status_stale() -> None:
    assert judge(_caused(CauseCode.CONTROLLER_STOPPED)).state is ScalingState.STALE


def test_a_status_of_another_size_than_the_target_for_minutes_is_stale() -> None:
    hpa = read_hpa(WORLDS["at its target"].hpa)
    assert judge(HpaEvidence(hpa, NOW, frozen_since=NOW - 301)).state is ScalingState.STALE
    assert judge(HpaEvidence(hpa, NOW, frozen_since=NOW - 299)).state is ScalingState.HEALTHY


def test_an_explanation_sees_that_the_controller_does_not_write_the_size() -> None:
    world = WORLDS["at its target"]
    hpa = {**world.hpa, "metadata": {**world.hpa["metadata"]}}
    written = {"subresource": "status", "time": "2026-01-02T02:00:00Z"}
    hpa["metadata"]["managedFields"] = [written]
    report = _explained(world._replace(hpa=hpa), size=5)
    assert report.judgement is not None
    assert report.judgement.state is ScalingState.STALE
    young = [{**pod, "metadata": {**pod["metadata"]}} for pod in world.pods]
    young[0]["metadata"]["creationTimestamp"] = "2026-01-02T03:03:00Z"
    fresh = _explained(world._replace(hpa=hpa, pods=young), size=5)
    assert fresh.judgement is not None
    assert fresh.judgement.state is not ScalingState.STALE


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        (WORLDS["at its target"].hpa["status"]["conditions"], ScalingState.OVERLOADED),
        (
            [{"type": "AbleToScale", "status": "True", "reason": "BackoffBoth"}],
            ScalingState.OVERLOADED,
        ),
        (
            [{"type": "AbleToScale", "status": "False", "reason": "FailedUpdateScale"}],
            ScalingState.STUCK,
        ),
        (
            [{"type": "ScalingActive", "status": "Unknown", "reason": "x"}],
            ScalingState.STUCK,
        ),
    ],
)
def test_a_target_that_is_exceeded_is_never_green(conditions: list[Json], state: str) -> None:
    world = WORLDS["overloaded at its maximum"]
    hpa = {**world.hpa, "status": {**world.hpa["status"], "conditions": conditions}}
    hpa["spec"] = {**hpa["spec"], "maxReplicas": 9}
    assert judge(HpaEvidence(read_hpa(hpa), NOW)).state is state


def test_old_rows_without_readiness_say_nothing_about_pods() -> None:
    numbers = ("Ready", "Unready", "Unscheduled", "Unready-Seconds", "Unmeasured", "Exist")
    names = ("Name", "Trouble", "Foreign", "Why-Not", *numbers)
    row = TableRow("deployment.llm", NS, {}, ("deployment.llm", *[None] * 9))
    assert workload_pods(ObjectTable(names, [row]), NOW) == {}
    assert workload_pods(ObjectTable(("Name", "Ready"), [row]), NOW) is None
