"""The number of replicas that one metric proposes: ``replica_calculator.go``.

Go's integer division truncates, and its int64 sums wrap. Where that has an effect (negative values,
overflow), a comment says what this module does instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from adapter.hpa.conditions import selector_text
from adapter.hpa.observation import Missing, Observation, PodState, Values
from adapter.hpa.spec import Behavior, MetricKind, MetricSpec, TargetKind

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


class Tolerances(NamedTuple):
    """How far the ratio of value to target may differ from 1 without a change."""

    down: float
    up: float

    @classmethod
    def of(cls, behavior: Behavior | None, default: float) -> Tolerances:
        """Per-behavior tolerance: gate HPAConfigurableTolerance, on since 1.35."""
        if behavior is None:
            return cls(default, default)
        down, up = behavior.scale_down.tolerance, behavior.scale_up.tolerance
        return cls(default if down is None else down, default if up is None else up)

    def within(self, ratio: float) -> bool:
        """Return whether the ratio is within tolerance, so that nothing changes."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


class InvalidMetricError(Exception):
    """The metric cannot be used at this sync; the text gives the cause."""


def propose(
    metric: MetricSpec, values: Values, seen: Observation, namespace: str, tolerances: Tolerances
) -> tuple[int, int | None]:
    """Return the replicas that a metric proposes, and its current usage in thousandths.

    Raises:
        InvalidMetricError: no value, or no pods to relate it to.
    """
    if metric.kind is MetricKind.PODS:
        return _pods(metric, values, seen, tolerances)
    if metric.kind is MetricKind.OBJECT:
        usage = _object_value(metric, values, namespace)
    else:
        usage = _external_sum(metric, values, namespace)
    if metric.target.kind is TargetKind.VALUE:
        ratio = float(usage) / float(metric.target.milli)
        return _by_ready_pods(ratio, seen, tolerances), usage
    return _by_share(usage, metric.target.milli, seen, tolerances)


def _pods(
    metric: MetricSpec, values: Values, seen: Observation, tolerances: Tolerances
) -> tuple[int, int]:
    """calcPlainMetricReplicas: values of pods that the selector does not match count too."""
    if isinstance(values, Missing) or not isinstance(values, Mapping) or not values:
        raise InvalidMetricError(f"unable to get metric {metric.name}: {_why('custom', values)}")
    if not seen.pods:
        raise InvalidMetricError("no pods returned by selector while calculating replica count")
    groups = _group(seen.pods, values)
    used = {name: v for name, v in values.items() if name not in groups.left_out}
    if not used:
        raise InvalidMetricError(
            "did not receive metrics for targeted pods (pods might be unready)"
        )
    target = metric.target.milli
    ratio, usage = _ratio(used, target)
    fill_unready = bool(groups.unready) and ratio > 1.0
    if not fill_unready and not groups.missing:
        if tolerances.within(ratio):
            return seen.replicas, usage
        return _ceil32(ratio * float(groups.counted)), usage

    if ratio < 1.0:
        used |= dict.fromkeys(groups.missing, target)
    elif ratio > 1.0:
        used |= dict.fromkeys(groups.missing, 0)
    if fill_unready:
        used |= dict.fromkeys(groups.unready, 0)
    cautious, _ = _ratio(used, target)
    turned = (ratio < 1.0 < cautious) or (cautious < 1.0 < ratio)
    if tolerances.within(cautious) or turned:
        return seen.replicas, usage
    proposed = _ceil32(cautious * float(len(used)))
    wrong_way = (cautious < 1.0 and proposed > seen.replicas) or (
        cautious > 1.0 and proposed < seen.replicas
    )
    return (seen.replicas if wrong_way else proposed), usage


class _Groups(NamedTuple):
    counted: int
    unready: frozenset[str]
    missing: frozenset[str]
    left_out: frozenset[str]


def _group(pods: Sequence[PodState], values: Mapping[str, int]) -> _Groups:
    """groupPods for metrics other than CPU: Pending is unready, Succeeded is not special."""
    alive = [pod for pod in pods if not pod.deleting and pod.phase != "Failed"]
    unready = frozenset(pod.name for pod in alive if pod.phase == "Pending")
    running = [pod.name for pod in alive if pod.name not in unready]
    missing = frozenset(name for name in running if name not in values)
    ignored = frozenset(pod.name for pod in pods if pod.deleting or pod.phase == "Failed")
    return _Groups(len(running) - len(missing), unready, missing, ignored | unready)


def _ratio(values: Mapping[str, int], target: int) -> tuple[float, int]:
    """GetMetricUsageRatio: the mean is truncated to a thousandth before it is compared."""
    total = sum(values.values())
    usage = abs(total) // len(values) * (1 if total >= 0 else -1)
    return float(usage) / float(target), usage


def _by_ready_pods(ratio: float, seen: Observation, tolerances: Tolerances) -> int:
    """getUsageRatioReplicaCount: pods being deleted count while they are ready."""
    if seen.replicas == 0:
        return _ceil32(ratio)
    if tolerances.within(ratio):
        return seen.replicas
    if not seen.pods:
        raise InvalidMetricError(
            "unable to calculate ready pods: "
            "no pods returned by selector while calculating replica count"
        )
    ready = sum(pod.phase == "Running" and pod.ready for pod in seen.pods)
    return _ceil32(ratio * float(ready))


def _by_share(
    usage: int, target: int, seen: Observation, tolerances: Tolerances
) -> tuple[int, int | None]:
    """Get{Object,External}PerPodMetricReplicas: pods do not matter, ``status.replicas`` does."""
    replicas = seen.replicas if seen.status_replicas is None else seen.status_replicas
    if replicas == 0:
        # Go divides by zero here: the ratio is NaN or infinite, never within tolerance.
        return _ceil32(float(usage) / float(target)), None
    average = math.ceil(float(usage) / float(replicas)) if usage < MAX_INT64 else MAX_INT64
    if tolerances.within(float(usage) / (float(target) * float(replicas))):
        return replicas, average
    return _ceil32(float(usage) / float(target)), average


def _object_value(metric: MetricSpec, values: Values, namespace: str) -> int:
    if isinstance(values, int):
        return values
    described = metric.described
    # The controller passes the parts to its format string in the wrong order; so does this.
    about = f"{described.kind} on {namespace} {described.name}/" if described else ""
    raise InvalidMetricError(f"unable to get metric {metric.name}: {about}{_why('custom', values)}")


def _external_sum(metric: MetricSpec, values: Values, namespace: str) -> int:
    if isinstance(values, (Missing, Mapping, int)) or not values:
        selector = selector_text(metric)
        raise InvalidMetricError(
            f"unable to get external metric {namespace}/{metric.name}/{selector}: "
            f"{_why('external', values)}"
        )
    if metric.target.kind is TargetKind.AVERAGE_VALUE and min(accumulate(values)) < 0:
        # The controller treats an intermediate negative sum as an overflow.
        return MAX_INT64
    return min(sum(values), MAX_INT64)


def _why(api: str, values: Values) -> str:
    if isinstance(values, Missing):
        return f"unable to fetch metrics from {api} metrics API: {values.message}"
    return f"no metrics returned from {api} metrics API"


def _ceil32(replicas: float) -> int:
    """Round up and saturate; Go's own conversion is undefined beyond 32 bits."""
    return max(-MAX_INT32, min(math.ceil(replicas), MAX_INT32))
