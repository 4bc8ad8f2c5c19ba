"""The HPAs of a list: what was read of each, and its judgement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapter.answers.judgement.evidence import HpaEvidence, TargetPods
from adapter.answers.judgement.judge import judge
from adapter.answers.judgement.readings import MetricReading, leading, readings_of
from adapter.answers.judgement.states import HpaJudgement, Level, ScalingState
from adapter.pipeline.cluster.hpamanifest import HpaManifest, reduce
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.tools.client.tables import ObjectTable
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.groups import CauseRow

Json = dict[str, Any]
WorkloadPods = Mapping[tuple[str, str], TargetPods]
"""Namespace and name of an object of ``gpuworkloads`` -> its pods."""


@dataclass(frozen=True, slots=True)
class HpaSummary:
    """One HPA, and what it does."""

    namespace: str
    name: str
    target: str
    """``Deployment/llm``."""
    low: int
    high: int
    current: int | None
    desired: int | None
    judgement: HpaJudgement
    metrics: Sequence[MetricReading]

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
    def leading(self) -> MetricReading | None:
        """The metric with the highest value against its target; else the first one."""
        return leading(self.metrics)

    @property
    def cause(self) -> CauseRow:
        """Why it does what it does, to find the HPAs that one cause concerns."""
        return CauseRow(f"{self.namespace}/{self.name}", self.text, own=(self.target,))

    def json(self) -> Json:
        """The row of the page."""
        return {
            "namespace": self.namespace,
            "name": self.name,
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
        }


def read_hpa(hpa: Json) -> ShownHpa:
    """Return what is kept of an ``autoscaling/v2`` HPA.

    Raises:
        ValueError: the object is not an HPA.
    """
    try:
        return reduce(msgspec.convert(hpa, HpaManifest))
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def summarize(hpas: Iterable[ShownHpa], pods: WorkloadPods, now: float) -> list[HpaSummary]:
    """Return what HPAs do.

    Args:
        hpas: as they were read.
        pods: those of workloads, as far as they were read.
        now: epoch seconds.
    """
    return [_summary(hpa, pods, now) for hpa in hpas]


def _summary(hpa: ShownHpa, pods: WorkloadPods, now: float) -> HpaSummary:
    kind, group = hpa.kind.lower(), hpa.scales.resource.group
    names = (f"{kind}.{hpa.scales.name}", f"{kind}.{group}.{hpa.scales.name}")
    known = (pods.get((hpa.namespace, name)) for name in names)
    found = next((each for each in known if each is not None), None)
    metrics = readings_of(hpa)
    return HpaSummary(
        hpa.namespace,
        hpa.name,
        f"{hpa.kind}/{hpa.scales.name}",
        hpa.low,
        hpa.high,
        hpa.current,
        hpa.desired,
        judge(HpaEvidence(hpa, now, metrics, found, flaws=_flaws(hpa, pods, found))),
        metrics,
    )


def _flaws(hpa: ShownHpa, pods: WorkloadPods, own: TargetPods | None) -> list[str]:
    """Return that a Deployment or Rollout owns the target, a ReplicaSet, and sets its size."""
    if hpa.kind != "ReplicaSet" or own is not None:
        return []
    owner = hpa.scales.name.rpartition("-")[0]
    owners = ((hpa.namespace, f"{kind}.{owner}") for kind in ("deployment", "rollout"))
    name = next((name for namespace, name in owners if (namespace, name) in pods), "")
    return [f"{name} owns its target, and sets the size back"] if name else []


_TEXTS: Final = ("Trouble", "Foreign")
_NUMBERS: Final = ("Ready", "Unready", "Unscheduled", "Unready-Seconds", "Unmeasured", "Exist")


def workload_pods(table: ObjectTable | None, read_at: float) -> WorkloadPods:
    """Return the pods of workloads; empty if the server does not say which are ready.

    Args:
        table: ``gpuworkloads``; None if it was not read.
        read_at: epoch seconds of the reading.
    """
    if table is None or not {*_NUMBERS, *_TEXTS} <= set(table.columns):
        return {}
    by = Columns(table)
    found = {}
    columns = (by.cells(name) for name in (*_TEXTS, *_NUMBERS))
    for row, trouble, foreign, *cells in zip(by.rows, *columns, strict=True):
        numbers = [int(cell) if isinstance(cell, int | float) else None for cell in cells]
        ready, unready, unscheduled, waiting, unmeasured, exist = numbers
        if ready is None or unready is None:
            continue
        since = None if waiting is None else read_at - waiting
        found[row.namespace, row.name] = TargetPods(
            ready,
            unready,
            unscheduled or 0,
            since,
            unmeasured or 0,
            str(trouble or ""),
            exist,
            str(foreign or ""),
        )
    return found
