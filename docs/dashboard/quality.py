"""Whether what HPAs are told is whole and fresh."""

from __future__ import annotations

from typing import Final

from docs.dashboard.panel import Panel, Query, Row, stat

QUALITY: Final = Row(
    "Data quality: is everything measured, and fresh?",
    (
        stat(
            "Pods with a value",
            "Of the ready pods whose spec asks for a GPU. Below 100 % some HPA moves less than "
            "it should.",
            "percentunit",
            "min(gma_gpu_pods_measured / (gma_gpu_pods > 0))",
            "measured",
            low=0,
            high=1,
            bad_below=0.95,
        ),
        stat(
            "Source",
            "Whether every replica gets fresh data.",
            "none",
            "min by (kind) (gma_source_up)",
            "{{kind}}",
            words=("down", "up"),
            bad_below=1,
        ),
        stat(
            "Oldest page",
            "Of the exporters whose rows are held; values older than the age limit are not served.",
            "s",
            "max(gma_exporter_age_max_seconds)",
            "oldest",
            warn=65,
        ),
        stat(
            "Silent exporters",
            "Held, but too old to be served.",
            "none",
            "max(gma_exporters_stale)",
            "silent",
            warn=1,
        ),
        stat(
            "Configuration",
            "Whether the file as it is now is in force.",
            "none",
            "min(gma_config_ok)",
            "configuration",
            words=("refused", "in force"),
            bad_below=1,
        ),
        stat(
            "Certificate",
            "How long the serving certificate is still valid.",
            "s",
            "min(gma_serving_certificate_expiry_timestamp_seconds) - time()",
            "valid for",
            bad_below=604800,
        ),
        Panel(
            "Pods without a value, by reason",
            "no_rows: no exporter speaks of the pod. no_value: of its device, but not this "
            "field. stale: too old. The troubleshooting guide has every reason.",
            "none",
            (Query("topk(8, max by (reason) (gma_gpu_pods_unmeasured))", "{{reason}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Rows left out, by reason",
            "A steady rate is usual: idle devices, exporters' own rows. A change is not.",
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
            "Age of what is held",
            "The youngest and the oldest page, of every replica.",
            "s",
            (
                Query("min(gma_exporter_age_min_seconds)", "youngest"),
                Query("max(gma_exporter_age_max_seconds)", "oldest"),
            ),
            low=0,
        ),
        Panel(
            "Exporters",
            "To be scraped, failing, held and silent. With a store as the source: held and "
            "silent alone.",
            "none",
            (
                Query("max(gma_scrape_targets)", "to be scraped"),
                Query("max(gma_scrape_targets_failing)", "failing"),
                Query("max(gma_exporters)", "held"),
                Query("max(gma_exporters_stale)", "silent"),
            ),
            low=0,
        ),
        Panel(
            "Failures of the source, by reason",
            "Of scrapes, or of queries to the store.",
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
            "99 of 100 take no longer; above the time-out they fail.",
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
            "exact: the pod's own number. copied: the whole device's, for each of those who "
            "share it. split: divided among them. left_out: nobody's to be given.",
            "none",
            (Query("max by (attribution) (gma_attributed_devices)", "{{attribution}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Nodes that share devices, by what tells it",
            "Time-slicing, MPS and HAMi, as far as labels, specs and rows show it.",
            "none",
            (Query("max by (evidence) (gma_sharing_nodes)", "{{evidence}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Cluster last heard from",
            "Since the watch of pods, Services and nodes brought anything; it is renewed every "
            "minute.",
            "s",
            (Query("max by (collection) (gma_watch_age_seconds)", "{{collection}}"),),
            low=0,
        ),
    ),
)
