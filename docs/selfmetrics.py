"""The page of the metrics that both processes serve about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapter.nodepool.run.selfmetrics import FAMILIES as NODEPOOL
from adapter.nodepool.run.selfmetrics import MOST
from adapter.server.serve.reasons import (
    ABSENCES,
    CREDENTIALS,
    FAILURES,
    REFUSALS,
    REJECTS,
    UNSCRAPABLE,
)
from adapter.server.serve.selfmetrics import FAMILIES as SERVE
from apiservice.selfmetrics.families import OTHER, Family
from docs.paragraphs import wrapped

EXPLAINED = (
    (ABSENCES, "reasons.md"),
    (REJECTS, "troubleshooting.md#why-a-sample-or-value-was-left-out"),
    (FAILURES, "troubleshooting.md#why-a-scrape-or-query-failed"),
    (UNSCRAPABLE, "troubleshooting.md#why-a-scrape-or-query-failed"),
    (REFUSALS, "troubleshooting.md#refused-connections-and-failed-authentication"),
    (CREDENTIALS, "troubleshooting.md#refused-connections-and-failed-authentication"),
)
"""Label values that another page explains, and that page."""
_MANY = 12
"""Values of a label of which more are not listed: ``/metrics`` shows them."""
_SHORT = 100
"""Characters of a list of values that is not worth a reference."""


def page() -> str:
    """Every metric: its type, its labels and their values, its meaning."""
    lines = [
        "# Self-metrics",
        "",
        "<!-- written by `make docs` from adapter/server/serve and adapter/nodepool -->",
        "",
        *wrapped(
            f"""
            Both processes serve metrics about themselves in the Prometheus text format, with the
            standard `process_…` metrics. [Observability](observability.md) describes how to scrape
            them, and which alerts and dashboards use them.

            No label holds a node, a device, an address, a user or the name of a metric. The known
            values of a label are present from the start; any other value counts as `{OTHER}`. Lists
            of more than {_MANY} values are left out here. `gma_gpu_seconds_total` has labels for
            namespaces and workloads, with `accounting.by: pod` for pods too: at most
            `accounting.accounts` sets of them. The controller has labels for workloads, node
            pools and namespaces: at most {MOST} series of each.
            """
        ),
        "## `serve`",
        "",
        "Path `/metrics` of the HTTPS port, for users that may `get` this path.",
        "",
        *_list(SERVE),
        "",
        "## `nodepool`",
        "",
        "Path `/metrics` of the HTTP port.",
        "",
        *_list(NODEPOOL),
    ]
    return "\n".join(lines) + "\n"


def _list(families: Iterable[Family]) -> Iterator[str]:
    """One item for each metric. Values that an earlier metric has are not listed again."""
    listed: dict[str, str] = {}
    for family in families:
        labels = " by " + ", ".join(f"`{label}`" for label in family.labels)
        kind = f"{family.kind}{labels if family.labels else ''}"
        values = _values(family)
        first = listed.setdefault(values, family.name)
        if first != family.name and len(values) > _SHORT:
            values = f" `{family.labels[-1]}`: as of `{first}`."
        yield f"- `{family.name}` ({kind}): {family.text}{values}"


def _values(family: Family) -> str:
    if not family.known:
        return ""
    values = list(family.known)
    linked = []
    for explained, address in EXPLAINED:
        if set(explained) <= set(values):
            linked = [f"[these]({address})"]
            values = [value for value in values if value not in explained]
    stated = bool(values) and all(f"({value})" in family.text for value in values)
    if stated or len(values) > _MANY:
        return ""
    return (
        f" `{family.labels[-1]}`: " + ", ".join((*linked, *(f"`{word}`" for word in values))) + "."
    )
