"""The requests of autoscalers, the answers, and the resulting replicas."""

from __future__ import annotations

from typing import Final

from docs.dashboard.panel import Panel, Query, Row

_HPA: Final = "{{namespace}}/{{horizontalpodautoscaler}}"
_NAMESPACES: Final = 'namespace=~"$namespace"'
_KEYS: Final = "namespace, horizontalpodautoscaler"
_TARGETED: Final = (
    f'group by ({_KEYS}) (kube_horizontalpodautoscaler_spec_target_metric{{metric_name=~"$metric", '
    f"{_NAMESPACES}}})"
)
"""HPAs on a metric of the adapter."""
_CHOSEN: Final = (
    f"group by ({_KEYS}) (kube_horizontalpodautoscaler_info"
    f'{{scaletargetref_name=~"$workload", {_NAMESPACES}}})'
)


def _of(series: str) -> str:
    """A series of kube-state-metrics, for the chosen HPAs."""
    return (
        f"max by ({_KEYS}) (kube_horizontalpodautoscaler_{series}) "
        f"and on ({_KEYS}) {_TARGETED} and on ({_KEYS}) {_CHOSEN}"
    )


def _metric(series: str) -> str:
    return (
        f"max by ({_KEYS}, metric_name) (kube_horizontalpodautoscaler_{series}"
        f'{{metric_name=~"$metric", {_NAMESPACES}}}) and on ({_KEYS}) {_CHOSEN}'
    )


HPA: Final = Row(
    "HPA view: requests and replicas of autoscalers",
    (
        Panel(
            "Replicas",
            "Desired, current and maximum replicas. At the maximum the HPA cannot scale out "
            "further.",
            "none",
            (
                Query(_of("status_desired_replicas"), f"{_HPA} desired"),
                Query(_of("status_current_replicas"), f"{_HPA} current"),
                Query(_of("spec_max_replicas"), f"{_HPA} maximum"),
            ),
            low=0,
        ),
        Panel(
            "Metric and target",
            "The last value that the HPA used, and its target. Within 10 % of the target it keeps "
            "the replica count.",
            "none",
            (
                Query(_metric("status_target_metric"), f"{_HPA} {{{{metric_name}}}}"),
                Query(_metric("spec_target_metric"), f"{_HPA} {{{{metric_name}}}} target"),
            ),
            low=0,
        ),
        Panel(
            "HPAs that cannot act",
            "ScalingActive is false: the HPA has no value and keeps its replica count. "
            "AbleToScale is false: the workload cannot be scaled.",
            "none",
            (
                Query(
                    f"sum by (namespace, condition) (kube_horizontalpodautoscaler_status_condition"
                    f'{{condition=~"ScalingActive|AbleToScale", status="false", {_NAMESPACES}}} '
                    f"and on ({_KEYS}) {_TARGETED} and on ({_KEYS}) {_CHOSEN})",
                    "{{namespace}} not {{condition}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Requests, by route and status",
            "404: unknown metric, or no value for that object. 403: the client lacks the "
            "permission. 500 and 503: an error of the adapter or of its access to the cluster.",
            "reqps",
            (
                Query(
                    "sum by (route, code) (rate(gma_http_requests_total[$__rate_interval]))",
                    "{{route}} {{code}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Duration of requests for metrics",
            "50th and 99th percentile.",
            "s",
            tuple(
                Query(
                    f"histogram_quantile({share}, sum by (route, le) "
                    "(rate(gma_http_request_duration_seconds_bucket"
                    '{route=~"custom|external"}[$__rate_interval])))',
                    f"{{{{route}}}} {text}",
                )
                for share, text in ((0.5, "50 %"), (0.99, "99 %"))
            ),
            low=0,
        ),
        Panel(
            "Pods left out of answers, by reason",
            "An HPA counts these pods as idle when it scales out and as busy when it scales in. "
            "pod_not_ready is normal while models load.",
            "cps",
            (
                Query(
                    "topk(8, sum by (reason) (rate(gma_absent_total[$__rate_interval])))",
                    "{{reason}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "KEDA calls, by status",
            "INVALID_ARGUMENT: a mistake in a trigger. FAILED_PRECONDITION: a value is missing, "
            "and the fallback applies.",
            "reqps",
            (
                Query(
                    "sum by (code) (rate(gma_keda_calls_total[$__rate_interval]))",
                    "{{code}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "KEDA streams",
            "Connected external-push triggers.",
            "none",
            (Query("sum by (method) (gma_keda_streams)", "{{method}}"),),
            low=0,
        ),
        Panel(
            "Authorization checks",
            "Answered from the cache, or by a review of the API server. Errors result in 500.",
            "reqps",
            (
                Query(
                    "sum by (cache, result) (rate(gma_auth_cache_lookups_total[$__rate_interval]))",
                    "{{cache}} {{result}}",
                ),
                Query(
                    'sum by (kind) (rate(gma_reviews_total{outcome="error"}[$__rate_interval]))',
                    "failed {{kind}} reviews",
                ),
            ),
            low=0,
        ),
    ),
)
