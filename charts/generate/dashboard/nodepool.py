"""The nodes that are ordered before pods wait for them, and why."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import Panel, Query, Row, stat

_ORDER: Final = "{{namespace}} {{workload}} {{pool}}"
_CHOSEN: Final = '{namespace=~"$namespace"}'

NODEPOOL: Final = Row(
    "nodepool: the plan",
    (
        stat(
            "Leaders",
            "One is correct. In a dry run every replica counts.",
            "none",
            "sum(gma_nodepool_leading)",
            "leaders",
            bad_below=1,
        ),
        stat(
            "Mode",
            "Whether the controller writes to the cluster.",
            "none",
            "max(gma_nodepool_apply)",
            "mode",
            words=("dry run", "applies"),
        ),
        stat(
            "Planning",
            "Frozen: the controller cannot read the cluster, and headroom stays as it is.",
            "none",
            "max(gma_nodepool_frozen)",
            "planning",
            words=("plans", "frozen"),
            warn=1,
        ),
        stat(
            "GPUs of headroom",
            "Ordered for pods that do not exist yet.",
            "none",
            "max(gma_nodepool_headroom_gpus)",
            "GPUs",
        ),
        stat(
            "GPU-hours of headroom today",
            "Since midnight UTC, over all node pools.",
            "none",
            "sum(max by (pool) (gma_nodepool_headroom_gpu_seconds_today)) / 3600",
            "GPU-hours",
        ),
        stat(
            "Buffers that cannot be filled",
            "Reported by the autoscaler: the node pool is full, or the cloud has no more machines.",
            "none",
            "max(gma_nodepool_headroom_short)",
            "short",
            warn=1,
        ),
        Panel(
            "Headroom: ordered and ready",
            "Ready headroom has free room on Ready nodes now: a burst of this many pods starts at "
            "once.",
            "none",
            (
                Query(
                    f"max by (namespace, workload, pool) (gma_nodepool_headroom_pods{_CHOSEN})",
                    f"{_ORDER} ordered",
                ),
                Query(
                    "max by (namespace, workload, pool) "
                    f"(gma_nodepool_headroom_ready_pods{_CHOSEN})",
                    f"{_ORDER} ready",
                ),
            ),
            low=0,
        ),
        Panel(
            "Pods that metrics ask for",
            "Before any limit. The plan follows this number; the HPA follows after its own delays.",
            "none",
            (
                Query(
                    f"max by (namespace, kind, name) (gma_nodepool_wanted_pods{_CHOSEN})",
                    "{{namespace}} {{kind}}/{{name}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Orders, by reason",
            "An order may have several reasons. docs/nodepool.md describes them.",
            "none",
            (Query("max by (reason) (gma_nodepool_orders_by_reason) > 0", "{{reason}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Boot time by node pool",
            "90th percentile from the order to a usable GPU: how far ahead the controller orders.",
            "s",
            (Query("max by (pool) (gma_nodepool_boot_seconds)", "{{pool}}"),),
            low=0,
        ),
        Panel(
            "Node pools with back-off",
            "1 while the autoscaler backs off, because its last nodes did not start.",
            "none",
            (Query("max by (pool) (gma_nodepool_pool_backoff)", "{{pool}}"),),
            low=0,
            high=1,
        ),
        Panel(
            "Orders not carried out, by reason",
            "All reasons except method need a fix by an operator.",
            "none",
            (Query("max by (reason) (gma_nodepool_orders_refused)", "{{reason}}"),),
            low=0,
        ),
        Panel(
            "Idle GPUs",
            "GPUs that pods hold and have not used for 15 minutes.",
            "none",
            (Query(f"max by (namespace) (gma_nodepool_idle_gpus{_CHOSEN})", "{{namespace}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Left out of the plan, by reason",
            "HPAs and Jobs for which nothing is ordered.",
            "none",
            (Query("max by (reason) (gma_nodepool_left_out)", "{{reason}}"),),
            low=0,
        ),
        Panel(
            "Duration of a round, and age of the plan",
            "A round runs every 15 s.",
            "s",
            (
                Query("max(gma_nodepool_round_seconds)", "round"),
                Query("time() - max(gma_nodepool_last_plan_timestamp_seconds)", "age of the plan"),
            ),
            low=0,
        ),
    ),
    collapsed=True,
)
