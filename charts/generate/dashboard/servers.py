"""Queues and load of inference servers, from their own pages."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.formulas import hides
from adapter.pipeline.catalog.metric import Kind, Unit
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.serverkind import CACHE, RUNNING, WAITING
from adapter.pipeline.catalog.serverkinds import formulas, measured
from adapter.pipeline.catalog.servermeasures import OUTPUT_TOKENS
from charts.generate.dashboard.panel import Panel, Query, Row

_CHOSEN: Final = '{namespace=~"$namespace", pod=~"($workload)(-.*)?"}'
_CATALOG: Final = Catalog()
_POD: Final = "{{namespace}}/{{pod}}"


def _any(metric: str, how: str = "sum") -> str:
    """The first series of a neutral metric that a pod has; a pod has those of one server."""
    return " or ".join(f"{how} by (namespace, pod) ({name})" for name in _series(metric))


def _selected(field: Field) -> str:
    """A field's series of the chosen pods."""
    conditions = "".join(f', {label}="{value}"' for label, value in field.where)
    return (field.series or field.name) + _CHOSEN.replace("}", conditions + "}")


def _series(metric: str) -> list[str]:
    """The usual series of each server, in the order in which the adapter reads them."""
    fields = (
        _CATALOG.fields[formula.fields[0]] for formula in formulas(metric) if not hides(formula)
    )
    return list(dict.fromkeys(_selected(field) for field in fields if field.kind is not Kind.RATE))


def _counted(metric: str) -> list[Field]:
    """What the servers count for a metric, under the usual name of each."""
    return [_CATALOG.fields[formula.fields[0]] for formula in measured()[metric]]


def _latency(latency: Latency) -> str:
    """The 90th percentile of each pod in seconds; a pod has that of one server."""
    found = []
    for field in _counted(latency):
        rate = f"rate({field.name}_bucket{_CHOSEN}[$__rate_interval])"
        factor = " / 1000" if field.unit is Unit.MILLISECONDS else ""
        found.append(f"histogram_quantile(0.9, sum by (namespace, pod, le) ({rate})){factor}")
    return " or ".join(found)


def _rate(metric: str) -> str:
    """The counter of each pod, per second."""
    return " or ".join(
        f"sum by (namespace, pod) (rate({field.name}{_CHOSEN}[$__rate_interval]))"
        for field in _counted(metric)
    )


SERVERS: Final = Row(
    "Inference servers: queues and latencies",
    (
        Panel(
            "Requests waiting",
            "Of all servers that docs/inference.md lists. A queue that grows means that the "
            "workload needs replicas before its GPUs show it.",
            "none",
            (Query(_any(WAITING), _POD),),
            low=0,
        ),
        Panel(
            "Requests running",
            "Requests in the current batch.",
            "none",
            (Query(_any(RUNNING), _POD),),
            low=0,
        ),
        Panel(
            "KV cache in use",
            "Near 100 %, servers preempt requests or let them wait.",
            "percentunit",
            (Query(_any(CACHE, "avg"), _POD),),
            low=0,
            high=1,
        ),
        Panel(
            "Time to first token, 90 %",
            "From the histograms that Prometheus stores, whether or not an HPA asks for them. It "
            "stays flat until a server is full.",
            "s",
            (Query(_latency(Latency.FIRST_TOKEN), _POD),),
            low=0,
        ),
        Panel(
            "Time per output token, 90 %",
            "The time between two tokens, or its mean over a request: docs/inference.md says which "
            "of the two each server counts.",
            "s",
            (Query(_latency(Latency.OUTPUT_TOKEN), _POD),),
            low=0,
        ),
        Panel(
            "Output tokens per second",
            "What the servers generate.",
            "none",
            (Query(_rate(OUTPUT_TOKENS), _POD),),
            low=0,
        ),
    ),
)
