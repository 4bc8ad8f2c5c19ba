"""Which nodes are ordered before pods wait for them, and why."""

from __future__ import annotations

from typing import Final

from docs.dashboard.panel import Panel, Query, Row, stat

_ORDER: Final = "{{namespace}} {{workload}} {{pool}}"
_CHOSEN: Final = '{namespace=~"$namespace"}'

NODEPOOL: Final = Row(
    "nodepool: the plan",
    (
        stat(
            "Leaders",
            "One is right; a dry run has as many as replicas.",
            "none",
            "sum(gma_nodepool_leading)",
            "leaders",
            bad_below=1,
        ),
        stat(
            "Mode",
            "Whether it writes to the cluster.",
            "none",
            "max(gma_nodepool_apply)",
            "mode",
            words=("dry run", "applies"),
        ),
        stat(
            "Planning",
            "Frozen: the cluster cannot be seen, and headroom stays as it is.",
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
            "Since midnight UTC, over all pools: what readiness costs.",
            "none",
            "sum(max by (pool) (gma_nodepool_headroom_gpu_seconds_today)) / 3600",
            "GPU-hours",
        ),
        stat(
            "Buffers that cannot be filled",
            "By the autoscaler's own word: the pool is full, or the cloud has no more.",
            "none",
            "max(gma_nodepool_headroom_short)",
            "short",
            warn=1,
        ),
        Panel(
            "Headroom: ordered and ready",
            "Ready is what free room on Ready nodes holds now: a burst of so many pods starts "
            "at once.",
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
            "Before any limit; the plan follows it, the HPA after its own delays.",
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
            "Orders, by what decided them",
            "An order may have several reasons; docs/nodepool.md has them all.",
            "none",
            (Query("max by (reason) (gma_nodepool_orders_by_reason) > 0", "{{reason}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Boot time by pool",
            "90th percentile from order to a GPU that can be had: how far ahead it must order.",
            "s",
            (Query("max by (pool) (gma_nodepool_boot_seconds)", "{{pool}}"),),
            low=0,
        ),
        Panel(
            "Pools that the autoscaler backs off from",
            "1 while its last nodes did not come.",
            "none",
            (Query("max by (pool) (gma_nodepool_pool_backoff)", "{{pool}}"),),
            low=0,
            high=1,
        ),
        Panel(
            "Orders not carried out, by reason",
            "Everything but way lasts until somebody mends it.",
            "none",
            (Query("max by (reason) (gma_nodepool_orders_refused)", "{{reason}}"),),
            low=0,
        ),
        Panel(
            "Idle GPUs",
            "Held by pods and unused for 15 minutes.",
            "none",
            (Query(f"max by (namespace) (gma_nodepool_idle_gpus{_CHOSEN})", "{{namespace}}"),),
            low=0,
            stacked=True,
        ),
        Panel(
            "Left out of the plan, by reason",
            "HPAs and Jobs that nothing is ordered for.",
            "none",
            (Query("max by (reason) (gma_nodepool_left_out)", "{{reason}}"),),
            low=0,
        ),
        Panel(
            "Duration of a round, and age of the plan",
            "A round is made every 15 s.",
            "s",
            (
                Query("max(gma_nodepool_round_seconds)", "round"),
                Query("time() - max(gma_nodepool_last_plan_timestamp_seconds)", "age of the plan"),
            ),
            low=0,
        ),
    ),
)
