"""Writes the pages that come from the code: ``make docs``; a test compares them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from adapter.basis import Presence, Rated, Scaled
from adapter.catalog import VENDORS, Catalog
from adapter.environment import PREFIX
from adapter.metric import Basis, Metric, Scope
from adapter.settings import Settings
from docs import chart, chartschema, dashboard, selfmetrics

FOLDER = Path(__file__).parent


def settings_page() -> str:
    """Every key with its default, its variable and its documentation, section by section."""
    lines = [
        "# Settings",
        "",
        "<!-- written by `make docs` from adapter/settings -->",
        "",
        "From strongest to weakest: command-line flag, environment variable, the YAML file given",
        "with `--config`, the default. Durations are seconds or Go-style text (`5s`, `1m30s`).",
        "In the environment, lists and mappings are written as JSON.",
        "",
    ]
    lines += _section(Settings, ())
    return "\n".join(lines) + "\n"


def _section(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    plain = {name: field for name, field in model.model_fields.items() if not _model(field)}
    if path:
        yield f"## `{'.'.join(path)}`"
        yield ""
        yield _prose(model)
        yield ""
    if plain:
        yield "| Key | Default | Variable | Meaning |"
        yield "|---|---|---|---|"
    for name, field in plain.items():
        variable = PREFIX + "__".join((*path, name)).upper()
        yield f"| `{name}` | {_default(field)} | `{variable}` | {_text(field)} |"
    yield ""
    for rows in (_rows(field) for field in plain.values()):
        if rows is not None:
            key = ".".join((*path, _name(model, rows)))
            yield f"A row of `{key}`: {_prose(rows)}"
            yield ""
            yield "| Key | Default | Meaning |"
            yield "|---|---|---|"
            for name, field in rows.model_fields.items():
                yield f"| `{name}` | {_default(field)} | {_text(field)} |"
            yield ""
    for name, field in model.model_fields.items():
        section = _model(field)
        if section:
            yield from _section(section, (*path, name))


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
        return "none"
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{shown}`" if shown and value != {} else "empty"


def _prose(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _text(field: FieldInfo) -> str:
    text = " ".join((field.description or "").split()).replace("``", "`")
    return text.replace("|", "\\|")


def metrics_page() -> str:
    """Every metric that is served: unit, whether a mean, and how devices and pods combine."""
    catalog = Catalog()
    named = list(catalog.neutral)
    lines = [
        "# Metrics",
        "",
        "<!-- written by `make docs` from adapter/catalog -->",
        "",
        "A *mean* is taken over `values.window` (30 s unless set), which the answer states; a",
        "*last* value is the newest. A pod with several devices combines them; an object with",
        "several pods (a namespace, a Service, a Deployment, …) combines its pods. A *rate* is a",
        "counter's increase per second over the window, from at least two samples.",
        "",
        "Metrics of your own are rows of `metrics` in the [settings](settings.md).",
        "",
        "## Vendor-neutral names",
        "",
        *_metric_rows([m for m in named if m.scope is Scope.DEVICE]),
        "",
        "`gpu_utilization_imbalance` is the busiest device less the idlest, in percentage points:",
        "0 for one device. `gpu_utilization_of_request` divides by the share of a device that the",
        "pod's spec asks for (`nvidia.com/gpucores`, one of a node's replicas, or all) and is",
        "absent where the share is not known or other pods' work is in the value.",
        "",
        "## Inference servers",
        "",
        "About the pod that serves the page; it needs no GPU.",
        "",
        *_metric_rows([m for m in named if m.scope is Scope.SERVER]),
        "",
        "## What each is made of",
        "",
        "The first of these that a device has a value of; parts joined by `+` are taken together.",
        "",
        *_sources(named, catalog),
        "## Exporter names",
        "",
        "Served verbatim, in the unit of the exporter's documentation, whichever of the names",
        "below the page uses. Each is also served in lower case.",
        "",
        *_vendor_rows(catalog),
        "Other spellings of the same fields, read from pages and served too:",
        "",
        *_spelling_rows(catalog),
    ]
    return "\n".join(lines) + "\n"


def _metric_rows(metrics: Iterable[Metric]) -> Iterator[str]:
    yield "| Name | Unit | Value | Over a pod's devices | Over an object's pods |"
    yield "|---|---|---|---|---|"
    for metric in metrics:
        yield (
            f"| `{metric.name}` | {metric.unit} | {metric.kind} | {metric.over_devices} "
            f"| {metric.over_pods} |"
        )


def _sources(metrics: Iterable[Metric], catalog: Catalog) -> Iterator[str]:
    """A table for all metrics that are made of the same."""
    alike: dict[tuple[Basis, ...], list[str]] = {}
    for metric in metrics:
        alike.setdefault(metric.bases, []).append(f"`{metric.name}`")
    vendors = {field.name: vendor for vendor, fields in VENDORS.items() for field in fields}
    for bases, names in alike.items():
        yield f"### {', '.join(names)}"
        yield ""
        if any(isinstance(basis, Presence) for basis in bases):
            yield "Any row of the device."
            yield ""
            continue
        yield "| From | Of | Where |"
        yield "|---|---|---|"
        for basis in bases:
            way = " + ".join(_shown(basis, catalog))
            where = ", ".join(_conditions(basis, catalog))
            yield f"| {way} | {vendors[basis.fields[0]]} | {where} |"
        yield ""


def _conditions(basis: Basis, catalog: Catalog) -> Iterator[str]:
    """Where a way is open; nothing where it always is."""
    if catalog.fields[basis.fields[0]].seen:
        yield "pods of whose devices no exporter speaks"
    if not isinstance(basis, Scaled | Rated):
        return
    if isinstance(basis, Scaled) and basis.mig is not None:
        yield "MIG instances and partitions" if basis.mig else "whole devices"
    if basis.unless is not None:
        yield f"exporters without {_series(basis.unless, catalog)}"


def _shown(basis: Basis, catalog: Catalog) -> Iterator[str]:
    for name in dict.fromkeys(basis.fields):
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
    yield "| Name | Unit | Same as |"
    yield "|---|---|---|"
    for field in catalog.fields.values():
        for name in (*(name for name, _, _ in field.renamed), *field.legacy):
            yield f"| `{name}` | {catalog.metrics[name].unit} | `{field.name}` |"


PAGES = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "self-metrics.md": selfmetrics.page,
    "../charts/gpu-metrics-adapter/files/dashboard.json": dashboard.page,
    "../charts/gpu-metrics-adapter/values.schema.json": chartschema.page,
    "../charts/gpu-metrics-adapter/README.md": chart.page,
}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
