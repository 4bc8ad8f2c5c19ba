"""How the pods of the chosen workloads use their GPUs."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import asked, by_pod
from charts.generate.dashboard.panel import Panel, Query, Row

_POD: Final = "{{namespace}}/{{pod}}"
_CHOSEN: Final = asked('pod=~"($workload)(-.*)?"')

WORKLOADS: Final = Row(
    "Workloads: how pods use their GPUs",
    (
        Panel(
            "Utilization by pod",
            "Mean over the pod's devices, as the exporter reports it. An HPA gets the mean over "
            "30 s, and no value for a pod that is not ready.",
            "percent",
            (Query(by_pod("avg", "DCGM_FI_DEV_GPU_UTIL"), _POD),),
            low=0,
            high=100,
        ),
        Panel(
            "Mean utilization by namespace",
            "The value that an HPA over all chosen pods would see.",
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
            "Memory used by pod",
            "Framebuffer, as a sum over the pod's devices.",
            "mbytes",
            (Query(by_pod("sum", "DCGM_FI_DEV_FB_USED"), _POD),),
            low=0,
        ),
        Panel(
            "Tensor activity by pod",
            "Share of time in which tensor cores worked. A low value in inference indicates small "
            "batches or a wrong data type.",
            "percentunit",
            (Query(by_pod("avg", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _POD),),
            low=0,
            high=1,
        ),
        Panel(
            "Requested GPUs",
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
