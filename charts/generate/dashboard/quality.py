"""Whether the values that HPAs get are complete and fresh."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import Panel, Query, Row, stat

QUALITY: Final = Row(
    "Data quality: completeness and age of values",
    (
        stat(
            "Pods with a value",
            "Share of the ready pods whose spec requests a GPU. Below 100 % some HPA scales less "
            "than it should.",
            "percentunit",
            "min(gma_gpu_pods_measured / (gma_gpu_pods > 0))",
            "measured",
            low=0,
            high=1,
            bad_below=0.95,
        ),
        stat(
            "Source",
            "Whether every replica receives fresh data.",
            "none",
            "min by (kind) (gma_source_up)",
            "{{kind}}",
            words=("down", "up"),
            bad_below=1,
        ),
        stat(
            "Oldest page",
            "Age of the oldest page in memory. Values older than the age limit are not served.",
            "s",
            "max(gma_exporter_age_max_seconds)",
            "oldest",
            warn=65,
        ),
        stat(
            "Stale exporters",
            "Exporters whose data is in memory but too old to be served.",
            "none",
            "max(gma_exporters_stale)",
            "stale",
            warn=1,
        ),
        stat(
            "Configuration",
            "Whether the current configuration file is active.",
            "none",
            "min(gma_config_ok)",
            "configuration",
            words=("rejected", "active"),
            bad_below=1,
        ),
        stat(
            "Certificate",
            "Remaining validity of the certificate that expires first: the adapter's, the API "
            "server's or a CA.",
            "s",
            "min(gma_certificate_expiry_timestamp_seconds) - time()",
            "valid for",
            bad_below=604800,
        ),
        Panel(
            "Pods without a value, by reason",
            "The page docs/reasons.md explains every reason, with its fix.",
            "none",
            (Query("topk(8, max by (reason) (gma_gpu_pods_unmeasured))", "{{reason}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Samples left out, by reason",
            "A steady rate is normal: idle devices, the exporters' own pods. A change is not.",
            "cps",
            (
                Query(
                    "topk(8, sum by (reason) (rate(gma_rejects_total[$__rate_interval])))",
                    "{{reason}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Age of data in memory",
            "Age of the newest and of the oldest page, over all replicas.",
            "s",
            (
                Query("min(gma_exporter_age_min_seconds)", "newest"),
                Query("max(gma_exporter_age_max_seconds)", "oldest"),
            ),
            low=0,
        ),
        Panel(
            "Exporters",
            "Exporters to scrape, failing, in memory and stale. With a store as the source, only "
            "the last two.",
            "none",
            (
                Query("max(gma_scrape_targets)", "to scrape"),
                Query("max(gma_scrape_targets_failing)", "failing"),
                Query("max(gma_exporters)", "in memory"),
                Query("max(gma_exporters_stale)", "stale"),
            ),
            low=0,
        ),
        Panel(
            "Failures of the source, by reason",
            "Failed scrapes, or failed queries to the store.",
            "cps",
            (
                Query(
                    "topk(8, sum by (reason) (rate(gma_scrape_failures_total[$__rate_interval]) "
                    "or rate(gma_query_failures_total[$__rate_interval])))",
                    "{{reason}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Duration of scrapes or queries",
            "99th percentile. Above the time-out they fail.",
            "s",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le) "
                    "(rate(gma_scrape_duration_seconds_bucket[$__rate_interval]) "
                    "or rate(gma_query_duration_seconds_bucket[$__rate_interval])))",
                    "99 %",
                ),
            ),
            low=0,
        ),
        Panel(
            "Devices by attribution",
            "exact: the value of the pod alone. copied: the whole device's value, for each pod "
            "that shares it. split: divided among them. left_out: no pod gets it.",
            "none",
            (Query("max by (attribution) (gma_attributed_devices)", "{{attribution}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Nodes with shared devices, by evidence",
            "Time-slicing, MPS and HAMi, as far as labels, specs and samples show it.",
            "none",
            (Query("max by (evidence) (gma_sharing_nodes)", "{{evidence}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Age of watches",
            "Time since the watches of pods, Services and nodes last delivered an event. Each "
            "watch is renewed every minute.",
            "s",
            (Query("max by (collection) (gma_watch_age_seconds)", "{{collection}}"),),
            low=0,
        ),
    ),
)
