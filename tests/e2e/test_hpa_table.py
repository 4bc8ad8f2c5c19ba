"""adapter.hpa decides what the real kube-controller-manager decides, case by case.

All cases run at once in one control plane, each in its own namespace, with the HPA
controller alone: nothing follows the scale target, so pods stay as the case has them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from kubernetes.utils.quantity import parse_quantity

from adapter.hpa import Condition, Decision, MetricKind, from_manifest
from tests.adapter.hpa.cases.case import Case, play
from tests.adapter.hpa.cases.table import CASES
from tests.e2e.cluster import HPAS, Object
from tests.e2e.hpastage import HpaStage, hpa_stage, metric_names
from tests.e2e.process import FailedError, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SYNCS = 3
"""Requests of the controller to see after it has settled, before it is believed."""
PATIENCE = 90.0
"""Seconds after which a phase that has not settled is compared as it stands."""


@dataclass(slots=True)
class Phase:
    """What came of one phase, of the model and of the controller."""

    steps: list[tuple[int, str]]
    """The model's sizes, each with its reason."""
    decision: Decision
    sizes: list[int] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    events: set[str] = field(default_factory=set)

    @property
    def expected(self) -> list[int]:
        """The model's sizes."""
        return [size for size, _ in self.steps]

    @property
    def messages(self) -> set[str]:
        """What the controller's events are to say of them."""
        return {f"New size: {size}; reason: {reason}" for size, reason in self.steps}


@dataclass(slots=True)
class Table:
    """Everything the cases share."""

    stage: HpaStage

    def run(self, number: int, case: Case) -> list[Phase]:
        """Put one case before the controller and return what came of its phases."""
        namespace = f"case-{number}"
        stage, board = self.stage, self.stage.board
        stage.build(namespace, case)
        phases = []
        done = 1
        for index, (steps, decision) in enumerate(play(case, namespace)):
            metrics = metric_names(case)
            stage.feed(namespace, case, index)
            if index == 0:
                stage.admin.create(case.manifest(namespace))
            phase = Phase(steps, decision)
            self._settle(namespace, metrics, phase, done)
            with board.changed:
                phase.sizes = board.sizes[namespace][done:]
                phase.status = board.status.get(namespace, {})
            phase.events = self._events(namespace, phase.messages)
            done += len(phase.sizes)
            phases.append(phase)
        # An HPA that is done leaves the controller to the others.
        self.stage.admin.delete(f"{HPAS.format(ns=namespace)}/hpa")
        return phases

    def _settle(self, namespace: str, metrics: list[str], phase: Phase, done: int) -> None:
        """Wait until sizes and conditions are the model's, and stay so for some syncs."""
        deadline = time.monotonic() + PATIENCE
        key = (namespace, metrics[0].lower())
        asks = bool(phase.decision.proposals)
        mark: int | None = None
        with self.stage.board.changed:
            while time.monotonic() < deadline:
                status = self.stage.board.status.get(namespace, {})
                same = self.stage.board.sizes[namespace][done:] == phase.expected
                if not same or _conditions(status) != _expected(phase.decision):
                    mark = None
                elif mark is None:
                    mark = self.stage.api.asked[key]
                elif not asks or self.stage.api.asked[key] >= mark + SYNCS:
                    return
                self.stage.board.changed.wait(0.25)

    def _events(self, namespace: str, wanted: set[str]) -> set[str]:
        """Return the messages of the rescale events; they are written with some delay."""

        def look() -> set[str]:
            rows = self.stage.admin.get(f"/api/v1/namespaces/{namespace}/events")["items"]
            return {row["message"] for row in rows if row["reason"] == "SuccessfulRescale"}

        if wanted:
            with contextlib.suppress(FailedError):
                wait_until(lambda: wanted <= look(), "the events are there", 10, 0.25)
        return look() & wanted


def _conditions(status: Object) -> set[tuple[str, bool, str, str]]:
    return {
        (row["type"], row["status"] == "True", row["reason"], row["message"])
        for row in status.get("conditions") or ()
    }


def _expected(decision: Decision) -> set[tuple[str, bool, str, str]]:
    def parts(row: Condition) -> tuple[str, bool, str, str]:
        return row.type, row.status, row.reason, row.message

    return {parts(row) for row in decision.conditions}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[list[Phase]]]]:
    """Start every case; a test waits for its own."""
    pool = ThreadPoolExecutor(len(CASES), thread_name_prefix="case")
    with hpa_stage(tmp_path_factory.mktemp("table")) as stage:
        table = Table(stage)
        yield {case.name: pool.submit(table.run, i, case) for i, case in enumerate(CASES)}
        pool.shutdown(cancel_futures=True)


def test_the_table_is_large_enough() -> None:
    """At least 40 cases, each with a name of its own."""
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_controller_decides_the_same(
    outcomes: dict[str, Future[list[Phase]]], case: Case
) -> None:
    """Same sizes in order, same conditions and reasons word for word, same current values."""
    phases = outcomes[case.name].result()
    assert tuple(size for phase in phases for size in phase.sizes) == case.sizes
    for phase in phases:
        assert phase.sizes == phase.expected
        assert phase.events == phase.messages
        assert _conditions(phase.status) == _expected(phase.decision)
        assert _usages(phase.status) == _proposed(case, phase.decision)


def _usages(status: Object) -> list[int]:
    """Return the thousandths of ``status.currentMetrics``, in order."""
    usages = []
    for row in status.get("currentMetrics") or ():
        kind = row["type"]
        key = kind[:1].lower() + kind[1:]
        current = row.get(key, {}).get("current", {})
        if "averageUtilization" in current:
            usages.append(current["averageUtilization"] * 1000)
            continue
        quantity = current.get("value", current.get("averageValue"))
        if quantity is not None:
            number = parse_quantity(quantity)
            usages.append(int(Decimal(number) * 1000))
    # The average over no replicas: Go's integer for an infinite float, which we leave out.
    return [milli for milli in usages if milli != -(2**63)]


def _proposed(case: Case, decision: Decision) -> list[int]:
    kinds = [metric.kind for metric in from_manifest(case.manifest("default")).metrics]
    assert set(kinds) <= set(MetricKind)
    return [proposal.usage for proposal in decision.proposals if proposal.usage is not None]
