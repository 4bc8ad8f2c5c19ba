"""What a HorizontalPodAutoscaler does now, in words, from its status alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import msgspec

from adapter.cluster.hpamanifest import HpaManifest, reduce
from adapter.cluster.hpas import ShownCondition, ShownHpa, ShownMetric
from adapter.explain.words import milli, one_line, to_milli
from adapter.figures import decimal
from apiservice.wire import instant

Json = dict[str, Any]
Level = Literal["good", "warning", "bad", "off"]
Decision = Literal["keeps", "scales out", "scales in", "stuck", "at maximum", "disabled", "waiting"]

_MESSAGE: Final = 200
"""Characters of the controller's message."""
_COMPUTING: Final = "the HPA was unable to compute the replica count: "
"""Before each of the controller's reasons why metrics give no size."""


class MetricState(NamedTuple):
    """One metric of an HPA."""

    name: str
    type: str
    """``Pods``, ``Object``, ``External``, ``Resource`` or ``ContainerResource``."""
    value: float | None
    """None if the status has none."""
    value_text: str
    goal: float | None
    goal_text: str

    @property
    def ratio(self) -> float | None:
        """The value against its target; None if one of them is missing."""
        return self.value / self.goal if self.value is not None and self.goal else None

    def json(self) -> Json:
        """The row of the page."""
        return {
            "name": self.name,
            "value": self.value,
            "valueText": self.value_text or None,
            "goal": self.goal,
            "goalText": self.goal_text or None,
            "type": self.type,
        }


@dataclass(frozen=True, slots=True)
class HpaSummary:
    """One HPA, as its status states it."""

    namespace: str
    name: str
    target: str
    """``Deployment/llm``."""
    low: int
    high: int
    current: int | None
    desired: int | None
    level: Level
    decision: Decision
    text: str
    """``keeps 3: gpu_utilization 54 of 60``."""
    metrics: tuple[MetricState, ...]
    since: float | None
    """Epoch seconds of the last change of the condition that decides."""

    @property
    def leading(self) -> MetricState | None:
        """The metric with the highest value against its target; else the first one."""
        found = [(metric.ratio, metric) for metric in self.metrics]
        known = [(ratio, metric) for ratio, metric in found if ratio is not None]
        if known:
            return max(known, key=lambda row: row[0])[1]
        return self.metrics[0] if self.metrics else None

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
            "decision": self.decision,
            "text": self.text,
            "metrics": [metric.json() for metric in self.metrics],
            "since": self.since,
        }


class _Judged(NamedTuple):
    decision: Decision
    level: Level
    text: str
    condition: str = ""
    """Type of the condition that decides; empty for the last scaling."""


def state_of(hpa: Json) -> HpaSummary:
    """Return what an ``autoscaling/v2`` HPA does now.

    Raises:
        ValueError: the object is not an HPA.
    """
    try:
        shown = reduce(msgspec.convert(hpa, HpaManifest))
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    metrics = tuple(_metric(metric) for metric in shown.metrics)
    judged = _judge(shown, metrics)
    target = hpa["spec"]["scaleTargetRef"]
    return HpaSummary(
        shown.namespace,
        shown.name,
        f"{target['kind']}/{target['name']}",
        shown.low,
        shown.high,
        shown.current,
        shown.desired,
        judged.level,
        judged.decision,
        judged.text,
        metrics,
        _since(hpa, judged.condition),
    )


def _judge(shown: ShownHpa, metrics: Sequence[MetricState]) -> _Judged:
    conditions = {row.type: row for row in shown.conditions}
    if not conditions:
        return _Judged("waiting", "warning", "waits for the first sync of the HPA controller")
    active = conditions.get("ScalingActive")
    if active is not None and active.reason == "ScalingDisabled":
        text = "disabled: the target has 0 replicas"
        return _Judged("disabled", "off", text, active.type)
    for row in (conditions.get("AbleToScale"), active):
        if row is not None and row.status != "True":
            return _Judged("stuck", "bad", f"stuck{_at(shown)}: {_why(row)}", row.type)
    return _moves(shown, conditions.get("ScalingLimited"), metrics)


def _moves(
    shown: ShownHpa, limited: ShownCondition | None, metrics: Sequence[MetricState]
) -> _Judged:
    reason, without = _reason(metrics), any(metric.value is None for metric in metrics)
    level: Level = "warning" if without else "good"
    current, desired = shown.current, shown.desired
    if current is not None and desired is not None and current != desired:
        decision: Decision = "scales out" if desired > current else "scales in"
        return _Judged(decision, level, f"{decision} {current} → {desired}{reason}")
    if limited is not None and limited.status == "True" and limited.reason == "TooManyReplicas":
        return _Judged("at maximum", "warning", f"at maximum {shown.high}{reason}", limited.type)
    size = "" if current is None else f" {current}"
    return _Judged("keeps", level, f"keeps{size}{reason}")


def _at(shown: ShownHpa) -> str:
    return "" if shown.current is None else f" at {shown.current}"


def _why(row: ShownCondition) -> str:
    message = row.message.removeprefix(_COMPUTING)
    return one_line(": ".join(part for part in (row.reason, message) if part), _MESSAGE)


def _reason(metrics: Sequence[MetricState]) -> str:
    """Return the metric that is highest against its target, and those without a value."""
    known = [(metric.ratio, metric) for metric in metrics]
    best = max(((r, m) for r, m in known if r is not None), key=lambda row: row[0], default=None)
    parts = [] if best is None else [f"{best[1].name} {best[1].value_text} of {best[1].goal_text}"]
    lost = [metric.name for metric in metrics if metric.value is None]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        parts.append(f"no value of {lost[0]}{more}")
    return f": {'; '.join(parts)}" if parts else ""


def _metric(shown: ShownMetric) -> MetricState:
    unit = "bytes" if shown.name == "memory" or shown.name.endswith("_bytes") else ""
    value, value_text = _amount(shown.current, unit)
    if value is not None and value >= 1 and not unit and not value_text.endswith("%"):
        value_text = decimal(value, 1)  # a mean over pods has three decimals
    goal, goal_text = _amount(shown.target, unit)
    return MetricState(shown.name, shown.type, value, value_text, goal, goal_text)


def _amount(text: str, unit: str) -> tuple[float | None, str]:
    """Return a quantity, or a percentage, as a number and as a text."""
    if text.endswith("%"):
        found = to_milli(text[:-1])
        return (None, "") if found is None else (found / 1000, text)
    found = to_milli(text) if text else None
    return (None, "") if found is None else (found / 1000, milli(found, unit))


def _since(hpa: Json, condition: str) -> float | None:
    status = hpa.get("status") or {}
    for row in status.get("conditions") or ():
        if condition and row.get("type") == condition:
            return instant.read(row.get("lastTransitionTime"))
    return instant.read(status.get("lastScaleTime"))
