"""The controller's own metrics, as they are declared."""

from __future__ import annotations

from typing import Final

from adapter.nodepool.reason import CODES
from adapter.nodepool.serverside import RESOURCES, Failure
from apiservice.families import OTHER, counter, gauge

__all__ = ["FAMILIES", "KINDS", "MOST", "OTHER"]

MOST: Final = 500
"""Series of a kind that has a label for each workload, pool or namespace; further ones are
left out, and orders among them counted."""
KINDS: Final = (*sorted(RESOURCES), "Event")
"""Of objects that are written."""
_ORDER: Final = ("namespace", "workload", "pool")

BUILD: Final = gauge(
    "gma_build_info", "1, with the version of this process.", "version", "component"
)
LEADING: Final = gauge("gma_nodepool_leading", "1 while this replica plans.")
APPLY: Final = gauge("gma_nodepool_apply", "0 in a dry run.")
FROZEN: Final = gauge(
    "gma_nodepool_frozen", "1 while nothing is planned because the cluster cannot be seen."
)
ROUNDS: Final = counter("gma_nodepool_rounds_total", "Plans made.")
BROKEN: Final = counter(
    "gma_nodepool_rounds_broken_total", "Rounds that an error in the controller itself ended."
)
BACKGROUND: Final = counter(
    "gma_background_failures_total",
    "Failures of background tasks that nobody expected; the task runs again.",
    "task",
    known=("controller", "configuration", "discovery"),
)
ROUND_SECONDS: Final = gauge("gma_nodepool_round_seconds", "What the last round took.")
PLANNED: Final = gauge(
    "gma_nodepool_last_plan_timestamp_seconds",
    "When the last plan was made; absent before the first.",
)
METHOD: Final = gauge(
    "gma_nodepool_provisioning_method",
    "1 for the method that nodepool uses to ask for nodes.",
    "method",
    known=("CapacityBuffer", "Placeholder"),
)
HISTORY: Final = gauge(
    "gma_nodepool_history_ok", "0 while what was learned is neither read nor stored."
)
HEADROOM: Final = gauge("gma_nodepool_headroom_pods", "Headroom as it shall be.", *_ORDER)
READY: Final = gauge(
    "gma_nodepool_headroom_ready_pods",
    "Of it, what free room on Ready nodes holds now.",
    *_ORDER,
)
GPUS: Final = gauge("gma_nodepool_headroom_gpus", "GPUs of all headroom as it shall be.")
UNLISTED: Final = gauge(
    "gma_nodepool_orders_unlisted", "Orders beyond those that have series of their own."
)
BY_REASON: Final = gauge(
    "gma_nodepool_orders_by_reason",
    "Orders, by what decided them.",
    "reason",
    known=tuple(CODES),
)
WANTED: Final = gauge(
    "gma_nodepool_wanted_pods",
    "Pods that a workload's metrics ask for, before any limit.",
    *("namespace", "kind", "name"),
)
BOOT: Final = gauge(
    "gma_nodepool_boot_seconds", "90th percentile from order to GPU allocatable.", "pool"
)
BACKOFF: Final = gauge(
    "gma_nodepool_pool_backoff", "1 while the pool's autoscaler backs off.", "pool"
)
TRAP: Final = gauge(
    "gma_nodepool_pool_trap",
    "1 where something about the pool's nodes confuses autoscalers.",
    *("pool", "trap"),
)
SPENT: Final = gauge(
    "gma_nodepool_headroom_gpu_seconds_today", "GPU-seconds of headroom in the UTC day.", "pool"
)
IDLE: Final = gauge(
    "gma_nodepool_idle_gpus",
    "GPUs that pods hold and have not used for a while.",
    "namespace",
)
STATUS_AGE: Final = gauge(
    "gma_nodepool_autoscaler_status_age_seconds",
    "Since the cluster-autoscaler last looked at its groups, by its status.",
)
APPLIED: Final = counter(
    "gma_nodepool_applied_total", "Writes that succeeded.", "kind", known=KINDS
)
FAILED: Final = counter(
    "gma_nodepool_failed_total",
    "Writes that did not happen.",
    *("kind", "reason"),
    known=tuple(map(str, Failure)),
)
REFUSED: Final = gauge(
    "gma_nodepool_orders_refused",
    "Orders not carried out now.",
    "reason",
    known=(*map(str, Failure), "lifeline", "priority", "way", "error"),
)
SHORT: Final = gauge(
    "gma_nodepool_headroom_short", "Buffers that the autoscaler says it cannot fill."
)
LEFT_OUT: Final = gauge(
    "gma_nodepool_left_out",
    "HPAs, Jobs and headroom objects that nothing is planned for.",
    "reason",
    known=(
        *("target_unknown", "no_metric", "annotation", "second_hpa", "job_suspended"),
        "headroom_foreign",
    ),
)
MISSING: Final = counter(
    "gma_nodepool_values_missing_total",
    "Metric requests without a value, by HTTP status or what was wrong.",
    "reason",
    known=(
        *("late", "selector", "unreachable", "garbled"),
        *("400", "401", "403", "404", "429", "500", "502", "503", "504"),
    ),
)
SYNCED: Final = gauge(
    "gma_nodepool_watch_synced", "1 once a collection was listed wholly.", "collection"
)
UNDECODED: Final = counter(
    "gma_nodepool_objects_rejected_total", "Objects that could not be decoded.", "collection"
)
FAMILIES: Final = (
    *(BUILD, LEADING, APPLY, FROZEN, ROUNDS, BROKEN, BACKGROUND, ROUND_SECONDS, PLANNED),
    *(METHOD, HISTORY, HEADROOM, READY, GPUS, UNLISTED, BY_REASON, WANTED),
    *(BOOT, BACKOFF, TRAP, SPENT, IDLE, STATUS_AGE),
    *(APPLIED, FAILED, REFUSED, SHORT, LEFT_OUT, MISSING, SYNCED, UNDECODED),
)
"""All that ``nodepool`` shows, beside the process' own."""
