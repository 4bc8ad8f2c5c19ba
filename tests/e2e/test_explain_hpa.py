"""explain hpa decides what the real kube-controller-manager decides, situation by situation.

Every situation stands in a cluster whose controller has not started. ``explain`` predicts the
first decision; then the controller starts, and its first status is compared. Once it has settled,
``explain`` is asked again: it must infer from status and events what the controller remembers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from adapter.hpa import ControllerOptions
from adapter.tools.client.access import cluster
from adapter.tools.client.errors import MissingRight, grant
from adapter.tools.explain.hpafacts import gather
from adapter.tools.explain.hpajudge import judge
from adapter.tools.explain.hpareport import HpaReport
from tests.adapter.hpa.cases.case import Case, each, pods, run
from tests.adapter.hpa.cases.table import CASES
from tests.e2e import programs
from tests.e2e.cluster import Object
from tests.e2e.hpastage import HpaStage, hpa_stage
from tests.e2e.process import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CONTROLLER: Final = ControllerOptions(scale_to_zero=True, sync_period=1.0)
QUIET: Final = 18.0
"""Seconds without a change after which the controller has settled: longer than the period of 15 s
of the default `behavior`, after which it scales on."""
PATIENCE: Final = 120.0

_BUSY: Final = Case("", 2, run(2), (pods(),), ((each(2, 95),),), ())
AMBIGUOUS: Final = replace(_BUSY, name="two HPAs on one target")
NO_TARGET: Final = replace(_BUSY, name="a target that does not exist")
NO_KIND: Final = replace(_BUSY, name="a kind that does not exist")
SITUATIONS: Final = (*CASES, AMBIGUOUS, NO_TARGET, NO_KIND)


class Judgement(NamedTuple):
    """A size, and the reason of each condition."""

    desired: int | None
    """None if the scale cannot be read."""
    conditions: frozenset[tuple[str, bool, str]]


class Outcome(NamedTuple):
    """What explain said, and what the controller did."""

    predicted: HpaReport
    first: Object
    settled: HpaReport
    last: Object
    sizes: list[int]
    """Every size of the target, in order."""


def _said(report: HpaReport) -> Judgement:
    assert report.decision is not None, report.why
    rows = frozenset((row.type, row.status, row.reason) for row in report.decision.conditions)
    return Judgement(None if report.replicas is None else report.decision.desired, rows)


def _did(status: Object, size: int) -> Judgement:
    """A sync that cannot decide leaves desiredReplicas alone: then the size must stay."""
    rows = status.get("conditions") or ()
    conditions = frozenset((row["type"], row["status"] == "True", row["reason"]) for row in rows)
    active = {row["type"]: row["status"] for row in rows}
    able = active.get("AbleToScale") == active.get("ScalingActive", "True") == "True"
    if active.get("AbleToScale") != "True":
        return Judgement(None, conditions)
    return Judgement(status["desiredReplicas"] if able else size, conditions)


def _build(stage: HpaStage, number: int, case: Case) -> None:
    namespace = f"case-{number}"
    stage.build(namespace, case)
    stage.feed(namespace, case)
    manifest = case.manifest(namespace)
    if case is NO_TARGET:
        manifest["spec"]["scaleTargetRef"]["name"] = "elsewhere"
    if case is NO_KIND:
        manifest["spec"]["scaleTargetRef"] |= {"kind": "Nothing", "apiVersion": "none.example/v1"}
    stage.admin.create(manifest)
    if case is AMBIGUOUS:
        other = case.manifest(namespace)
        other["metadata"]["name"] = "other"
        stage.admin.create(other)


async def _explain(kubeconfig: Path) -> list[HpaReport]:
    slots = asyncio.Semaphore(8)

    async def one(number: int) -> HpaReport:
        async with slots, cluster(kubeconfig, namespace=f"case-{number}") as api:
            return judge(await gather(api, "hpa"), CONTROLLER)

    return await asyncio.gather(*map(one, range(len(SITUATIONS))))


def _settle(stage: HpaStage) -> None:
    """Wait until every HPA has a status and none has changed for a while."""
    deadline, before, since = time.monotonic() + PATIENCE, (0, 0), time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < QUIET:
        with stage.board.changed:
            stage.board.changed.wait(0.5)
            rows = stage.board.statuses.values()
            now = sum(map(len, rows)), sum(any(row.get("conditions") for row in r) for r in rows)
        if now != before or now[1] < len(SITUATIONS):
            before, since = now, time.monotonic()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HpaStage]:
    """The control plane; its controller does not run yet."""
    with hpa_stage(tmp_path_factory.mktemp("explain")) as stage:
        stage.plane.manager.stop(signal.SIGKILL)
        yield stage


@pytest.fixture(scope="module")
def outcomes(lab: HpaStage) -> Mapping[str, Outcome]:
    """Run all situations at once."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda row: _build(lab, *row), enumerate(SITUATIONS)))
    predicted = asyncio.run(_explain(lab.plane.kubeconfig))
    lab.plane.manager.start()
    _settle(lab)
    settled = asyncio.run(_explain(lab.plane.kubeconfig))
    return {case.name: _outcome(lab, i, predicted, settled) for i, case in enumerate(SITUATIONS)}


def _outcome(
    lab: HpaStage, number: int, predicted: list[HpaReport], settled: list[HpaReport]
) -> Outcome:
    board, namespace = lab.board, f"case-{number}"
    first = next((row for row in board.statuses[namespace] if "conditions" in row), {})
    last, sizes = board.status[namespace], board.sizes[namespace]
    return Outcome(predicted[number], first, settled[number], last, sizes)


def test_the_table_is_large_enough() -> None:
    """At least 40 situations, each with a name of its own."""
    assert len({case.name for case in SITUATIONS}) == len(SITUATIONS) >= 40


# The controller finds two HPAs on one target only after it has seen both.
@pytest.mark.parametrize(
    "case",
    [case for case in SITUATIONS if case is not AMBIGUOUS],
    ids=lambda case: case.name.replace(" ", "-"),
)
def test_the_first_decision_is_predicted(outcomes: Mapping[str, Outcome], case: Case) -> None:
    """Same size, and the same reason of every condition, before the controller has started."""
    outcome = outcomes[case.name]
    assert _said(outcome.predicted) == _did(outcome.first, case.replicas)


@pytest.mark.parametrize("case", SITUATIONS, ids=lambda case: case.name.replace(" ", "-"))
def test_the_settled_state_is_explained(outcomes: Mapping[str, Outcome], case: Case) -> None:
    """Same size and reasons once the controller has a memory that only its status shows."""
    outcome = outcomes[case.name]
    assert _said(outcome.settled) == _did(outcome.last, outcome.sizes[-1])


@pytest.mark.parametrize(
    ("resource", "group", "namespace"),
    [
        ("horizontalpodautoscalers", "autoscaling", "default"),
        ("deployments/scale", "apps", "default"),
        ("pods", "", "default"),
        ("events", "", "default"),
        ("nodes", "", ""),
        ("pods", "metrics.k8s.io", "default"),
        ("pods/gpu", "custom.metrics.k8s.io", "default"),
        ("queue", "external.metrics.k8s.io", "default"),
    ],
)
def test_a_right_that_is_missing_is_granted_by_the_printed_command(
    lab: HpaStage, resource: str, group: str, namespace: str
) -> None:
    """The real kubectl runs it, also a second time; then the API server allows what it refused."""
    user = "jane"
    right = MissingRight(user, "get", resource, group, namespace)
    run = ["bash", "-ec", grant(right)]
    path = f"{Path(programs.find(programs.KUBECTL)).parent}:{os.environ['PATH']}"
    environ = {"PATH": path, "KUBECONFIG": str(lab.plane.kubeconfig), "HOME": "/nonexistent"}
    # Objects of an earlier attempt do not stop it.
    for _ in range(2):
        done = subprocess.run(
            run, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{grant(right)}\n{done.stderr}"
    name, _, subresource = resource.partition("/")
    attributes = {"verb": "get", "group": group, "resource": name, "subresource": subresource}
    spec = {"user": user, "resourceAttributes": attributes | {"namespace": namespace}}

    def allowed() -> bool:
        review = lab.admin.request(
            "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec}
        )
        return bool(review["status"]["allowed"])

    # The authorizer sees the new objects through its watches.
    wait_until(allowed, f"{user} may get {resource}")
