"""Do my model servers keep their promise?"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.formulas import hides
from adapter.pipeline.catalog.metric import Kind, Unit
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.serverkind import CACHE, RUNNING, WAITING
from adapter.pipeline.catalog.serverkinds import formulas, measured_formulas
from adapter.pipeline.catalog.servermeasures import OUTPUT_TOKENS
from charts.generate.dashboard.hpas import ratio
from charts.generate.dashboard.panel import Board, Query, Row, buckets, graph, number

_CHOSEN: Final = '{namespace=~"$namespace", pod=~"($workload)(-.*)?"}'
_CATALOG: Final = Catalog()
_POD: Final = "{{namespace}}/{{pod}}"
_PROMISE: Final = "(?i)(s[0-9]+-)?inference_slo_ratio"
"""The metric of a promise, in an HPA or in one of KEDA."""


def _first_series(metric: str, how: str = "sum") -> str:
    """The first series of a neutral metric that a pod has; a pod has those of one server."""
    return " or ".join(f"{how} by (namespace, pod) ({name})" for name in _series(metric))


def _chosen_series(field: Field) -> str:
    """A field's series of the chosen pods."""
    conditions = "".join(f', {label}="{value}"' for label, value in field.where)
    return (field.series or field.name) + _CHOSEN.replace("}", conditions + "}")


def _series(metric: str) -> list[str]:
    """The usual series of each server, in the order in which the adapter reads them."""
    fields = (
        _CATALOG.fields[formula.fields[0]] for formula in formulas(metric) if not hides(formula)
    )
    return list(
        dict.fromkeys(_chosen_series(field) for field in fields if field.kind is not Kind.RATE)
    )


def _counted_fields(metric: str) -> list[Field]:
    """What the servers count for a metric, under the usual name of each."""
    return [_CATALOG.fields[formula.fields[0]] for formula in measured_formulas()[metric]]


def _latency(latency: Latency) -> str:
    """The 90th percentile of each pod in seconds; a pod has that of one server."""
    quantiles = []
    for field in _counted_fields(latency):
        rate = f"rate({field.name}_bucket{_CHOSEN}[$__rate_interval])"
        factor = " / 1000" if field.unit is Unit.MILLISECONDS else ""
        quantiles.append(f"histogram_quantile(0.9, sum by (namespace, pod, le) ({rate})){factor}")
    return " or ".join(quantiles)


def _histogram(latency: Latency) -> str:
    """The buckets of the first kind of server that has any: those of two kinds do not add up."""
    return " or on () ".join(
        f"sum by (le) (rate({field.name}_bucket{_CHOSEN}[$__rate_interval]))"
        for field in _counted_fields(latency)
        if field.unit is Unit.SECONDS
    )


def _rate(metric: str) -> str:
    """The counter of each pod, per second."""
    return " or ".join(
        f"sum by (namespace, pod) (rate({field.name}{_CHOSEN}[$__rate_interval]))"
        for field in _counted_fields(metric)
    )


def servers() -> Board:
    """Return the dashboard."""
    return Board(
        "gpu-servers",
        "GPU model servers",
        "Do my model servers keep their promise?",
        (_promise(), _latencies(), _queues()),
    )


def _promise() -> Row:
    return Row(
        "Promises of HPAs (inference_slo_ratio)",
        (
            number(
                "Promises that are learned",
                "Latency promises of workloads whose capacity the adapter learns. "
                "docs/inference.md says how to state one.",
                "max(gma_promises)",
            ).height(8),
            graph(
                "Load against its target",
                "How near the pods of an HPA are to the load at which its promise breaks, divided "
                "by the target of the HPA. Above 100 % the HPA adds replicas.",
                Query(ratio(_PROMISE), "{{namespace}}/{{horizontalpodautoscaler}}"),
                unit="percentunit",
            ).span(20),
        ),
    )


def _latencies() -> Row:
    kind = "With several kinds of servers, choose the workloads of one: this shows the first."
    return Row(
        "Latencies, from the histograms that Prometheus stores",
        (
            buckets(
                "Time to first token",
                f"The requests per second that took as long. {kind}",
                "s",
                _histogram(Latency.FIRST_TOKEN),
            ).span(12),
            graph(
                "Time to first token, 90 %",
                "It stays flat until a server is full. Whether or not an HPA asks for it.",
                Query(_latency(Latency.FIRST_TOKEN), _POD),
                unit="s",
            ).span(12),
            buckets(
                "Time per output token",
                f"The tokens or requests per second that took as long. {kind}",
                "s",
                _histogram(Latency.OUTPUT_TOKEN),
            ).span(12),
            graph(
                "Time per output token, 90 %",
                "The time between two tokens, or its mean over a request: docs/inference.md says "
                "which of the two each server counts.",
                Query(_latency(Latency.OUTPUT_TOKEN), _POD),
                unit="s",
            ).span(12),
        ),
    )


def _queues() -> Row:
    return Row(
        "Queues and load",
        (
            graph(
                "Requests waiting",
                "Of all servers that docs/inference.md lists. A queue that grows means that the "
                "workload needs replicas before its GPUs show it.",
                Query(_first_series(WAITING), _POD),
            ).span(12),
            graph(
                "Requests running",
                "Requests in the current batch.",
                Query(_first_series(RUNNING), _POD),
            ).span(12),
            graph(
                "KV cache in use",
                "Near 100 %, servers preempt requests or let them wait.",
                Query(_first_series(CACHE, "avg"), _POD),
                unit="percentunit",
            )
            .max(1)
            .span(12),
            graph(
                "Output tokens per second",
                "What the servers generate.",
                Query(_rate(OUTPUT_TOKENS), _POD),
            ).span(12),
        ),
    )
