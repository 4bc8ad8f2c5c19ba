"""The HPAs on GPU metrics: their value against the target, and their replicas."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import Panel, Query, Row

_HPA: Final = "{{namespace}}/{{horizontalpodautoscaler}}"
_NAMESPACES: Final = 'namespace=~"$namespace"'
_KEYS: Final = "namespace, horizontalpodautoscaler"
_TARGETED: Final = (
    f'group by ({_KEYS}) (kube_horizontalpodautoscaler_spec_target_metric{{metric_name=~"$metric", '
    f"{_NAMESPACES}}})"
)
"""HPAs on a metric of the adapter."""
_SELECTED: Final = (
    f"group by ({_KEYS}) (kube_horizontalpodautoscaler_info"
    f'{{scaletargetref_name=~"$workload", {_NAMESPACES}}})'
)


def chosen() -> str:
    """The chosen HPAs on a metric of the adapter."""
    return f"({_TARGETED} and on ({_KEYS}) {_SELECTED})"


def metric(series: str) -> str:
    """A series of kube-state-metrics, for the chosen HPAs."""
    return f"(max by ({_KEYS}) (kube_horizontalpodautoscaler_{series}) and on ({_KEYS}) {chosen()})"


def overloaded() -> str:
    """The chosen HPAs whose metric is above 110 % of its target, and that do not scale out."""
    return (
        f"(max by ({_KEYS}) ({_values('status_target_metric')} / on ({_KEYS}, metric_name) "
        f"{_values('spec_target_metric')}) > 1.1 "
        f"unless {metric('status_desired_replicas')} > {metric('status_current_replicas')})"
    )


def _values(series: str) -> str:
    return (
        f"(max by ({_KEYS}, metric_name) (kube_horizontalpodautoscaler_{series}"
        f'{{metric_name=~"$metric", {_NAMESPACES}}}) and on ({_KEYS}) {_SELECTED})'
    )


HPA: Final = Row(
    "HPAs: value against target, and replicas",
    (
        Panel(
            "Value against target",
            "The last value that the HPA used, divided by its target. Above 110 % it adds "
            "replicas, below 90 % it removes some.",
            "percentunit",
            (
                Query(
                    f"{_values('status_target_metric')} / on ({_KEYS}, metric_name) "
                    f"{_values('spec_target_metric')}",
                    f"{_HPA} {{{{metric_name}}}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Replicas",
            "Desired, current and maximum replicas. At the maximum the HPA cannot scale out "
            "further.",
            "none",
            (
                Query(metric("status_desired_replicas"), f"{_HPA} desired"),
                Query(metric("status_current_replicas"), f"{_HPA} current"),
                Query(metric("spec_max_replicas"), f"{_HPA} maximum"),
            ),
            low=0,
        ),
        Panel(
            "Metric and target",
            "The last value that the HPA used, and its target. Within 10 % of the target it keeps "
            "the replica count.",
            "none",
            (
                Query(_values("status_target_metric"), f"{_HPA} {{{{metric_name}}}}"),
                Query(_values("spec_target_metric"), f"{_HPA} {{{{metric_name}}}} target"),
            ),
            low=0,
        ),
        Panel(
            "HPAs that are stuck",
            "ScalingActive is false: the HPA has no value and keeps its replica count. "
            "AbleToScale is false: the workload cannot be scaled.",
            "none",
            (
                Query(
                    f"sum by (namespace, condition) (kube_horizontalpodautoscaler_status_condition"
                    f'{{condition=~"ScalingActive|AbleToScale", status="false", {_NAMESPACES}}} '
                    f"and on ({_KEYS}) {_TARGETED} and on ({_KEYS}) {_SELECTED})",
                    "{{namespace}} not {{condition}}",
                ),
            ),
            low=0,
        ),
    ),
)
