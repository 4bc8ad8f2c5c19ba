"""The processes of the adapter."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.panel import Panel, Query, Row

_OURS: Final = "on (job, instance) group_left (component, version) gma_build_info"
_NAME: Final = "{{component}} {{instance}} {{version}}"

PROCESS: Final = Row(
    "The adapter's processes",
    (
        Panel(
            "Memory",
            "Resident memory. The chart's limit is 512 MiB.",
            "bytes",
            (Query(f"process_resident_memory_bytes * {_OURS}", _NAME),),
            low=0,
        ),
        Panel(
            "CPU",
            "Cores in use.",
            "none",
            (Query(f"rate(process_cpu_seconds_total[$__rate_interval]) * {_OURS}", _NAME),),
            low=0,
        ),
        Panel(
            "Data in memory",
            "Pods of the cluster, devices of exporters, and pods that samples name.",
            "none",
            (
                Query("max(gma_pods)", "pods of the cluster"),
                Query("max(gma_snapshot_devices)", "devices"),
                Query("max(gma_snapshot_pods)", "pods named in samples"),
            ),
            low=0,
        ),
    ),
    collapsed=True,
)
