"""Writes the pages that are generated from the code (``make docs``). A test compares them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from adapter.config.settings import Settings
from adapter.config.settings.types import ADVANCED
from adapter.config.settings.values import ValueSettings
from adapter.pipeline.catalog import VENDORS, Catalog
from adapter.pipeline.catalog.field import Mig
from adapter.pipeline.catalog.formulas import Counting, Presence, Rated, Scaled, Unless, Unshown
from adapter.pipeline.catalog.metric import Formula, LoadDirection, Metric, Scope
from docs import (
    chart,
    chartdefaults,
    chartschema,
    checks,
    codemap,
    dashboard,
    reasonpage,
    selfmetrics,
    zeros,
)
from docs.paragraphs import wrapped

FOLDER = Path(__file__).parent


def settings_page() -> str:
    """Every key with its default, its variable and its description, section by section."""
    lines = [
        "# Settings",
        "",
        "<!-- written by `make docs` from adapter/config/settings -->",
        "",
        *wrapped(
            """
            The adapter and the controller `nodepool` read their settings from these sources, in
            this order of precedence: command-line flags, environment variables, the YAML file given
            with `--config`, the defaults below. Durations are seconds or Go-style text (`5s`,
            `1m30s`).

            The variable of a key is `GMA_`, the section and the key in capital letters, joined by
            `__`: `source.scrape.timeout` is `GMA_SOURCE__SCRAPE__TIMEOUT`. Write lists and mappings
            as JSON.

            An unknown key, an unknown variable or a bad value is an error that names the key and
            the fix. At the start, the process exits with this error. Later, it logs the error and
            keeps the previous configuration.

            The value in brackets is the default. A key without one is not set, or empty.

            Each section lists the common settings first. Advanced settings are for unusual
            environments, for clusters of unusual size, and for bounds. Change them only if you know
            why the default does not fit.
            """
        ),
    ]
    lines += _section(Settings, ())
    return "\n".join(lines).rstrip() + "\n"


def _section(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    plain = {name: field for name, field in model.model_fields.items() if not _model(field)}
    common = {name: field for name, field in plain.items() if ADVANCED not in field.metadata}
    advanced = {name: field for name, field in plain.items() if ADVANCED in field.metadata}
    if path:
        yield f"## `{'.'.join(path)}`"
        yield ""
        yield _prose(model)
        yield ""
    if common:
        yield from _keys(model, common)
    for rows in (_rows(field) for field in common.values()):
        if rows is not None:
            yield f"Keys of an entry in `{'.'.join((*path, _name(model, rows)))}`: {_prose(rows)}"
            yield ""
            yield from _keys(rows, rows.model_fields)
    if advanced:
        yield f"### Advanced settings of `{'.'.join(path)}`"
        yield ""
        yield from _keys(model, advanced)
    for name, field in model.model_fields.items():
        section = _model(field)
        if section:
            yield from _section(section, (*path, name))


def _keys(model: type[BaseModel], fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    texts = _texts(model)
    for name, field in fields.items():
        default = _default(field)
        yield f"- `{name}`{f' ({default})' if default else ''}: {texts[name]}"
    yield ""


def _model(field: FieldInfo) -> type[BaseModel] | None:
    annotation: Any = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _rows(field: FieldInfo) -> type[BaseModel] | None:
    first: Any = next(iter(get_args(field.annotation)), None)
    return first if isinstance(first, type) and issubclass(first, BaseModel) else None


def _name(model: type[BaseModel], rows: type[BaseModel]) -> str:
    return next(name for name, field in model.model_fields.items() if _rows(field) is rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{shown}`" if shown and value != {} else ""


def _prose(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        tree = ast.parse(inspect.getsource(each))
        definition = next(node for node in tree.body if isinstance(node, ast.ClassDef))
        for field, below in pairwise(definition.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split()).replace("``", "`")
    return found


def _direction_rows(catalog: Catalog) -> Iterator[str]:
    yield "| Under load | Metrics |"
    yield "|---|---|"
    for load in (LoadDirection.FALLS, LoadDirection.STEADY):
        names = [name for name in catalog.principal if catalog.metrics[name].load is load]
        yield f"| {load} | {', '.join(f'`{name}`' for name in names)} |"


def metrics_page() -> str:
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

            If a pod has several devices, the metric combines the values of the devices. If an
            object has several pods (a namespace, a Service, a Deployment, …), the metric combines
            the values of the pods.

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
        *_metric_rows([m for m in named if m.scope is Scope.SERVER]),
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
        ways = (metric.unit, metric.kind, metric.over_devices, metric.over_pods)
        alike.setdefault(ways, []).append(f"`{metric.name}`")
    yield "| Names | Unit | Value | Over a pod's devices | Over an object's pods |"
    yield "|---|---|---|---|---|"
    for ways, names in alike.items():
        yield f"| {', '.join(names)} | {' | '.join(ways)} |"


def _sources(metrics: Iterable[Metric], catalog: Catalog) -> Iterator[str]:
    """One list for all metrics with the same formulas."""
    alike: dict[tuple[Formula, ...], list[Metric]] = {}
    for metric in metrics:
        alike.setdefault(metric.formulas, []).append(metric)
    for formulas, same in alike.items():
        yield f"### {', '.join(f'`{metric.name}`' for metric in same)}"
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
        yield from _metric_rows(catalog.metrics[f.name] for f in fields if not f.series)
        yield ""


def _spelling_rows(catalog: Catalog) -> Iterator[str]:
    yield "| Name | Other names |"
    yield "|---|---|"
    for field in catalog.fields.values():
        if not field.series:
            others = [
                f"`{name}`" + (f" ({unit})" if unit != field.unit else "")
                for name, _, unit in field.names
                if name != field.name
            ]
            if others:
                yield f"| `{field.name}` | {', '.join(others)} |"


PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks.page,
    "code-map.md": codemap.page,
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "reasons.md": reasonpage.page,
    "self-metrics.md": selfmetrics.page,
    **{f"../charts/gpu-metrics-adapter/{name}": page for name, page in dashboard.pages().items()},
    "../charts/gpu-metrics-adapter/files/defaults.yaml": chartdefaults.page,
    "../charts/gpu-metrics-adapter/values.schema.json": chartschema.page,
    "../charts/gpu-metrics-adapter/README.md": chart.page,
}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
