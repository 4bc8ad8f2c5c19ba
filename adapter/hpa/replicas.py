"""The number of replicas that one metric proposes: ``replica_calculator.go``.

Go's integer division truncates, and its int64 sums wrap. Where that has an effect (negative values,
overflow), a comment says what this module does instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

from adapter.hpa.conditions import selector_text
from adapter.hpa.observation import Missing, Observation, ResourceUsage, Rule, Values, Working
from adapter.hpa.podreplicas import (
    MAX_INT64,
    NO_PODS,
    InvalidMetricError,
    MetricRules,
    Proposed,
    Tolerances,
    ceil32,
    group,
    plain_replicas,
)
from adapter.hpa.resources import resource_replicas
from adapter.hpa.spec import MetricKind, MetricSpec, TargetKind


def propose_by(
    metric: MetricSpec, values: Values, observation: Observation, namespace: str, rules: MetricRules
) -> Proposed:
    """Return the replicas that a metric proposes, its usage, and how they came about.

    Raises:
        InvalidMetricError: no value, or no pods to relate it to.
    """
    tolerances = rules.tolerances
    if metric.kind.of_resources:
        return resource_replicas(metric, values, observation, rules)
    if metric.kind is MetricKind.PODS:
        return _pods(metric, values, observation, tolerances)
    if metric.kind is MetricKind.OBJECT:
        usage = _object_value(metric, values, namespace)
    else:
        usage = _external_sum(metric, values, namespace)
    if metric.target.kind is TargetKind.VALUE:
        ratio = float(usage) / float(metric.target.milli)
        return _by_ready_pods(ratio, usage, observation, tolerances)
    return _by_share(usage, metric.target.milli, observation, tolerances)


def _pods(
    metric: MetricSpec, values: Values, observation: Observation, tolerances: Tolerances
) -> Proposed:
    """GetMetricReplicas: values of pods that the selector does not match count too."""
    if isinstance(values, (Missing, ResourceUsage)) or not isinstance(values, Mapping):
        raise InvalidMetricError(f"unable to get metric {metric.name}: {_why('custom', values)}")
    if not values:
        raise InvalidMetricError(f"unable to get metric {metric.name}: {_why('custom', values)}")
    if not observation.pods:
        raise InvalidMetricError(NO_PODS)
    return plain_replicas(
        values,
        group(observation.pods, values),
        metric.target.milli,
        observation.replicas,
        tolerances,
    )


def _by_ready_pods(
    ratio: float, usage: int, observation: Observation, tolerances: Tolerances
) -> Proposed:
    """getUsageRatioReplicaCount: pods being deleted count while they are ready."""
    if observation.replicas == 0:
        return Proposed(ceil32(ratio), usage, Working(Rule.FROM_ZERO, ratio, total=usage), ratio)
    if tolerances.within(ratio):
        working = Working(Rule.TOLERANCE, ratio, total=usage)
        return Proposed(observation.replicas, usage, working, ratio * float(observation.replicas))
    if not observation.pods:
        raise InvalidMetricError(f"unable to calculate ready pods: {NO_PODS}")
    ready = sum(pod.phase == "Running" and pod.ready for pod in observation.pods)
    working = Working(Rule.READY, ratio, total=usage, count=ready)
    return Proposed(ceil32(ratio * float(ready)), usage, working, ratio * float(ready))


def _by_share(
    usage: int, target: int, observation: Observation, tolerances: Tolerances
) -> Proposed:
    """Get{Object,External}PerPodMetricReplicas: pods do not matter, ``status.replicas`` does."""
    replicas = (
        observation.replicas if observation.status_replicas is None else observation.status_replicas
    )
    exact = float(usage) / float(target)
    if replicas == 0:
        # Go divides by zero here: the ratio is NaN or infinite, never within tolerance.
        share = Working(Rule.SHARE, math.inf, total=usage)
        return Proposed(ceil32(exact), None, share, exact)
    average = math.ceil(float(usage) / float(replicas)) if usage < MAX_INT64 else MAX_INT64
    ratio = float(usage) / (float(target) * float(replicas))
    if tolerances.within(ratio):
        working = Working(Rule.TOLERANCE, ratio, total=usage, count=replicas)
        return Proposed(replicas, average, working, exact)
    working = Working(Rule.SHARE, ratio, total=usage, count=replicas)
    return Proposed(ceil32(exact), average, working, exact)


def _object_value(metric: MetricSpec, values: Values, namespace: str) -> int:
    if isinstance(values, int):
        return values
    described = metric.described
    about = f" on {described.kind} {namespace}/{described.name}" if described else ""
    raise InvalidMetricError(f"unable to get metric {metric.name}{about}: {_why('custom', values)}")


def _external_sum(metric: MetricSpec, values: Values, namespace: str) -> int:
    if isinstance(values, (Missing, Mapping, ResourceUsage, int)) or not values:
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
    if isinstance(values, Missing) and values.answered:
        return values.message
    if isinstance(values, Missing):
        return f"unable to fetch metrics from {api} metrics API: {values.message}"
    return f"no metrics returned from {api} metrics API"
