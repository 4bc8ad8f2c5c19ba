"""What objects show of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from adapter.answers.judgement.evidence import HpaEvidence, TargetPods
from adapter.answers.judgement.flaws import flaws_of
from adapter.answers.judgement.judge import judge
from adapter.answers.judgement.readings import readings_of
from adapter.answers.judgement.states import HpaJudgement
from adapter.answers.view.fragments import Json
from adapter.answers.view.schema import array, integer, number, struct, text
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.hpas import ScalingHpas, ShownHpa, ShownMetric

_CONDITION: Final = ("type", "status", "reason", "message")
_DIGITS: Final = 24
"""Digits of a quantity; a longer text is shown as it is."""
_METRIC: Final = {
    "metric": text("Name of the metric, or of the resource, such as cpu."),
    "type": text("Pods, Object, External, Resource or ContainerResource."),
    "target": text("Target as a quantity, or as a percentage of the requests."),
    "current": text("Value in the status of the HPA. Absent if the controller has none."),
}
ASKING: Final = array(
    "The HPAs of the pod's workload that read a metric of this adapter.",
    struct("An HPA and a metric.", name=text("Name of the HPA."), **_METRIC),
)
MORE: Final = integer("HPAs of the workload beyond the first 16, which are not shown.")
HPAS: Final = array(
    "The HPAs of the workload, at most 16.",
    struct(
        "An HPA, as its status states it.",
        name=text("Name of the HPA."),
        minReplicas=integer("Smallest number of replicas."),
        maxReplicas=integer("Largest number of replicas."),
        currentReplicas=integer("Replicas that the controller last saw."),
        desiredReplicas=integer("Replicas that the controller last wanted."),
        state=text("State of the HPA, such as healthy, overloaded or stuck."),
        level=text("How bad the state is: good, warning, bad or off."),
        summary=text("The state in one line, with the metric that leads."),
        metrics=array(
            "What the HPA reads, at most 64 metrics.",
            struct(
                "A metric of the HPA.",
                **_METRIC,
                targetValue=number("The target as a number, in percent or in the metric's unit."),
                currentValue=number("The current value as a number. Absent if there is none."),
            ),
        ),
        conditions=array(
            "Conditions of the HPA: whether it can read its metrics, and what limits it.",
            struct(
                "A condition.",
                type=text("AbleToScale, ScalingActive or ScalingLimited."),
                status=text("True, False or Unknown."),
                reason=text("Code of the reason."),
                message=text("The reason in words."),
            ),
        ),
    ),
)


def served_metrics(hpa: ShownHpa, metrics: Mapping[str, Metric]) -> Iterator[ShownMetric]:
    """Yield the metrics of an HPA that the catalogue has, under one of its names."""
    for metric in hpa.metrics:
        if metric.custom and metric.name in metrics:
            yield metric


def metric_readers(hpas: Iterable[ShownHpa], metrics: Mapping[str, Metric]) -> list[Json]:
    """Return who reads the metrics of a pod."""
    return [
        {"name": hpa.name, **_metric(metric)}
        for hpa in hpas
        for metric in served_metrics(hpa, metrics)
    ]


def judge_hpa(
    hpa: ShownHpa, pods: TargetPods | None, metrics: Mapping[str, Metric], now: float
) -> HpaJudgement:
    """Return the state of an HPA.

    Args:
        hpa: the HPA.
        pods: those of the workload; None if no workload with GPUs or servers is its target.
        metrics: of the adapter, by name.
        now: epoch seconds.
    """
    if pods is not None and hpa.kind != "ReplicaSet":  # the others are named by their own group
        pods = pods._replace(above="")
    labels = pods.labels if pods is not None else None
    flaws = [flaw.text for flaw in flaws_of(hpa, metrics, labels)]
    return judge(HpaEvidence(hpa, now, pods=pods, flaws=flaws))


def list_hpas(
    hpas: Iterable[ShownHpa], pods: TargetPods, metrics: Mapping[str, Metric], now: float
) -> list[Json]:
    """Return the HPAs of a workload."""
    return [_hpa(hpa, judge_hpa(hpa, pods, metrics, now)) for hpa in hpas]


def leading_hpa(hpas: ScalingHpas, metrics: Mapping[str, Metric]) -> ShownHpa | None:
    """Return the HPA that a table shows: the first that reads one of our metrics, or the first."""
    readers = (hpa for hpa in hpas.first if any(served_metrics(hpa, metrics)))
    return next(readers, next(iter(hpas.first), None))


def target(hpa: ShownHpa, metrics: Mapping[str, Metric]) -> str:
    """Return the first metric that an HPA reads, with value and target: our own ones first."""
    first = next(served_metrics(hpa, metrics), next(iter(hpa.metrics), None))
    if first is None:
        return ""
    text = f"{first.name} {_short(first.current)}/{_short(first.target)}"
    return text if len(hpa.metrics) == 1 else f"{text} +{len(hpa.metrics) - 1}"


def _short(quantity: str) -> str:
    """Return a quantity for a table: 87500m as 87.5."""
    number = quantity.removesuffix("m")
    if number != quantity and number.isdecimal() and len(number) < _DIGITS:
        whole, rest = divmod(int(number), 1000)
        return f"{whole}.{rest:03}".rstrip("0").removesuffix(".")
    return quantity or "?"


def _hpa(hpa: ShownHpa, judgement: HpaJudgement) -> Json:
    numbers = ({"targetValue": row.goal, "currentValue": row.value} for row in readings_of(hpa))
    body: Json = {
        "name": hpa.name,
        "minReplicas": hpa.low,
        "maxReplicas": hpa.high,
        "currentReplicas": hpa.current,
        "desiredReplicas": hpa.desired,
        "state": judgement.state.value,
        "level": judgement.level,
        "summary": judgement.text,
        "metrics": [
            _metric(metric) | {name: value for name, value in row.items() if value is not None}
            for metric, row in zip(hpa.metrics, numbers, strict=True)
        ],
        "conditions": [
            {name: getattr(row, name) for name in _CONDITION if getattr(row, name)}
            for row in hpa.conditions
        ],
    }
    return {name: value for name, value in body.items() if value not in (None, [])}


def _metric(metric: ShownMetric) -> Json:
    body: Json = {
        "metric": metric.name,
        "type": metric.type,
        "target": metric.target,
        "current": metric.current,
    }
    return {name: text for name, text in body.items() if text}
