"""The page of the metrics: docs/metrics.md, written from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from adapter.config.settings.values import ValueSettings
from adapter.pipeline.catalog import VENDORS, Catalog
from adapter.pipeline.catalog.field import Mig
from adapter.pipeline.catalog.formulas import Counting, Presence, Rated, Scaled, Unless, Unshown
from adapter.pipeline.catalog.metric import Formula, LoadDirection, Metric, Scope
from adapter.pipeline.catalog.promise import SLO_RATIO
from adapter.pipeline.catalog.seriesdemand import PATIENCE
from adapter.pipeline.catalog.servermeasures import STATISTICS, WINDOW
from docs import zeros
from docs.paragraphs import wrapped

_PREFIX: Final = "amd_"
"""What some configurations of AMD's exporter write before each name."""


def _direction_rows(catalog: Catalog) -> Iterator[str]:
    yield "| Under load | Metrics |"
    yield "|---|---|"
    for load in (LoadDirection.FALLS, LoadDirection.STEADY):
        names = [name for name in catalog.principal if catalog.metrics[name].load is load]
        yield f"| {load} | {', '.join(f'`{name}`' for name in names)} |"


def page() -> str:
    """Every metric that is served: unit, whether a mean, and how devices and pods combine."""
    catalog = Catalog()
    named = list(catalog.neutral)
    window = ValueSettings().window
    lines = [
        "# Metrics",
        "",
        "<!-- written by `make docs` from adapter/pipeline/catalog -->",
        "",
        *wrapped(
            f"""
            A *mean* is taken over `values.window`, {window:g} s by default; the answer states the
            window. A *last* value is the newest value. A *rate* is the increase of a counter per
            second over the window, from at least two samples.

            The last column of a table says how a metric combines the values of a pod's devices, and
            of an object's pods (a namespace, a Service, a Deployment, …); one word means both.

            To add a metric of your own, write an entry of `metrics` in the
            [settings](settings.md).
            """
        ),
        "## Vendor-neutral names",
        "",
        *_metric_rows([m for m in named if m.scope is Scope.DEVICE]),
        "",
        *wrapped(
            """
            `gpu_utilization_imbalance` is the utilization of the busiest device minus that of the
            least busy device, in percentage points. It is 0 for one device.

            `gpu_utilization_of_request` divides the utilization by the share of a device that the
            pod's spec requests: `nvidia.com/gpucores`, one of a node's replicas, or a whole device.
            It is absent if the share is not known, or if the value includes the work of other pods.
            """
        ),
        "## Inference servers",
        "",
        *wrapped(
            """
            These metrics describe the pod that serves the page. The pod does not need a GPU.
            Metrics with `gateway` in the name describe a program in front of the servers, such as
            an endpoint picker ([gateways](inference.md#gateways-of-a-pool-of-servers)).
            """
        ),
        *_metric_rows(
            [m for m in named if m.scope is Scope.SERVER and not m.on_demand and not m.promised]
        ),
        "",
        *wrapped(
            f"""
            `{SLO_RATIO}` is how near a pod is to the load at which its latency promise breaks: 1
            there. The query states the promise in its metric selector
            ([promises](inference.md#promise-a-latency)). Over pods it is the mean.
            """
        ),
        *wrapped(
            f"""
            The metrics below are read on demand: from the first question for one of them until
            nobody has asked for it for {PATIENCE / 60:.0f} minutes. The first value follows with
            the second page. They are taken over {WINDOW:.0f} s. A *histogram* value is a quantile
            or the mean of what the servers' histograms counted in the window
            ([latencies](inference.md#latencies-and-tokens)): `*` is {", ".join(STATISTICS)}.
            """
        ),
        *_metric_rows([m for m in named if m.on_demand]),
        "",
        "## What a metric will not exceed",
        "",
        *wrapped(
            """
            With `ahead.enabled`, a metric with the suffix `_expected` says what the measured one
            will not exceed until a replica created now is Ready
            ([replicas ahead of demand](ahead.md)).
            """
        ),
        *_metric_rows(catalog.metrics[name] for name in catalog.expected),
        "",
        "## Metrics that do not rise with the load",
        "",
        *wrapped(
            """
            An HPA adds replicas while a value is above its target. A metric that falls under load
            scales backwards, and one that does not follow the load scales for another reason, such
            as cooling or a fault. `doctor`, also with `-f`, and `explain hpa` find such targets
            ([GMA413](checks.md#gma413)). All other metrics rise with the load.
            """
        ),
        *_direction_rows(catalog),
        "",
        "## Formulas",
        "",
        *wrapped(
            """
            The adapter uses the first formula of a metric whose fields have a value for the device.
            A formula joined by `+` needs all of its fields.
            """
        ),
        *_sources(named, catalog),
        *zeros.section(catalog),
        "## Exporter names",
        "",
        *wrapped(
            """
            The API also serves the exporters' own names, in the unit of the exporter's
            documentation. It accepts each of the names below, independent of the name that the page
            uses, and each name in lower case.
            """
        ),
        *_vendor_rows(catalog),
        "### Other names of the same fields",
        "",
        "The adapter reads these names from pages, and the API serves them too. A unit in brackets",
        "differs from that of the name.",
        "",
        *_spelling_rows(catalog),
    ]
    return "\n".join(lines) + "\n"


def _metric_rows(metrics: Iterable[Metric]) -> Iterator[str]:
    """One row for all metrics with the same unit and the same ways of combining."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for metric in metrics:
        over = dict.fromkeys((metric.over_devices, metric.over_pods))
        alike.setdefault((metric.unit, metric.kind, ", ".join(over)), []).append(metric.name)
    if not alike:
        return
    yield "| Names | Unit | Value | Over devices, pods |"
    yield "|---|---|---|---|"
    for ways, names in alike.items():
        yield f"| {_named(names)} | {' | '.join(ways)} |"


def _named(names: Iterable[str]) -> str:
    """Names in a row; those that differ in their statistic only are one, with a ``*``."""
    short = (
        f"{stem}_*"
        if (stem := name.rpartition("_")[0]) and name.rpartition("_")[2] in STATISTICS
        else name
        for name in names
    )
    return ", ".join(f"`{name}`" for name in dict.fromkeys(short))


def _sources(metrics: Iterable[Metric], catalog: Catalog) -> Iterator[str]:
    """One list for all metrics with the same formulas."""
    alike: dict[tuple[Formula, ...], list[Metric]] = {}
    for metric in metrics:
        if not metric.promised:
            alike.setdefault(metric.formulas, []).append(metric)
    for formulas, same in alike.items():
        yield f"### {_named(metric.name for metric in same)}"
        yield ""
        if any(isinstance(formula, Presence) for formula in formulas):
            yield "Any sample of the device."
            yield ""
            continue
        for number, formula in enumerate(formulas, 1):
            parts = " + ".join(_shown(formula, catalog))
            of_part = any(formula in metric.of_parts for metric in same)
            some = ("values of pods only",) if of_part else ()
            where = ", ".join((*some, *_conditions(formula, catalog)))
            yield f"{number}. {parts}{f': {where}' if where else ''}"
        yield ""


def _conditions(formula: Formula, catalog: Catalog) -> Iterator[str]:
    """The conditions under which a formula applies; none if it always does."""
    if isinstance(formula, Unless):
        yield from _conditions(formula.formula, catalog)
        others = " nor ".join(_series(name, catalog) for name in formula.others)
        yield (
            f"the page has neither {others}"
            if len(formula.others) > 1
            else (f"the page does not have {others}")
        )
        return
    if isinstance(formula, Unshown):
        yield "no value: the page cannot show a queue"
    if catalog.fields[formula.fields[0]].mig is Mig.FIRST:
        yield "each partition has the value of its board's first"
    if catalog.fields[formula.fields[0]].seen:
        yield "no exporter describes the devices of the pod"
    if isinstance(formula, Counting):
        yield f"0 if only {_series(formula.beside, catalog)} is on the page"
    if not isinstance(formula, Scaled | Rated):
        return
    if isinstance(formula, Scaled) and formula.mig is not None:
        yield "MIG instances and partitions" if formula.mig else "whole devices"
    if formula.unless is not None:
        yield f"the exporter does not report {_series(formula.unless, catalog)}"


def _shown(formula: Formula, catalog: Catalog) -> Iterator[str]:
    if isinstance(formula, Unless):
        formula = formula.formula
    named = (formula.field,) if isinstance(formula, Counting) else formula.fields
    for name in dict.fromkeys(named):
        yield _series(name, catalog)


def _series(name: str, catalog: Catalog) -> str:
    field = catalog.fields[name]
    return f"`{field.series or field.name}{field.condition}`"


def _vendor_rows(catalog: Catalog) -> Iterator[str]:
    for vendor, fields in VENDORS.items():
        yield f"### {vendor}"
        yield ""
        own = [field.name for field in fields if field.name in catalog.metrics]
        yield from _metric_rows(map(catalog.metrics.__getitem__, own))
        yield ""


def _spelling_rows(catalog: Catalog) -> Iterator[str]:
    """One line for the names that differ by a prefix only, and an item for each other field."""
    prefixed: list[str] = []
    rows: list[str] = []
    for field in catalog.fields.values():
        if field.series:
            continue
        others = [
            f"`{name}`" + (f" ({unit})" if unit != field.unit else "")
            for name, _, unit in field.names
            if name != field.name
        ]
        if others == [f"`{_PREFIX}{field.name}`"]:
            prefixed.append(f"`{field.name}`")
        elif others:
            rows.append(f"- `{field.name}`: {', '.join(others)}")
    yield from wrapped(f"With the prefix `{_PREFIX}`: {', '.join(prefixed)}.")
    yield from rows
