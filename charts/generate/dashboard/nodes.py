"""Will nodes come in time?"""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import (
    Board,
    Column,
    Query,
    Row,
    bars,
    graph,
    number,
    table,
    timeline,
)

_CHOSEN: Final = '{namespace=~"$namespace"}'
_ORDER: Final = "namespace, workload, pool"


def nodes() -> Board:
    """Return the dashboard."""
    return Board(
        "gpu-nodes",
        "GPU nodes",
        "Will nodes come in time?",
        (_plan(), _orders(), _pools()),
    )


def _headroom(series: str) -> str:
    return f"max by ({_ORDER}) (gma_nodepool_headroom_{series}{_CHOSEN})"


def _plan() -> Row:
    return Row(
        "The plan of nodepool",
        (
            number(
                "Leaders",
                "One is correct. In a dry run every replica counts.",
                "sum(gma_nodepool_leading)",
                red_below=1,
            ),
            number(
                "Mode",
                "Whether the controller writes to the cluster.",
                "max(gma_nodepool_apply)",
                words=("dry run", "applies"),
            ),
            number(
                "Planning",
                "Frozen: the controller cannot read the cluster, and headroom stays as it is.",
                "max(gma_nodepool_frozen)",
                words=("plans", "frozen"),
                red_from=1,
            ),
            number(
                "GPUs of headroom",
                "Ordered for pods that do not exist yet.",
                "max(gma_nodepool_headroom_gpus)",
            ),
            number(
                "GPU-hours of headroom today",
                "Since midnight UTC, over all node pools.",
                "sum(max by (pool) (gma_nodepool_headroom_gpu_seconds_today)) / 3600",
            ),
            number(
                "Buffers that cannot be filled",
                "Reported by the autoscaler: the node pool is full, or the cloud has no more "
                "machines.",
                "max(gma_nodepool_headroom_short)",
                red_from=1,
            ),
        ),
    )


def _orders() -> Row:
    order = "{{namespace}} {{workload}} {{pool}}"
    return Row(
        "Orders",
        (
            table(
                "Headroom now",
                "Ready headroom has free room on Ready nodes now: a burst of this many pods "
                "starts at once.",
                {"namespace": "Namespace", "workload": "Workload", "pool": "Node pool"},
                Column("Ordered", "none", _headroom("pods")),
                Column("Ready", "none", _headroom("ready_pods")),
            ),
            graph(
                "Headroom: ordered and ready",
                "In pods.",
                Query(_headroom("pods"), f"{order} ordered"),
                Query(_headroom("ready_pods"), f"{order} ready"),
            ),
            graph(
                "Pods that metrics ask for",
                "Before any limit. The plan follows this number; the HPA follows after its own "
                "delays.",
                Query(
                    f"max by (namespace, kind, name) (gma_nodepool_wanted_pods{_CHOSEN})",
                    "{{namespace}} {{kind}}/{{name}}",
                ),
            ),
            graph(
                "Orders, by reason",
                "An order may have several reasons. docs/nodepool.md describes them.",
                Query("max by (reason) (gma_nodepool_orders_by_reason) > 0", "{{reason}}"),
                stacked=True,
            ),
            bars(
                "Orders not carried out, by reason",
                "All reasons except method need a fix by an operator.",
                Query("max by (reason) (gma_nodepool_orders_refused)", "{{reason}}"),
            ),
            bars(
                "Left out of the plan, by reason",
                "HPAs and Jobs for which nothing is ordered.",
                Query("max by (reason) (gma_nodepool_left_out)", "{{reason}}"),
            ),
        ),
    )


def _pools() -> Row:
    return Row(
        "Node pools",
        (
            bars(
                "Boot time by node pool",
                "90th percentile from the order to a usable GPU: how far ahead the controller "
                "orders.",
                Query("max by (pool) (gma_nodepool_boot_seconds)", "{{pool}}"),
                unit="s",
            ),
            timeline(
                "Node pools with back-off",
                "The autoscaler backs off while the last nodes of a pool did not start.",
                [("starts nodes", "green"), ("backs off", "red")],
                Query("max by (pool) (gma_nodepool_pool_backoff)", "{{pool}}"),
            ),
            graph(
                "Duration of a round, and age of the plan",
                "A round runs every 15 s.",
                Query("max(gma_nodepool_round_seconds)", "round"),
                Query("time() - max(gma_nodepool_last_plan_timestamp_seconds)", "age of the plan"),
                unit="s",
            ),
            graph(
                "Idle GPUs",
                "GPUs that pods hold and have not used for 15 minutes: they could be given back "
                "instead of ordering nodes.",
                Query(f"max by (namespace) (gma_nodepool_idle_gpus{_CHOSEN})", "{{namespace}}"),
                stacked=True,
            ).span(24),
        ),
    )
