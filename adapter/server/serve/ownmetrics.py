"""Turn the user's own metrics (``metrics`` in the settings) into catalogue fields and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import float_info
from typing import Final

from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.catalog.field import Field, Mig, Spelling
from adapter.pipeline.catalog.formulas import Scaled
from adapter.pipeline.catalog.metric import Kind, Metric, Scope
from adapter.pipeline.catalog.table import Catalog

SERIES_GROUP: Final = "metrics"
"""The query group that fetches the series of all own metrics."""


def rows(wanted: Sequence[MetricSettings], catalog: Catalog) -> tuple[list[Field], list[Metric]]:
    """Return the fields and metrics to add to the catalogue.

    Args:
        wanted: entries for which :func:`problems` finds nothing.
    """
    fields: list[Field] = []
    metrics: list[Metric] = []
    for row in wanted:
        spelling = _find_spelling(row, catalog)
        if spelling is None:
            field, factor = _field(row, catalog), row.scale
            fields.append(field)
        else:
            field, factor = spelling.field, row.scale / spelling.factor
        metrics += _metrics(row, field, factor)
    return fields, metrics


def queries(wanted: Iterable[MetricSettings]) -> Mapping[str, str]:
    """Return query group -> PromQL, for the entries with a query."""
    return {_group(row): row.query for row in wanted if row.query is not None}


def problems(
    wanted: Sequence[MetricSettings], catalog: Catalog, *, prometheus: bool
) -> Iterator[str]:
    """Yield what is wrong with the entries, as key and fix.

    Args:
        prometheus: whether values come from a query API.
    """
    mine: dict[str, int] = {}
    for index, row in enumerate(wanted):
        key, lower = f"metrics.{index}", row.name.lower()
        first = mine.setdefault(lower, index)
        if first != index:
            yield f"{key}.name: metrics.{first} already has the name {lower}: choose another"
        if row.query is not None and not prometheus:
            yield f"{key}.query: needs source.kind prometheus; for scraped pages, set series"
        spelling = _find_spelling(row, catalog)
        if spelling is None:
            continue
        if row.low is not None or row.high is not None:
            yield (
                f"{key}: the catalogue bounds {row.series} to {spelling.low:g}-{spelling.high:g}: "
                "remove low and high"
            )
        limit = row.limit
        if limit is not None and row.kind is not Kind.RATE and spelling.high * row.scale > limit:
            yield (
                f"{key}.scale: {row.series} has values up to {spelling.high:g}, "
                f"a {row.unit} up to {limit:g}: "
                f"set scale to {limit / spelling.high:g}, or another unit"
            )
        if row.scope not in (None, spelling.field.scope):
            yield f"{key}.scope: {row.series} is about a {spelling.field.scope}: remove scope"


def _find_spelling(row: MetricSettings, catalog: Catalog) -> Spelling | None:
    """Return the catalogue's spelling of the entry's series, or None."""
    if row.series is None or row.labels or row.series in catalog.label_variants:
        return None
    spelling = catalog.spellings.get(row.series)
    # What is read on demand is read for the row as the row says.
    return None if spelling is None or spelling.field.on_demand else spelling


def _field(row: MetricSettings, catalog: Catalog) -> Field:
    low, high = row.bounds
    rate = row.kind is Kind.RATE
    by_devices, by_pods = row.combined
    return Field(
        row.name,
        row.unit,
        high=float_info.max if rate else high / row.scale,
        low=0.0 if rate else low / row.scale,
        kind=row.kind,
        over_devices=by_devices,
        over_pods=by_pods,
        group=_group(row),
        scope=row.scope or _usual_scope(row, catalog),
        series=row.series or row.name,
        where=tuple(sorted(row.labels.items())),
        part_labels=_part_labels(row, catalog),
    )


def _usual_scope(row: MetricSettings, catalog: Catalog) -> Scope:
    if row.series is None:
        return Scope.SERVER
    label_variants = catalog.label_variants.get(row.series)
    spelling = label_variants[0][1] if label_variants else catalog.spellings.get(row.series)
    return spelling.field.scope if spelling else Scope.DEVICE


def _part_labels(row: MetricSettings, catalog: Catalog) -> frozenset[str] | None:
    """Return the labels that identify a server's parts; None for a series not in the catalogue."""
    spelling = catalog.spellings.get(row.series or "")
    return spelling.field.part_labels if spelling else None


def _group(row: MetricSettings) -> str:
    return SERIES_GROUP if row.query is None else f"metrics.{row.name}"


def _metrics(row: MetricSettings, field: Field, factor: float) -> Iterator[Metric]:
    by_devices, by_pods = row.combined
    mig = False if field.mig is Mig.INVALID else None
    for name in dict.fromkeys((row.name, row.name.lower())):
        yield Metric(
            name,
            row.unit,
            row.kind,
            (Scaled(field.name, factor, mig=mig),),
            over_devices=by_devices,
            over_pods=by_pods,
            per_board=field.per_board,
            scope=field.scope,
            divisible=field.divisible,
            window=row.window,
            percentile=row.percentile,
        )
