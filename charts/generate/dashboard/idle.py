"""GPUs that nobody uses, and their price."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import by_pod
from charts.generate.dashboard.panel import Panel, Query, Row

_IDLE: Final = 'max by (at_least) (gma_idle_devices{held="true"})'

IDLE: Final = Row(
    "Idle GPUs and their price",
    (
        Panel(
            "Idle GPUs that pods hold",
            "Devices on which no field has shown work for at least this long.",
            "none",
            (Query(_IDLE, "{{at_least}}"),),
            low=0,
        ),
        Panel(
            "Price of idle GPUs per day",
            "GPUs idle for at least the time of the legend, times 24 hours, times the price of a "
            "GPU-hour that you set at the top of the dashboard.",
            "none",
            (Query(f"{_IDLE} * 24 * $price", "{{at_least}}"),),
            low=0,
        ),
        Panel(
            "Pods below 10 % utilization",
            "These pods hold devices that others could use.",
            "none",
            (
                Query(
                    f"sum by (namespace) ({by_pod('avg', 'DCGM_FI_DEV_GPU_UTIL')} < bool 10)",
                    "{{namespace}}",
                ),
            ),
            low=0,
        ),
    ),
    collapsed=True,
)
