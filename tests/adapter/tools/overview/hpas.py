"""HPAs as the API server returns them, for tests of what is said about them."""

from __future__ import annotations

from typing import Any

from adapter.answers.judgement.evidence import TargetPods
from adapter.tools.overview.hpas import HpaSummary, summarize
from adapter.tools.overview.scalers import ReadScalers, read_hpa

Json = dict[str, Any]
AT = 1767323045.0
"""2026-01-02T03:04:05Z, just after the last scaling of :func:`hpa`."""


def state_of(found: Json, now: float = AT, pods: TargetPods | None = None) -> HpaSummary:
    """What an HPA does, as a list shows it."""
    read = read_hpa(found)
    of = {} if pods is None else {(read.namespace, f"deployment.{read.scales.name}"): pods}
    (summary,) = summarize(ReadScalers([read]), of, now)
    return summary


def metric(name: str = "gpu_utilization", goal: str = "60") -> Json:
    return {
        "type": "Pods",
        "pods": {
            "metric": {"name": name},
            "target": {"type": "AverageValue", "averageValue": goal},
        },
    }


def value(name: str = "gpu_utilization", now: str = "54") -> Json:
    return {"type": "Pods", "pods": {"metric": {"name": name}, "current": {"averageValue": now}}}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


FINE = (
    condition("AbleToScale", reason="ReadyForNewScale"),
    condition("ScalingActive", reason="ValidMetricFound"),
    condition("ScalingLimited", "False", "DesiredWithinRange"),
)


def hpa(
    name: str = "llm",
    current: int | None = 3,
    desired: int | None = 3,
    metrics: tuple[Json, ...] = (metric(),),
    values: tuple[Json, ...] = (value(),),
    conditions: tuple[Json, ...] = FINE,
    namespace: str = "chat",
) -> Json:
    status: Json = {"conditions": list(conditions), "currentMetrics": list(values)}
    status |= {} if current is None else {"currentReplicas": current}
    status |= {} if desired is None else {"desiredReplicas": desired}
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": list(metrics),
        },
        "status": status | {"lastScaleTime": "2026-01-02T03:04:00Z"},
    }


def stuck(name: str = "llm", namespace: str = "chat", reason: str = "FailedGetPodsMetric") -> Json:
    lost = condition("ScalingActive", "False", reason, "unable to get metric gpu_utilization")
    return hpa(name, values=(), conditions=(FINE[0], lost), namespace=namespace)


def at_maximum(name: str = "llm", namespace: str = "chat") -> Json:
    limited = condition("ScalingLimited", reason="TooManyReplicas")
    return hpa(
        name,
        8,
        8,
        values=(value(now="92"),),
        conditions=(*FINE[:2], limited),
        namespace=namespace,
    )
