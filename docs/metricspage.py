"""The page of the metrics: docs/metrics.md, written from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from adapter.config.settings.values import ValueSettings
from adapter.pipeline.catalog import VENDORS, Catalog
from adapter.pipeline.catalog.field import Mig
from adapter.pipeline.catalog.formulas import (
    Counting,
    Presence,
    Rated,
    Scaled,
    Total,
    Unless,
    Unshown,
)
from adapter.pipeline.catalog.metric import Formula, LoadDirection, Metric, Scope
from adapter.pipeline.catalog.promise import SLO_RATIO
from adapter.pipeline.catalog.seriesdemand import PATIENCE
from adapter.pipeline.catalog.servermeasures import STATISTICS, WINDOW
from docs import zeros
from docs.paragraphs import wrapped

_PREFIXES: Final = {"gpu_": "amd_gpu_", "llm_d_epp_": "llm_d_router_epp_"}
"""Beginning of a name -> what some versions and configurations write instead."""


def _direction_rows(catalog: Catalog) -> Iterator[str]:
    yield "| Under load | Metrics |"
    yield "|---|---|"
    for load in (LoadDirection.FALLS, LoadDirection.STEADY):
        names = [name for name in catalog.principal if catalog.metrics[name].load is load]
        yield f"| {load} | {', '.join(f'`{name}`' for name in names)} |"


def page() -> str:
    """Every metric that is served: unit, whether a mean, and how devices and pods combine."""
    catalog = Catalog()
    neutral = list(catalog.neutral)
    window = ValueSettings().window
    lines = [
        "# Metrics",
        "",
        "<!-- written by `make docs` from adapter/pipeline/catalog -->",
        "",
        *wrapped(
            f"""
            A *mean* is taken over `values.window`, {window:g} s by default; the answer states the
            window. A *last* value is the newest. A *rate* is the increase of a counter per
            second over the window, from at least two samples.

            The last column of a table says how a metric combines the values of a pod's devices, and
            of an object's pods (a namespace, a Service, a Deployment, …); one word means both.

            To add a metric of your own, write an entry of `metrics` in the
            [settings](settings.md).
            """
        ),
        "## Vendor-neutral names",
        "",
        *_metric_rows([m for m in neutral if m.scope is Scope.DEVICE]),
        "",
        *wrapped(
            """
            `gpu_utilization_imbalance` is the utilization of the busiest device minus that of the
            least busy device, in percentage points.

            `gpu_utilization_of_request` divides the utilization by the share of a device that the
            pod's spec requests: `nvidia.com/gpucores`, one of a node's replicas, or a whole device.
            It is absent if the share is not known, or if the value includes the work of other pods.
            """
        ),
        "## Inference servers",
        "",
        *wrapped(
            """
            These metrics describe the pod that serves the page, which needs no GPU.
            Metrics with `gateway` in the name describe a program in front of the servers, such as
            an endpoint picker ([gateways](inference.md#gateways-of-a-pool-of-servers)).
            """
        ),
        *_metric_rows(
            [m for m in neutral if m.scope is Scope.SERVER and not m.on_demand and not m.promised]
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
        *_metric_rows([m for m in neutral if m.on_demand]),
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
            A formula of several fields needs all of them. *Without* a name: if the page does not
            have it. *Without an exporter*: if none describes the pod's devices. *First partition*:
            each partition has the value of its board's first.
            """
        ),
        *_sources([m for m in neutral if not _of_server(m)], catalog),
        "### Other metrics of inference servers",
        "",
        *_server_rows([m for m in neutral if _of_server(m)], catalog),
        "",
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
        "",
        "### Other names of the same fields",
        "",
        "The adapter reads these names too, and the API serves them. A unit in brackets differs.",
        "",
        *_spelling_rows(catalog),
    ]
    return "\n".join(lines) + "\n"


def _metric_rows(metrics: Iterable[Metric]) -> Iterator[str]:
    """One row for all metrics with the same unit and the same ways of combining."""
    yield "| Names | Unit | Value | Over devices, pods |"
    yield "|---|---|---|---|"
    yield from _alike(metrics)


def _alike(metrics: Iterable[Metric]) -> Iterator[str]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for metric in metrics:
        over = dict.fromkeys((metric.over_devices, metric.over_pods))
        alike.setdefault((metric.unit, metric.kind, ", ".join(over)), []).append(metric.name)
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
    """One list for all metrics with the same formulas.

    A list whose formulas read the same fields as the first ones of an earlier list refers to it.
    """
    alike: dict[tuple[Formula, ...], list[Metric]] = {}
    for metric in metrics:
        if not metric.promised:
            alike.setdefault(metric.formulas, []).append(metric)
    earlier: dict[str, list[tuple[frozenset[str], str]]] = {}
    for formulas, same in alike.items():
        title = _named(metric.name for metric in same)
        yield f"### {title}"
        yield ""
        if any(isinstance(formula, Presence) for formula in formulas):
            yield "Any sample of the device."
            yield ""
            continue
        parts = {formula for metric in same for formula in metric.of_parts}
        texts = [_formula(formula, catalog, of_part=formula in parts) for formula in formulas]
        read = [(frozenset(names), where) for names, where in texts]
        number = len(texts)
        other = next((name for name, more in earlier.items() if more[:number] == read), "")
        if other and number > 1:
            yield f"As formulas 1 to {number} of {other}."
        else:
            for at, (formula, (names, where)) in enumerate(zip(formulas, texts, strict=True), 1):
                yield f"{at}. {_joined(formula, names)}{f': {where}' if where else ''}"
        yield ""
        earlier[title] = read


def _formula(formula: Formula, catalog: Catalog, *, of_part: bool) -> tuple[list[str], str]:
    """Return the series that a formula reads, and the conditions under which it applies."""
    some = ("values of pods only",) if of_part else ()
    return _shown(formula, catalog), ", ".join((*some, *_conditions(formula, catalog)))


def _of_server(metric: Metric) -> bool:
    """Whether each server's page has its own names, so that the formulas need no order."""
    ordered = any(isinstance(_inner(formula), Unshown) for formula in metric.formulas)
    return metric.scope is Scope.SERVER and not metric.promised and not ordered


def _server_rows(metrics: Iterable[Metric], catalog: Catalog) -> Iterator[str]:
    """One row for all metrics with the same formulas."""
    alike: dict[tuple[Formula, ...], list[str]] = {}
    for metric in metrics:
        alike.setdefault(metric.formulas, []).append(metric.name)
    yield "| Metrics | Series |"
    yield "|---|---|"
    for formulas, names in alike.items():
        series = []
        for formula in formulas:
            read, where = _formula(formula, catalog, of_part=False)
            series.append(f"{_joined(formula, read)}{f' ({where})' if where else ''}")
        yield f"| {_named(names)} | {', '.join(series)} |"


def _conditions(formula: Formula, catalog: Catalog) -> Iterator[str]:
    """The conditions under which a formula applies; none if it always does."""
    if isinstance(formula, Unless):
        yield from _conditions(formula.formula, catalog)
        *more, last = (_series(name, catalog) for name in formula.others)
        yield f"without {', '.join(more)} or {last}" if more else f"without {last}"
        return
    if isinstance(formula, Unshown):
        yield "no value: the page cannot show a queue"
    if catalog.fields[formula.fields[0]].mig is Mig.FIRST:
        yield "first partition"
    if catalog.fields[formula.fields[0]].seen:
        yield "without an exporter"
    if isinstance(formula, Counting):
        yield f"0 if only {_series(formula.beside, catalog)} is on the page"
    if not isinstance(formula, Scaled | Rated):
        return
    if isinstance(formula, Scaled) and formula.mig is not None:
        yield "MIG instances and partitions" if formula.mig else "whole devices"
    if formula.unless is not None:
        yield f"without {_series(formula.unless, catalog)}"


def _shown(formula: Formula, catalog: Catalog) -> list[str]:
    formula = _inner(formula)
    fields = (formula.field,) if isinstance(formula, Counting) else formula.fields
    return [_series(name, catalog) for name in dict.fromkeys(fields)]


def _joined(formula: Formula, names: Iterable[str]) -> str:
    return (" + " if isinstance(_inner(formula), Total) else ", ").join(names)


def _inner(formula: Formula) -> Formula:
    return formula.formula if isinstance(formula, Unless) else formula


def _series(name: str, catalog: Catalog) -> str:
    field = catalog.fields[name]
    return f"`{field.series or field.name}{field.condition}`"


def _vendor_rows(catalog: Catalog) -> Iterator[str]:
    """One table, in which a vendor is named in the first of its rows."""
    yield "| Exporter | Names | Unit | Value | Over devices, pods |"
    yield "|---|---|---|---|---|"
    for vendor, fields in VENDORS.items():
        names = [field.name for field in fields if field.name in catalog.metrics]
        rows = _alike(map(catalog.metrics.__getitem__, names))
        for title, row in zip((vendor, *[""] * len(names)), rows, strict=False):
            yield f"| {title} {row}" if title else f"| {row}"


def _spelling_rows(catalog: Catalog) -> Iterator[str]:
    """One line for the names that differ by a prefix only, and an item for each other field.

    Raises:
        ValueError: a field lacks the name with the other prefix.
    """
    alike = ", and ".join(f"`{old}…` is also `{new}…`" for old, new in _PREFIXES.items())
    yield from wrapped(f"{alike}.")
    for field in catalog.fields.values():
        if field.series:
            continue
        others = {
            name: f"`{name}`" + (f" ({unit})" if unit != field.unit else "")
            for name, _, unit in field.names
            if name != field.name
        }
        for old, new in _PREFIXES.items():
            if field.name.startswith(old) and not others.pop(f"{new}{field.name[len(old) :]}", ""):
                raise ValueError(f"{field.name} has no name that begins with {new}")
        if others:
            yield f"- `{field.name}`: {', '.join(others.values())}"
