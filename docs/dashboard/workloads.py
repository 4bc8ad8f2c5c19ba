"""What the pods of the chosen workloads do with their GPUs."""

from __future__ import annotations

from typing import Final

from docs.dashboard.exporter import asked, by_pod
from docs.dashboard.panel import Panel, Query, Row

_POD: Final = "{{namespace}}/{{pod}}"
_CHOSEN: Final = asked('pod=~"($workload)(-.*)?"')

WORKLOADS: Final = Row(
    "Workloads: what pods do with their GPUs",
    (
        Panel(
            "Utilisation by pod",
            "Mean over the pod's devices, as the exporter has it. An HPA is told the mean over "
            "30 s, and nothing of a pod that is not ready.",
            "percent",
            (Query(by_pod("avg", "DCGM_FI_DEV_GPU_UTIL"), _POD),),
            low=0,
            high=100,
        ),
        Panel(
            "Mean utilisation by namespace",
            "What an HPA would see of all chosen pods together.",
            "percent",
            (
                Query(
                    f"avg by (namespace) ({by_pod('avg', 'DCGM_FI_DEV_GPU_UTIL')})",
                    "{{namespace}}",
                ),
            ),
            low=0,
            high=100,
        ),
        Panel(
            "Pods below a tenth of their GPU",
            "They hold devices that somebody could use; nodepool counts such as idle after 15 "
            "minutes.",
            "none",
            (
                Query(
                    f"sum by (namespace) ({by_pod('avg', 'DCGM_FI_DEV_GPU_UTIL')} < bool 10)",
                    "{{namespace}}",
                ),
            ),
            low=0,
        ),
        Panel(
            "Memory used by pod",
            "Framebuffer, summed over the pod's devices.",
            "mbytes",
            (Query(by_pod("sum", "DCGM_FI_DEV_FB_USED"), _POD),),
            low=0,
        ),
        Panel(
            "Tensor activity by pod",
            "Share of time in which tensor cores worked: little of it in inference means small "
            "batches or a wrong data type.",
            "percentunit",
            (Query(by_pod("avg", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _POD),),
            low=0,
            high=1,
        ),
        Panel(
            "GPUs asked for",
            "Requests of pods by resource: whole GPUs, MIG profiles, shared replicas.",
            "none",
            (
                Query(
                    f"sum by (namespace, resource) ({_CHOSEN})",
                    "{{namespace}} {{resource}}",
                ),
            ),
            low=0,
            stacked=True,
        ),
    ),
)
