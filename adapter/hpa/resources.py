"""The number of replicas that the usage of a resource proposes: ``GetResourceReplicas`` and
``GetRawResourceReplicas`` of ``replica_calculator.go``."""

from __future__ import annotations

from collections.abc import Mapping

from adapter.hpa.observation import Missing, Observation, ResourceUsage, Values
from adapter.hpa.podreplicas import (
    NO_METRICS,
    NO_PODS,
    Groups,
    InvalidMetricError,
    MetricRules,
    Proposed,
    Tolerances,
    by_pods,
    group,
    plain_replicas,
    starting_pods,
)
from adapter.hpa.spec import MetricSpec, TargetKind


def resource_replicas(
    metric: MetricSpec, values: Values, observation: Observation, rules: MetricRules
) -> Proposed:
    """GetResourceReplicas and GetRawResourceReplicas."""
    utilization = metric.target.kind is TargetKind.UTILIZATION
    about = f"failed to get {metric.name} {'utilization' if utilization else 'usage'}: "
    try:
        if isinstance(values, Missing) or not isinstance(values, ResourceUsage):
            raise InvalidMetricError(
                f"unable to get metrics for resource {metric.name}: {_why(values)}"
            )
        if not observation.pods:
            raise InvalidMetricError(NO_PODS)
        still = (
            starting_pods(observation.pods, values.samples, rules)
            if metric.name == "cpu"
            else frozenset()
        )
        used = {name: sample.milli for name, sample in values.samples.items()}
        groups = group(observation.pods, used, still)
        target, tolerances = metric.target.milli, rules.tolerances
        if not utilization:
            return plain_replicas(used, groups, target, observation.replicas, tolerances)
        return _by_requests(used, groups, values, target // 1000, observation.replicas, tolerances)
    except InvalidMetricError as error:
        raise InvalidMetricError(f"{about}{error}") from None


def _by_requests(
    values: Mapping[str, int],
    groups: Groups,
    usage: ResourceUsage,
    percent: int,
    replicas: int,
    tolerances: Tolerances,
) -> Proposed:
    """GetResourceReplicas: percent of what the pods request, truncated to a whole percent."""
    if not any(name not in groups.left_out for name in values):
        raise InvalidMetricError(NO_METRICS)
    if usage.problem:
        raise InvalidMetricError(usage.problem)
    requests = usage.requests

    def measure(used: Mapping[str, int]) -> tuple[float, int]:
        total = sum(milli for name, milli in used.items() if name in requests)
        requested = sum(requests[name] for name in used if name in requests)
        if requested == 0:
            raise InvalidMetricError("no metrics returned matched known pods")
        share = total * 100 // requested
        return float(share) / float(percent), share * 1000

    fallback = {name: requests.get(name, 0) * max(100, percent) // 100 for name in groups.missing}
    return by_pods(values, groups, measure, fallback, replicas, tolerances)


def _why(values: Values) -> str:
    if isinstance(values, Missing) and values.answered:
        return values.message
    if isinstance(values, Missing):
        return f"unable to fetch metrics from resource metrics API: {values.message}"
    return "no metrics returned from resource metrics API"
