"""Is the adapter healthy?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from charts.generate.dashboard.panel import (
    Board,
    Query,
    Row,
    buckets,
    graph,
    number,
    timeline,
)

_OURS: Final = "on (job, instance) group_left (component, version) gma_build_info"
_NAME: Final = "{{component}} {{instance}} {{version}}"


def adapter() -> Board:
    """Return the dashboard."""
    return Board(
        "gpu-metrics-adapter",
        "GPU metrics adapter",
        "Is the adapter healthy?",
        (_data_quality(), _left_out_samples(), _requests(), _processes()),
    )


def _data_quality() -> Row:
    return Row(
        "Data quality: are the values complete and fresh?",
        (
            number(
                "Pods with a value",
                "Share of the ready pods whose spec requests a GPU. Below 100 % some HPA scales "
                "less than it should.",
                "min(gma_gpu_pods_measured / (gma_gpu_pods > 0))",
                red_below=0.95,
                unit="percentunit",
            ),
            number(
                "Source",
                "Whether every replica receives fresh data.",
                "min by (kind) (gma_source_up)",
                "{{kind}}",
                words=("down", "up"),
                red_below=1,
            ),
            number(
                "Oldest page",
                "Age of the oldest page in memory. Values older than the age limit are not served.",
                "max(gma_exporter_age_max_seconds)",
                red_from=65,
                unit="s",
            ),
            number(
                "Stale exporters",
                "Exporters whose data is in memory but too old to be served.",
                "max(gma_exporters_stale)",
                red_from=1,
            ),
            number(
                "Configuration",
                "Whether the current configuration file is active.",
                "min(gma_config_ok)",
                words=("rejected", "active"),
                red_below=1,
            ),
            number(
                "Certificate",
                "Remaining validity of the certificate that expires first: the adapter's, the "
                "API server's or a CA.",
                "min(gma_certificate_expiry_timestamp_seconds) - time()",
                red_below=604800,
                unit="s",
            ),
            timeline(
                "Source of each replica",
                "Down: no fresh data of the exporters or of the store.",
                [("down", "red"), ("up", "green")],
                Query("min by (instance, kind) (gma_source_up)", "{{instance}} {{kind}}"),
            ),
            graph(
                "Age of data in memory",
                "Age of the newest and of the oldest page, over all replicas.",
                Query("min(gma_exporter_age_min_seconds)", "newest"),
                Query("max(gma_exporter_age_max_seconds)", "oldest"),
                unit="s",
            ),
            graph(
                "Exporters",
                "Exporters to scrape, failing, in memory and stale. With a store as the source, "
                "only the last two.",
                Query("max(gma_scrape_targets)", "to scrape"),
                Query("max(gma_scrape_targets_failing)", "failing"),
                Query("max(gma_exporters)", "in memory"),
                Query("max(gma_exporters_stale)", "stale"),
            ),
            graph(
                "Failures of the source, by reason",
                "Failed scrapes, or failed queries to the store.",
                Query(
                    "topk(8, sum by (reason) (rate(gma_scrape_failures_total[$__rate_interval]) "
                    "or rate(gma_query_failures_total[$__rate_interval])))",
                    "{{reason}}",
                ),
                unit="cps",
            ),
            buckets(
                "Duration of scrapes or queries",
                "How many took as long. Above the time-out they fail.",
                "s",
                "sum by (le) (rate(gma_scrape_duration_seconds_bucket[$__rate_interval]) "
                "or rate(gma_query_duration_seconds_bucket[$__rate_interval]))",
            ),
            graph(
                "Age of watches",
                "Time since the watches of pods, Services and nodes last delivered an event. "
                "Each watch is renewed every minute.",
                Query("max by (collection) (gma_watch_age_seconds)", "{{collection}}"),
                unit="s",
            ),
        ),
    )


def _left_out_samples() -> Row:
    return Row(
        "Samples and devices: what has no value of its own?",
        (
            graph(
                "Samples left out, by reason",
                "A steady rate is normal: idle devices, the exporters' own pods. A change is not.",
                Query(
                    "topk(8, sum by (reason) (rate(gma_rejects_total[$__rate_interval])))",
                    "{{reason}}",
                ),
                unit="cps",
            ),
            graph(
                "Devices by attribution",
                "exact: the value of the pod alone. copied: the whole device's value, for each "
                "pod that shares it. split: divided among them. left_out: no pod gets it.",
                Query("max by (attribution) (gma_attributed_devices)", "{{attribution}}"),
                stacked=True,
            ),
            graph(
                "Nodes with shared devices, by evidence",
                "Time-slicing, MPS and HAMi, as far as labels, specs and samples show it.",
                Query("max by (evidence) (gma_sharing_nodes)", "{{evidence}}"),
                stacked=True,
            ),
        ),
    )


def _quantiles() -> Iterator[Query]:
    series = 'gma_http_request_duration_seconds_bucket{route=~"custom|external"}[$__rate_interval]'
    for share, text in ((0.5, "50 %"), (0.99, "99 %")):
        expr = f"histogram_quantile({share}, sum by (route, le) (rate({series})))"
        yield Query(expr, f"{{{{route}}}} {text}")


def _requests() -> Row:
    return Row(
        "Requests of HPAs and KEDA, and the answers",
        (
            graph(
                "Requests, by route and status",
                "404: unknown metric, or no value for that object. 403: the client lacks the "
                "permission. 500 and 503: an error of the adapter or of its access to the "
                "cluster.",
                Query(
                    "sum by (route, code) (rate(gma_http_requests_total[$__rate_interval]))",
                    "{{route}} {{code}}",
                ),
                unit="reqps",
            ),
            graph(
                "Duration of requests for metrics",
                "50th and 99th percentile.",
                *_quantiles(),
                unit="s",
            ),
            graph(
                "Authorization checks",
                "Answered from the cache, or by a review of the API server. Errors result in 500.",
                Query(
                    "sum by (cache, result) (rate(gma_auth_cache_lookups_total[$__rate_interval]))",
                    "{{cache}} {{result}}",
                ),
                Query(
                    'sum by (kind) (rate(gma_reviews_total{outcome="error"}[$__rate_interval]))',
                    "failed {{kind}} reviews",
                ),
                unit="reqps",
            ),
            graph(
                "KEDA calls, by status",
                "INVALID_ARGUMENT: a mistake in a trigger. FAILED_PRECONDITION: a value is "
                "missing, and the fallback applies.",
                Query("sum by (code) (rate(gma_keda_calls_total[$__rate_interval]))", "{{code}}"),
                unit="reqps",
            ).span(12),
            graph(
                "KEDA streams",
                "Connected external-push triggers.",
                Query("sum by (method) (gma_keda_streams)", "{{method}}"),
            ).span(12),
        ),
    )


def _processes() -> Row:
    return Row(
        "The adapter's processes",
        (
            graph(
                "Memory",
                "Resident memory. The chart's limit is 512 MiB.",
                Query(f"process_resident_memory_bytes * {_OURS}", _NAME),
                unit="bytes",
            ),
            graph(
                "CPU",
                "Cores in use.",
                Query(f"rate(process_cpu_seconds_total[$__rate_interval]) * {_OURS}", _NAME),
            ),
            graph(
                "Data in memory",
                "Pods of the cluster, devices of exporters, and pods that samples name.",
                Query("max(gma_pods)", "pods of the cluster"),
                Query("max(gma_snapshot_devices)", "devices"),
                Query("max(gma_snapshot_pods)", "pods named in samples"),
            ),
        ),
        collapsed=True,
    )
