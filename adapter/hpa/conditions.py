"""``status.conditions`` of an HPA, and the texts about metrics in conditions and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adapter.hpa.spec import MetricKind, MetricSpec, TargetKind


class Condition(NamedTuple):
    """An entry of ``status.conditions``; reasons and messages are the controller's own."""

    type: str
    """AbleToScale, ScalingActive, ScalingLimited; ScaledToZero with its feature gate."""
    status: bool
    reason: str
    message: str
    since: float
    """Epoch seconds of the last change of ``status`` (lastTransitionTime)."""


class Conditions:
    """The list of conditions while a sync works on it."""

    def __init__(self, past: Sequence[Condition], now: float) -> None:
        self._rows = {row.type: row for row in past}
        self._now = now

    def set(self, kind: str, status: bool, reason: str, message: str) -> None:
        """Replace the condition of a type; ``since`` changes only when the status changes."""
        past = self._rows.get(kind)
        since = past.since if past is not None and past.status == status else self._now
        self._rows[kind] = Condition(kind, status, reason, message, since)

    def remove(self, kind: str) -> None:
        """Remove the condition of a type, if present."""
        self._rows.pop(kind, None)

    def holds(self, kind: str) -> bool:
        """Return whether the condition of a type is present and True."""
        return kind in self._rows and self._rows[kind].status

    def rows(self) -> tuple[Condition, ...]:
        """Return all conditions, in the order in which their types first appeared."""
        return tuple(self._rows.values())


def selector_text(metric: MetricSpec) -> str:
    """Write a LabelSelector as Go's ``%+v`` does: it is part of the metric's name in events."""
    if metric.selector is None:
        return "nil"
    labels = metric.selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    rows = "".join(
        f"LabelSelectorRequirement{{Key:{row.get('key', '')},Operator:{row.get('operator', '')},"
        f"Values:[{' '.join(row.get('values') or ())}],}},"
        for row in metric.selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rows}}},}}"
    )


def name_of(metric: MetricSpec) -> str:
    """Return the name the controller gives a metric in conditions and events."""
    if metric.kind.of_resources:
        if metric.target.kind is TargetKind.AVERAGE_VALUE:
            return f"{metric.name} resource"
        container = "container " if metric.kind is MetricKind.CONTAINER else ""
        return f"{metric.name} {container}resource utilization (percentage of request)"
    if metric.kind is MetricKind.PODS:
        return f"pods metric {metric.name}"
    if metric.kind is MetricKind.OBJECT and metric.target.kind is TargetKind.VALUE:
        kind = metric.described.kind if metric.described else ""
        return f"{kind} metric {metric.name}"
    return f"external metric {metric.name}({selector_text(metric)})"


def failure_of(metric: MetricSpec, text: str) -> str:
    """Return why a metric is invalid as the event FailedComputeMetricsReplicas has it."""
    average = metric.target.kind is TargetKind.AVERAGE_VALUE
    if metric.kind is MetricKind.RESOURCE:
        return f"failed to get {metric.name} resource metric value: {text}"
    if metric.kind is MetricKind.CONTAINER:
        return f"failed to get {metric.container} container metric value: {text}"
    if metric.kind is MetricKind.PODS:
        return f"failed to get pods metric value: {text}"
    if metric.kind is MetricKind.OBJECT:
        inner = f"failed to get {metric.name} object metric: " if average else ""
        return f"failed to get object metric value: {inner}{text}"
    inner = f"{metric.name} external metric" if average else f"external metric {metric.name}"
    return f"failed to get {metric.name} external metric value: failed to get {inner}: {text}"
