"""The requests of autoscalers, and the answers."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import Panel, Query, Row

REQUESTS: Final = Row(
    "Requests of HPAs and KEDA, and the answers",
    (
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
