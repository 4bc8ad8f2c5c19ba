"""The HPAs of a list, and the ScaledObjects without one: what is known of each, its judgement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from adapter.answers.judgement.evidence import HpaEvidence, TargetPods
from adapter.answers.judgement.flaws import flaws_of
from adapter.answers.judgement.judge import judge
from adapter.answers.judgement.readings import MetricReading, leading_reading, readings_of
from adapter.answers.judgement.states import HpaJudgement, Level, ScalingState
from adapter.answers.keda.sleep import never_wakes
from adapter.answers.keda.unmade import MadeHpa, UnmadeHpa, unmade_hpas
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.tools.client.tables import Cell, ObjectTable, TableRow
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.groups import CauseRow
from adapter.tools.overview.scalers import ReadScalers

Json = dict[str, Any]
_CATALOG: Final = built_in()
SCALED: Final = "scaledobject"
"""Before the name of a row without an HPA. The name of an HPA has no slash."""
WorkloadPods = Mapping[tuple[str, str], TargetPods]
"""Namespace and name of an object of ``gpuworkloads`` -> its pods."""


@dataclass(frozen=True, slots=True)
class HpaSummary:
    """One HPA, and what it does; or a ScaledObject that has made none, and why."""

    namespace: str
    name: str
    """``llm``, or ``scaledobject/llm``."""
    target: str
    """``Deployment/llm``."""
    low: int
    high: int | None
    """None if its ScaledObject has no number."""
    current: int | None
    desired: int | None
    judgement: HpaJudgement
    metrics: Sequence[MetricReading]
    advice: str = ""
    """What to do, if it is a ScaledObject without an HPA."""
    of_gpus: bool = False
    """Whether it reads a metric of this adapter, or asks its scaler."""

    @property
    def level(self) -> Level:
        """How bad the state is."""
        return self.judgement.level

    @property
    def state(self) -> ScalingState:
        """The state."""
        return self.judgement.state

    @property
    def text(self) -> str:
        """The state in one line: ``keeps 3: gpu_utilization 54 of 60``."""
        return self.judgement.text

    @property
    def since(self) -> float | None:
        """Epoch seconds since when the state holds; None if not known."""
        return self.judgement.since

    @property
    def kind(self) -> Literal["HPA", "ScaledObject"]:
        """What it is."""
        return "ScaledObject" if self.name.startswith(f"{SCALED}/") else "HPA"

    @property
    def leading(self) -> MetricReading | None:
        """The metric with the highest value against its target; else the first one."""
        return leading_reading(self.metrics)

    @property
    def cause(self) -> CauseRow:
        """Why it does what it does, to find the HPAs that one cause concerns."""
        return CauseRow(
            f"{self.namespace}/{self.name}", self.text, own=(self.target, self.namespace)
        )

    def json(self) -> Json:
        """The row of the page."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "target": self.target,
            "min": self.low,
            "max": self.high,
            "current": self.current,
            "desired": self.desired,
            "level": self.level,
            "state": self.state,
            "decision": self.state,
            "by": self.judgement.by or None,
            "text": self.text,
            "metrics": [metric.json() for metric in self.metrics],
            "since": self.since,
            "advice": self.advice or None,
        }


def summarize(
    read: ReadScalers, pods: WorkloadPods | None, now: float, *, complete: bool = False
) -> Iterator[HpaSummary]:
    """Yield what HPAs do, and why ScaledObjects have made none.

    Args:
        read: as they were read.
        pods: those of workloads; None if they were not read.
        now: epoch seconds.
        complete: ``pods`` are not those of a label selector.
    """
    owners = {(scaled.namespace, scaled.name): scaled for scaled in read.scaled}
    for hpa in read.hpas:
        owner = owners.get((hpa.namespace, hpa.scaled_object))
        triggers = () if owner is None else owner.triggers
        asleep = None if owner is None else never_wakes(owner)
        causes = () if asleep is None else (asleep,)
        target_pods = None if pods is None else _pods_of(hpa, pods)
        labels = target_pods.labels if target_pods is not None else None
        flaws = [flaw.text for flaw in flaws_of(hpa, _CATALOG.metrics, labels, triggers)]
        none = complete and pods is not None and target_pods is None and hpa.kind == "Deployment"
        read_metrics = readings_of(hpa)
        evidence = HpaEvidence(
            hpa,
            now,
            read_metrics,
            target_pods,
            without_pods=none,
            causes=causes,
            triggers_read=owner is not None,
            flaws=flaws,
        )
        ours = any(row.custom and row.name in _CATALOG.metrics for row in hpa.metrics)
        yield _summary(hpa, evidence, of_gpus=ours or any(row.ours for row in triggers))
    made = (MadeHpa(hpa.namespace, hpa.name, hpa.scaled_object) for hpa in read.hpas)
    for row in unmade_hpas(read.scaled, made, now):
        yield _without_hpa(row)


def _pods_of(hpa: ShownHpa, pods: WorkloadPods) -> TargetPods | None:
    """Return the pods of a target. A ReplicaSet that a Deployment or Rollout owns has theirs."""
    kind, group, name = hpa.kind.lower(), hpa.scales.resource.group, hpa.scales.name
    for target in (f"{kind}.{name}", f"{kind}.{group}.{name}"):
        if (target_pods := pods.get((hpa.namespace, target))) is not None:
            return target_pods
    owner = name.rpartition("-")[0]
    owners = (f"{parent}.{owner}" for parent in ("deployment", "rollout") if kind == "replicaset")
    for above in owners:
        if (target_pods := pods.get((hpa.namespace, above))) is not None:
            return target_pods._replace(above=above)
    return None


def _summary(hpa: ShownHpa, evidence: HpaEvidence, *, of_gpus: bool) -> HpaSummary:
    return HpaSummary(
        hpa.namespace,
        hpa.name,
        f"{hpa.kind}/{hpa.scales.name}",
        hpa.low,
        hpa.high,
        hpa.current,
        hpa.wants,
        judge(evidence),
        evidence.metrics or (),
        of_gpus=of_gpus,
    )


def _without_hpa(row: UnmadeHpa) -> HpaSummary:
    """Return the row of a ScaledObject: it has bounds, and no size or value that anybody knows."""
    scaled = row.scaled
    return HpaSummary(
        scaled.namespace,
        f"{SCALED}/{scaled.name}",
        f"{scaled.kind}/{scaled.target}",
        scaled.low,
        scaled.high,
        None,
        None,
        row.judgement,
        (),
        row.advice,
        of_gpus=any(trigger.ours for trigger in scaled.triggers),
    )


_TEXTS: Final = ("Trouble", "Foreign", "Why-Not")
_NUMBERS: Final = ("Ready", "Unready", "Unscheduled", "Unready-Seconds", "Unmeasured", "Exist")


def workload_pods(table: ObjectTable | None, read_at: float) -> WorkloadPods | None:
    """Return the pods of workloads; None if the server does not say which are ready.

    Args:
        table: ``gpuworkloads``; None if it was not read.
        read_at: epoch seconds of the reading.
    """
    if table is None or not {*_NUMBERS, *_TEXTS} <= set(table.columns):
        return None
    by = Columns(table)
    pods = {}
    columns = (by.cells(name) for name in (*_TEXTS, *_NUMBERS))
    for row, trouble, foreign, reasons, *cells in zip(by.rows, *columns, strict=True):
        numbers = [int(cell) if isinstance(cell, int | float) else None for cell in cells]
        ready, unready, unscheduled, waiting, unmeasured, exist = numbers
        if ready is None or unready is None:
            continue
        since = None if waiting is None else read_at - waiting
        pods[row.namespace, row.name] = TargetPods(
            ready,
            unready,
            unscheduled or 0,
            since,
            unmeasured or 0,
            str(trouble or ""),
            exist,
            str(foreign or ""),
            row.labels,
            reasons=str(reasons or ""),
        )
    return pods


_OF_SCALER: Final = ("HPA", "State")


def with_states(table: ObjectTable, hpas: Sequence[HpaSummary]) -> ObjectTable:
    """Return the workloads with the state of what scales each.

    The view API knows HPAs. KEDA has none for a workload whose ScaledObject is paused or not
    ready, and a workload at 0 replicas has no pod by which it would be listed: its row has the
    state, and 0 pods.

    Args:
        table: ``gpuworkloads``.
        hpas: what they do, with the ScaledObjects that have made none.
    """
    places = {name: place for place, name in enumerate(table.columns)}
    if not hpas or not {*_OF_SCALER, "Pods"} <= places.keys():
        return table
    of = {(hpa.namespace, hpa.target.lower().replace("/", ".", 1)): hpa for hpa in hpas}
    rows = []
    for row in table.rows:
        scaler = of.pop((row.namespace, row.name), None)
        if scaler is not None and row.cells[places["State"]] is None:
            row = _put(row, places, scaler)  # noqa: PLW2901 - the same row with its state
        rows.append(row)
    for (namespace, name), hpa in of.items():
        if hpa.of_gpus and not hpa.current:
            cells: list[Cell] = [None] * len(table.columns)
            cells[0], cells[places["Pods"]] = name, 0
            rows.append(_put(TableRow(name, namespace, {}, cells), places, hpa))
    return ObjectTable(table.columns, rows)


def _put(row: TableRow, at: Mapping[str, int], hpa: HpaSummary) -> TableRow:
    cells = list(row.cells)
    for name, text in zip(_OF_SCALER, (hpa.name, hpa.state.value), strict=True):
        cells[at[name]] = text
    return TableRow(row.name, row.namespace, row.labels, cells)
