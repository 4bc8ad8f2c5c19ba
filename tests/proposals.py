"""The replicas that an HPA's metric proposes, outside of a sync."""

from __future__ import annotations

from adapter.hpa import ControllerOptions, Observation
from adapter.hpa.observation import Values
from adapter.hpa.podreplicas import MetricRules, Proposed, Tolerances
from adapter.hpa.replicas import propose_by
from adapter.hpa.spec import MetricSpec


def propose(metric: MetricSpec, values: Values, seen: Observation, namespace: str) -> Proposed:
    """With the controller's default tolerance; raises InvalidMetricError."""
    options = ControllerOptions()
    rules = MetricRules(Tolerances.of(None, options.tolerance), options, 0.0)
    return propose_by(metric, values, seen, namespace, rules)
