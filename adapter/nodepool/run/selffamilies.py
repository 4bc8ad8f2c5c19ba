"""Declarations of the metrics that ``nodepool`` exposes about itself."""

from __future__ import annotations

from typing import Final

from adapter.nodepool.act.serverside import KINDS as APPLIED_KINDS
from adapter.nodepool.act.serverside import WriteFailure
from adapter.nodepool.model.reason import CODES
from apiservice.selfmetrics.families import OTHER, counter, gauge

__all__ = ["FAMILIES", "KINDS", "MOST", "OTHER"]

MOST: Final = 500
"""Series of one metric that has a label for each workload, node pool or namespace. Further series
are left out; orders that are left out are counted."""
KINDS: Final = (*APPLIED_KINDS, "Event")
"""Kinds of the objects that the controller writes."""
_ORDER: Final = ("namespace", "workload", "pool")

BUILD: Final = gauge(
    "gma_build_info", "1, labeled with the version of this process.", "version", "component"
)
LEADING: Final = gauge("gma_nodepool_leading", "1 while this replica is the leader and plans.")
APPLY: Final = gauge(
    "gma_nodepool_apply", "1 while the controller writes to the cluster, 0 in a dry run."
)
FROZEN: Final = gauge(
    "gma_nodepool_frozen",
    "1 while the controller does not plan because it cannot read the cluster.",
)
ROUNDS: Final = counter("gma_nodepool_rounds_total", "Rounds of planning.")
BROKEN: Final = counter(
    "gma_nodepool_rounds_broken_total", "Rounds that ended with an error in the controller."
)
BACKGROUND: Final = counter(
    "gma_background_failures_total",
    "Unexpected failures of background tasks. The task runs again after a pause.",
    "task",
    known=("controller", "configuration", "discovery"),
)
ROUND_SECONDS: Final = gauge("gma_nodepool_round_seconds", "Duration of the last round.")
PLANNED: Final = gauge(
    "gma_nodepool_last_plan_timestamp_seconds",
    "Time of the last plan, in epoch seconds. Absent before the first.",
)
METHOD: Final = gauge(
    "gma_nodepool_provisioning_method",
    "1 for the method that nodepool uses to ask for nodes.",
    "method",
    known=("CapacityBuffer", "Placeholder"),
)
HISTORY: Final = gauge("gma_nodepool_history_ok", "0 while the history cannot be read or written.")
HEADROOM: Final = gauge("gma_nodepool_headroom_pods", "Desired headroom in pods.", *_ORDER)
READY: Final = gauge(
    "gma_nodepool_headroom_ready_pods",
    "Desired headroom in pods for which Ready nodes have free capacity now.",
    *_ORDER,
)
GPUS: Final = gauge("gma_nodepool_headroom_gpus", "GPUs of all desired headroom.")
UNLISTED: Final = gauge(
    "gma_nodepool_orders_unlisted",
    "Orders that have no series of their own, because there are too many.",
)
BY_REASON: Final = gauge(
    "gma_nodepool_orders_by_reason",
    "Orders by the reason for their size.",
    "reason",
    known=tuple(CODES),
)
WANTED: Final = gauge(
    "gma_nodepool_wanted_pods",
    "Pods that the metrics of a workload call for, before limits, tolerance and rounding.",
    *("namespace", "kind", "name"),
)
BOOT: Final = gauge(
    "gma_nodepool_boot_seconds",
    "90th percentile of the time from the order to allocatable GPUs.",
    "pool",
)
BACKOFF: Final = gauge(
    "gma_nodepool_pool_backoff", "1 while the node autoscaler backs off from the node pool.", "pool"
)
TRAP: Final = gauge(
    "gma_nodepool_pool_trap",
    "1 if the node pool has a property that confuses node autoscalers.",
    *("pool", "trap"),
)
SPENT: Final = gauge(
    "gma_nodepool_headroom_gpu_seconds_today", "GPU-seconds of headroom in this UTC day.", "pool"
)
IDLE: Final = gauge(
    "gma_nodepool_idle_gpus",
    "GPUs that are allocated to pods and have been idle for some time.",
    "namespace",
)
STATUS_AGE: Final = gauge(
    "gma_nodepool_autoscaler_status_age_seconds",
    "Age of the cluster-autoscaler's status: time since it last checked its node groups.",
)
APPLIED: Final = counter(
    "gma_nodepool_applied_total", "Writes to the API server that succeeded.", "kind", known=KINDS
)
FAILED: Final = counter(
    "gma_nodepool_failed_total",
    "Writes to the API server that failed.",
    *("kind", "reason"),
    known=tuple(map(str, WriteFailure)),
)
REFUSED: Final = gauge(
    "gma_nodepool_orders_refused",
    "Orders that the controller cannot carry out now.",
    "reason",
    known=(*map(str, WriteFailure), "lifeline", "priority", "method", "error"),
)
SHORT: Final = gauge(
    "gma_nodepool_headroom_short",
    "CapacityBuffers that the node autoscaler reports it cannot fill.",
)
LEFT_OUT: Final = gauge(
    "gma_nodepool_left_out",
    "HPAs, Jobs and headroom objects that the plan leaves out.",
    "reason",
    known=(
        *("target_unknown", "no_metric", "annotation", "second_hpa", "job_suspended"),
        "headroom_foreign",
    ),
)
MISSING: Final = counter(
    "gma_nodepool_values_missing_total",
    "Metric requests that got no value, by HTTP status or error.",
    "reason",
    known=(
        *("late", "selector", "unreachable", "garbled"),
        *("400", "401", "403", "404", "429", "500", "502", "503", "504"),
    ),
)
SYNCED: Final = gauge(
    "gma_nodepool_watch_synced", "1 after the first complete list of the collection.", "collection"
)
UNDECODED: Final = counter(
    "gma_nodepool_objects_rejected_total",
    "Objects that the controller could not decode.",
    "collection",
)
FAMILIES: Final = (
    *(BUILD, LEADING, APPLY, FROZEN, ROUNDS, BROKEN, BACKGROUND, ROUND_SECONDS, PLANNED),
    *(METHOD, HISTORY, HEADROOM, READY, GPUS, UNLISTED, BY_REASON, WANTED),
    *(BOOT, BACKOFF, TRAP, SPENT, IDLE, STATUS_AGE),
    *(APPLIED, FAILED, REFUSED, SHORT, LEFT_OUT, MISSING, SYNCED, UNDECODED),
)
"""All metrics of ``nodepool``, except the ``process_…`` metrics."""
