"""Whether anything needs a look, in one number, and the numbers that it comes from."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import asked
from charts.generate.dashboard.hpa import chosen, overloaded
from charts.generate.dashboard.panel import Panel, Row, stat

_INACTIVE: Final = (
    'sum(kube_horizontalpodautoscaler_status_condition{condition="ScalingActive", status="false"} '
    f"and on (namespace, horizontalpodautoscaler) {chosen()})"
)
_OVERLOADED: Final = f"count({overloaded()})"
_PENDING: Final = (
    "count(max by (namespace, pod) "
    '(kube_pod_status_scheduled{condition="false", pod!~"gpu-headroom-.*", '
    'namespace=~"$namespace"}) == 1 '
    f"and on (namespace, pod) {asked()} > 0)"
)
_UNMEASURED: Final = "sum(max by (reason) (gma_gpu_pods_unmeasured))"
_NONE_OF_ADAPTER: Final = "0 * max(gma_gpu_pods)"
"""0 if the adapter is scraped, and nothing otherwise: a missing series is not a zero."""
_NONE_OF_CLUSTER: Final = "0 * max(kube_horizontalpodautoscaler_spec_max_replicas)"


def _or(expr: str, none: str) -> str:
    return f"({expr} or {none})"


_PARTS: Final = (
    _or(_UNMEASURED, _NONE_OF_ADAPTER),
    _or(_INACTIVE, _NONE_OF_CLUSTER),
    _or(_PENDING, _NONE_OF_CLUSTER),
    _or(_OVERLOADED, _NONE_OF_CLUSTER),
)


def _count(title: str, description: str, expr: str, legend: str) -> Panel:
    return stat(title, description, "none", expr, legend, warn=1)


VERDICT: Final = Row(
    "Verdict: is anything wrong?",
    (
        stat(
            "Verdict",
            "Fine: every pod with a GPU has a value, no HPA on GPU metrics is stuck or overloaded, "
            "and no pod waits for a GPU. No data: the adapter or kube-state-metrics is not "
            "scraped.",
            "none",
            f"clamp_max({' + '.join(_PARTS)}, 1)",
            "verdict",
            words=("fine", "needs a look"),
            warn=1,
        ),
        _count(
            "GPU pods without a value",
            "`kubectl get gpupods -A` and `gpu-metrics-adapter doctor` say why.",
            _PARTS[0],
            "without a value",
        ),
        _count(
            "HPAs that are stuck",
            "They have no value and keep their replica count. `gpu-metrics-adapter explain hpa` "
            "says why.",
            _PARTS[1],
            "stuck",
        ),
        _count(
            "HPAs that are overloaded",
            "A metric is above 110 % of its target, and the HPA does not scale out. "
            "`gpu-metrics-adapter explain hpa` says what holds it.",
            _PARTS[3],
            "overloaded",
        ),
        _count(
            "Pods that wait for a GPU",
            "Not scheduled yet. Headroom of nodepool does not count.",
            _PARTS[2],
            "pending",
        ),
        _count(
            "GPUs idle for a day",
            "Pods hold these GPUs, and no field has shown work. `gpu-metrics-adapter idle -A` "
            "lists them.",
            'max(gma_idle_devices{held="true", at_least="24h"})',
            "idle",
        ),
    ),
)
