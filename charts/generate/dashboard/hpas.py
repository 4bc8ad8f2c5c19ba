"""Why does this HPA not scale?"""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import gpu_requests
from charts.generate.dashboard.panel import (
    Board,
    Column,
    Query,
    Row,
    graph,
    number,
    table,
    timeline,
)

_HPA: Final = "{{namespace}}/{{horizontalpodautoscaler}}"
_NAMESPACES: Final = 'namespace=~"$namespace"'
_KEYS: Final = "namespace, horizontalpodautoscaler"
_TARGETED: Final = (
    f'group by ({_KEYS}) (kube_horizontalpodautoscaler_spec_target_metric{{metric_name=~"$metric", '
    f"{_NAMESPACES}}})"
)
"""HPAs on a metric of the adapter."""
_SELECTED: Final = (
    f"group by ({_KEYS}) (kube_horizontalpodautoscaler_info"
    f'{{scaletargetref_name=~"$workload", {_NAMESPACES}}})'
)
_CHOSEN: Final = f"({_TARGETED} and on ({_KEYS}) {_SELECTED})"
_UNMEASURED: Final = "sum(max by (reason) (gma_gpu_pods_unmeasured))"
_PENDING: Final = (
    "count(max by (namespace, pod) "
    '(kube_pod_status_scheduled{condition="false", pod!~"gpu-headroom-.*", '
    f"{_NAMESPACES}}}) == 1 "
    f"and on (namespace, pod) {gpu_requests()} > 0)"
)
_NONE_OF_ADAPTER: Final = "0 * max(gma_gpu_pods)"
"""0 if the adapter is scraped, and nothing otherwise: a missing series is not a zero."""
_NONE_OF_CLUSTER: Final = "0 * max(kube_horizontalpodautoscaler_spec_max_replicas)"


def hpas() -> Board:
    """Return the dashboard."""
    return Board(
        "gpu-hpas",
        "GPU HPAs",
        "Why does this HPA not scale?",
        (_verdict(), _each_hpa(), _values_missing()),
    )


def values(series: str, metric: str = "$metric") -> str:
    """A series of kube-state-metrics, for each metric of the chosen HPAs."""
    return (
        f"(max by ({_KEYS}, metric_name) (kube_horizontalpodautoscaler_{series}"
        f'{{metric_name=~"{metric}", {_NAMESPACES}}}) and on ({_KEYS}) {_SELECTED})'
    )


def ratio(metric: str = "$metric") -> str:
    """The value of each metric, divided by its target."""
    target = values("spec_target_metric", metric)
    return f"{values('status_target_metric', metric)} / on ({_KEYS}, metric_name) {target}"


def _of_hpa(series: str) -> str:
    """A series of kube-state-metrics, for each HPA."""
    return f"max by ({_KEYS}) (kube_horizontalpodautoscaler_{series})"


def _chosen_hpas(expr: str) -> str:
    """Of an expression with a series for each HPA, those of the chosen ones."""
    return f"(({expr}) and on ({_KEYS}) {_CHOSEN})"


_DESIRED, _CURRENT, _LEAST, _MOST, _INACTIVE, _UNABLE = (
    _of_hpa(series)
    for series in (
        "status_desired_replicas",
        "status_current_replicas",
        "spec_min_replicas",
        "spec_max_replicas",
        'status_condition{condition="ScalingActive", status="false"}',
        'status_condition{condition="AbleToScale", status="false"}',
    )
)
_OVER: Final = f"max by ({_KEYS}) ({ratio()}) > 1.1"
_OVERLOADED: Final = f"({_OVER} unless {_DESIRED} > {_CURRENT})"
"""The chosen HPAs whose metric is above 110 % of its target, and that do not scale out."""
_AT_MOST: Final = f"{_DESIRED} >= {_MOST}"
_PARTS: Final = {
    "unmeasured": f"({_UNMEASURED} or {_NONE_OF_ADAPTER})",
    "stuck": f"(sum({_chosen_hpas(_INACTIVE)}) or {_NONE_OF_CLUSTER})",
    "pending": f"({_PENDING} or {_NONE_OF_CLUSTER})",
    "overloaded": f"(count({_OVERLOADED}) or {_NONE_OF_CLUSTER})",
}

_STATES: Final = (
    ("at zero", "text", f"{_DESIRED} == 0"),
    ("cannot be scaled", "dark-red", f"{_UNABLE} == 1"),
    ("stuck: no value", "red", f"{_INACTIVE} == 1"),
    ("overloaded at its maximum", "dark-orange", f"{_OVERLOADED} and {_AT_MOST}"),
    ("overloaded", "orange", _OVERLOADED),
    ("scales out", "blue", f"{_DESIRED} > {_CURRENT}"),
    ("scales in", "light-blue", f"{_DESIRED} < {_CURRENT}"),
    ("healthy", "green", _DESIRED),
)
"""State, color, and which HPAs are in it. An HPA is in the first that is true."""


def _state() -> str:
    """The number of the state of each chosen HPA."""
    states = (f"(0 * ({expr}) + {value})" for value, (_, _, expr) in enumerate(_STATES))
    return _chosen_hpas(" or ".join(states))


def _verdict() -> Row:
    return Row(
        "Verdict: is anything wrong?",
        (
            number(
                "Verdict",
                "Fine: every pod with a GPU has a value, no HPA on GPU metrics is stuck or "
                "overloaded, and no pod waits for a GPU. No data: the adapter or "
                "kube-state-metrics is not scraped.",
                f"clamp_max({' + '.join(_PARTS.values())}, 1)",
                words=("fine", "needs a look"),
                red_from=1,
            ),
            number(
                "GPU pods without a value",
                "`kubectl get gpupods -A` and `gpu-metrics-adapter doctor` say why.",
                _PARTS["unmeasured"],
                red_from=1,
            ),
            number(
                "HPAs that are stuck",
                "They have no value and keep their replica count. `gpu-metrics-adapter explain "
                "hpa` says why.",
                _PARTS["stuck"],
                red_from=1,
            ),
            number(
                "HPAs that are overloaded",
                "A metric is above 110 % of its target, and the HPA does not scale out. "
                "`gpu-metrics-adapter explain hpa` says what holds it.",
                _PARTS["overloaded"],
                red_from=1,
            ),
            number(
                "HPAs at their maximum",
                "They cannot scale out further. That is a fault only if they are overloaded.",
                f"count({_chosen_hpas(_AT_MOST)}) or {_NONE_OF_CLUSTER}",
            ),
            number(
                "Pods that wait for a GPU",
                "Not scheduled yet. Headroom of nodepool does not count.",
                _PARTS["pending"],
                red_from=1,
            ),
        ),
    )


def _each_hpa() -> Row:
    return Row(
        "Each HPA",
        (
            timeline(
                "State of each HPA",
                "Stuck: ScalingActive is false, and the HPA keeps its replica count. Cannot be "
                "scaled: AbleToScale is false. Overloaded: above 110 % of a target without "
                "scaling out. `gpu-metrics-adapter explain hpa` names the cause.",
                [(word, color) for word, color, _ in _STATES],
                Query(_state(), _HPA),
            ).span(24),
            table(
                "HPAs now",
                "The value is that of the metric that is furthest above its target.",
                {"namespace": "Namespace", "horizontalpodautoscaler": "HPA"},
                Column("Value of target", "percentunit", f"max by ({_KEYS}) ({ratio()})"),
                Column("Desired", "none", _chosen_hpas(_DESIRED)),
                Column("Current", "none", _chosen_hpas(_CURRENT)),
                Column("Minimum", "none", _chosen_hpas(_LEAST)),
                Column("Maximum", "none", _chosen_hpas(_MOST)),
            ).span(24),
            graph(
                "Value against target",
                "The last value that the HPA used, divided by its target. Above 110 % it adds "
                "replicas, below 90 % it removes some.",
                Query(ratio(), f"{_HPA} {{{{metric_name}}}}"),
                unit="percentunit",
            ),
            graph(
                "Replicas",
                "Desired, current and maximum replicas. At the maximum the HPA cannot scale out "
                "further.",
                Query(_chosen_hpas(_DESIRED), f"{_HPA} desired"),
                Query(_chosen_hpas(_CURRENT), f"{_HPA} current"),
                Query(_chosen_hpas(_MOST), f"{_HPA} maximum"),
            ),
            graph(
                "Metric and target",
                "The last value that the HPA used, and its target. Within 10 % of the target it "
                "keeps the replica count.",
                Query(values("status_target_metric"), f"{_HPA} {{{{metric_name}}}}"),
                Query(values("spec_target_metric"), f"{_HPA} {{{{metric_name}}}} target"),
            ),
        ),
    )


def _values_missing() -> Row:
    return Row(
        "Pods without a value",
        (
            graph(
                "Pods without a value, by reason",
                "The page docs/reasons.md explains every reason, with its fix.",
                Query("topk(8, max by (reason) (gma_gpu_pods_unmeasured))", "{{reason}}"),
                stacked=True,
            ).span(12),
            graph(
                "Pods left out of answers, by reason",
                "An HPA counts these pods as idle when it scales out and as busy when it scales "
                "in. pod_not_ready is normal while models load.",
                Query(
                    "topk(8, sum by (reason) (rate(gma_absent_total[$__rate_interval])))",
                    "{{reason}}",
                ),
                unit="cps",
            ).span(12),
        ),
    )
