"""One workload as an object of the view API: the sum of its pods, its HPAs, and the schema."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from adapter.answers.judgement.evidence import NO_PODS, TargetPods, pods_of
from adapter.answers.view.fragments import IDLE, WHOLE_REASON, Json, round_number, why
from adapter.answers.view.groups import WorkloadGroup
from adapter.answers.view.hpaparts import HPAS, MORE, list_hpas, served_metrics
from adapter.answers.view.idle import pod_idle
from adapter.answers.view.podobject import WORKLOAD, workload
from adapter.answers.view.podvalues import UTILIZATION, AskedPod, principal_reading
from adapter.answers.view.schema import array, integer, number, struct
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.reasons import for_example
from adapter.pipeline.cluster.hpas import ScalingHpas
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps, parts
from apiservice.wire import instant

_STEP: Final = 16
"""Pods whose values one step reads."""


_NO_HPAS: Final = ScalingHpas((), 0)


@dataclass(slots=True)
class Summary:
    """The values of a workload's pods."""

    pods: int = 0
    measured: int = 0
    devices: set[str] = field(default_factory=set)
    """Devices with a value."""
    busy: list[float] = field(default_factory=list)
    """Utilisation, once per pod that has it."""
    idle: list[float] = field(default_factory=list)
    """Since when, once per pod that is idle."""
    reasons: dict[str, tuple[Absence, Pod, int]] = field(default_factory=dict)
    """Reason -> an absence, its pod, and the number of pods without a value for this reason."""
    lacking: int = 0
    """Ready pods without a value of a metric that an HPA of the workload reads of them."""
    holders: int = 0
    """Pods that hold a GPU. Others of the workload are listed only while they are scraped."""
    target: TargetPods = NO_PODS
    """The pods as an HPA is judged by them."""
    hpas: ScalingHpas = _NO_HPAS
    """Those that scale the workload."""

    def add(self, asked_pod: AskedPod, wanted: Collection[str]) -> None:
        """Add a pod.

        Args:
            asked_pod: the pod.
            wanted: metrics that HPAs read of it.
        """
        self.pods += 1
        self.holders += asked_pod.pod.holds_gpu
        main = principal_reading(asked_pod)
        if wanted and asked_pod.pod.ready and not asked_pod.pod.deleting:
            self.lacking += any(
                isinstance(main if name == UTILIZATION else asked_pod.reading(name), Absence)
                for name in wanted
            )
        if isinstance(main, Absence):
            first, pod, count = self.reasons.get(main.reason, (main, asked_pod.pod, 0))
            if first.detail != main.detail:
                first = for_example(first, pod)
            self.reasons[main.reason] = (first, pod, count + 1)
            return
        self.measured += 1
        if asked_pod.holds_gpu:
            self.busy.append(main.value)
            self.devices.update(part.device for part in main.devices)
            idle = pod_idle(asked_pod)
            if idle is not None:
                self.idle.append(idle)

    @property
    def idle_since(self) -> float | None:
        """Since when all pods are idle; None if one is not, or has no value."""
        return max(self.idle) if self.idle and len(self.idle) == self.pods else None

    @property
    def mean(self) -> float | None:
        """Mean utilisation; None without a value."""
        return sum(self.busy) / len(self.busy) if self.busy else None

    @property
    def most(self) -> float | None:
        """Highest utilisation; None without a value."""
        return max(self.busy, default=None)


def summary(
    group: WorkloadGroup, snapshot: Snapshot, hpas: ScalingHpas, now: float
) -> Steps[Summary]:
    """Return the values of a workload's pods, in steps."""
    summed = Summary(hpas=hpas)
    catalog = snapshot.catalog.metrics
    wanted = {
        metric.name
        for hpa in hpas.first
        for metric in served_metrics(hpa, catalog)
        if metric.type == "Pods"
    }
    for some in parts(group.pods, _STEP):
        for pod in some:
            summed.add(AskedPod(snapshot, pod, now), wanted)
        yield
    complete = summed.holders == summed.pods
    target = pods_of(
        group.pods, summed.lacking, complete=complete, rejected=group.rejected, now=now
    )
    summed.target = target._replace(labels=group.labels, reasons=",".join(sorted(summed.reasons)))
    return summed


def fields(group: WorkloadGroup, pod_summary: Summary, snapshot: Snapshot, now: float) -> Json:
    """Return the fields of the object, without its metadata.

    Args:
        group: the workload.
        pod_summary: the values of its pods, and its HPAs.
        snapshot: where the values are from.
        now: epoch seconds.
    """
    mean, most, hpas = pod_summary.mean, pod_summary.most, pod_summary.hpas
    body: Json = {
        "workload": workload(group.above),
        "pods": pod_summary.pods,
        "ready": pod_summary.target.ready,
        "measured": pod_summary.measured,
        "gpus": len(pod_summary.devices),
        "utilization": {}
        if mean is None or most is None
        else {"mean": round_number(mean), "max": round_number(most)},
        "hpas": list_hpas(hpas.first, pod_summary.target, snapshot.catalog.metrics, now),
        "hpasNotShown": hpas.more,
        "reasons": [
            {**why(absence, snapshot, pod), "pods": count}
            for absence, pod, count in pod_summary.reasons.values()
        ],
    }
    if pod_summary.idle_since is not None:
        body["idleSince"] = instant.write(pod_summary.idle_since)
    always = ("pods", "ready", "measured", "gpus")
    return {key: value for key, value in body.items() if value or key in always}


SCHEMA: Final = struct(
    "A workload with pods that hold a GPU, or that are inference servers, as far as the pods name "
    "it. Pods of it without both are not counted. Absent fields are not known; a missing value is "
    "never 0.",
    workload=struct("The workload. A bare pod is its own workload.", **WORKLOAD),
    pods=integer("Pods of the workload that are listed as gpupods."),
    ready=integer("Pods that are ready."),
    measured=integer("Pods that have a value."),
    gpus=integer("Devices with a value. A device that pods share counts once."),
    utilization=struct(
        "Utilization over the pods that have it, in percent.",
        mean=number("Mean over the pods, as an HPA sees it."),
        max=number("Highest value of a pod."),
    ),
    hpas=HPAS,
    hpasNotShown=MORE,
    reasons=array(
        "Why pods have no value.",
        struct(
            "A reason, for the first of its pods.",
            **WHOLE_REASON,
            pods=integer("Pods without a value for this reason."),
        ),
    ),
    idleSince=IDLE,
)
