"""The page of what both processes tell about themselves, from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapter.nodepool.selffamilies import FAMILIES as NODEPOOL
from adapter.selfmetrics import FAMILIES as SERVE
from apiservice.families import OTHER, Family


def page() -> str:
    """Every metric: its type, its labels and their values, its meaning."""
    lines = [
        "# What the processes tell about themselves",
        "",
        "<!-- written by `make docs` from adapter/selfmetrics.py and adapter/nodepool -->",
        "",
        "In Prometheus' text format, beside the process' own (`process_…`): memory, CPU time,",
        "file descriptors, start. [Observability](observability.md) says how to scrape them, and",
        "which alerts and dashboard are made of them.",
        "",
        "No label is a pod, a node, a device, an address, a user or the name of a metric, so the",
        "number of series does not grow with the cluster. Where the values of a label are listed,",
        f"they are all there from the start, and anything else counts as `{OTHER}`. The",
        "controller has labels for workloads, pools and namespaces: at most 500 series of each.",
        "",
        "## `serve`",
        "",
        "At `/metrics` of its HTTPS port, to those who may `get` that path.",
        "",
        *_table(SERVE),
        "",
        "## `nodepool`",
        "",
        "At `/metrics` of its HTTP port.",
        "",
        *_table(NODEPOOL),
    ]
    return "\n".join(lines) + "\n"


def _table(families: Iterable[Family]) -> Iterator[str]:
    yield "| Name | Type | Labels | Meaning |"
    yield "|---|---|---|---|"
    for family in families:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield f"| `{family.name}` | {family.kind} | {labels} | {family.text}{_values(family)} |"


def _values(family: Family) -> str:
    if not family.known:
        return ""
    return f" `{family.labels[-1]}`: " + ", ".join(f"`{value}`" for value in family.known) + "."
