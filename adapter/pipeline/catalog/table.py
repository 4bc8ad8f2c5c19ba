"""The catalogue: fields and metrics, indexed by series name and by API name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from weakref import WeakValueDictionary

from adapter.pipeline.catalog.expectedmetrics import expected_metrics
from adapter.pipeline.catalog.field import Field, Mig, Role, Spelling
from adapter.pipeline.catalog.formulas import Rated, Scaled, Unless
from adapter.pipeline.catalog.layout import Layout
from adapter.pipeline.catalog.metric import Kind, Metric, Unit
from adapter.pipeline.catalog.neutral import METRICS
from adapter.pipeline.catalog.seriesnames import aliases, with_units
from adapter.pipeline.catalog.vendors import FIELDS

_MAX_SPANS = 1024
"""Layouts for which the window is cached; exporters of one version share one layout."""


class Catalog:
    """Which series to read from pages and which metrics to serve. Immutable."""

    def __init__(
        self,
        fields: Sequence[Field] = FIELDS,
        metrics: Sequence[Metric] = METRICS,
        *,
        expecting: bool = True,
    ) -> None:
        """Take the fields and metrics.

        Args:
            expecting: with what each metric that work is divided into will not exceed.
        """
        self.fields: Mapping[str, Field] = {field.name: field for field in fields}
        self.neutral: Sequence[Metric] = tuple(metrics)
        """Metrics other than those with an exporter's own name."""
        by_series: dict[str, list[Spelling]] = {}
        for field in fields:
            for spelling in _spellings(field):
                by_series.setdefault(spelling.series, []).append(spelling)
        self.label_variants: Mapping[str, tuple[tuple[str, Spelling], ...]] = {
            series: tuple((f"{s.name} {s.field.name}", s) for s in spellings)
            for series, spellings in by_series.items()
            if len(spellings) > 1 or spellings[0].field.where
        }
        """Series of several fields that labels distinguish -> (internal name, spelling) of each."""
        self.spellings: Mapping[str, Spelling] = {
            series: spellings[0]
            for series, spellings in by_series.items()
            if series not in self.label_variants
        } | dict(variant for variants in self.label_variants.values() for variant in variants)
        """Series name on a page, or an internal name of ``label_variants`` -> spelling."""
        self.series: frozenset[str] = frozenset(
            series
            for series, spellings in by_series.items()
            if not all(spelling.field.on_demand for spelling in spellings)
        )
        """Every series name that is read although nobody asks for it."""
        self._histograms = {
            series: spelling
            for series, spellings in by_series.items()
            for spelling in spellings
            if spelling.role is Role.BUCKET
        }
        self._buckets: WeakValueDictionary[tuple[str, float], Spelling] = WeakValueDictionary()
        """The buckets that some history has: a page may have any bounds."""
        self.suffixed: frozenset[str] = frozenset(
            series for series, spellings in by_series.items() if all(s.suffixed for s in spellings)
        )
        """Those of them to which an OpenTelemetry collector or receiver has appended a unit."""
        self.groups: Mapping[str, tuple[str, ...]] = _groups(by_series)
        """Groups of series names, each fetched by one Prometheus query."""
        verbatim = {metric.name: metric for field in fields for metric in _verbatim_metrics(field)}
        self.metrics: Mapping[str, Metric] = verbatim | {metric.name: metric for metric in metrics}
        """API name -> metric."""
        expectations = expected_metrics(metrics, self.metrics) if expecting else {}
        self.expected: Mapping[str, str] = {n: m.expects for n, m in expectations.items()}
        """Name of a metric that is expected -> name of the measured one."""
        self.metrics = {**self.metrics, **expectations}
        self.windows: Mapping[str, float] = _windows(self.metrics.values())
        """Field -> seconds of the longest window of a metric that has its own window.

        0 if only a rate uses the field: it needs one sample from before the window.
        """
        self.on_demand: Mapping[str, frozenset[str]] = _on_demand_series(
            self.metrics.values(), by_series
        )
        """Metric that is read on demand -> the series names that it needs."""
        self._longest = lru_cache(_MAX_SPANS)(self._longest_window)
        self._fields, self._metrics, self._expecting = tuple(fields), tuple(metrics), expecting

    def extended(self, fields: Sequence[Field], metrics: Sequence[Metric]) -> Catalog:
        """Return this catalogue with more fields and metrics, or itself if there are none."""
        if not fields and not metrics:
            return self
        return Catalog(
            (*self._fields, *fields), (*self._metrics, *metrics), expecting=self._expecting
        )

    def without_expected(self) -> Catalog:
        """Return this catalogue without what metrics will not exceed."""
        return Catalog(self._fields, self._metrics, expecting=False)

    def bucket(self, series: str, bound: float) -> Spelling | None:
        """Return the spelling of a histogram's bucket; None if the series is not that of buckets.

        Args:
            series: ``NAME_bucket``.
            bound: as on the page.
        """
        every = self._histograms.get(series)
        if every is None:
            return None
        spelling = self._buckets.get((series, bound))
        if spelling is None:
            name, into = f'{series}{{le="{bound:g}"}}', every.factor
            spelling = Spelling(name, 1.0, every.field, role=Role.BUCKET, bound=bound * into)
            self._buckets[series, bound] = spelling
        return spelling

    def span(self, columns: Layout, window: float, oldest: float) -> float:
        """Return the seconds of samples that a device with these columns must keep.

        Args:
            window: seconds of the window for metrics without their own.
        """
        longest = self._longest(columns)
        return window if longest is None else max(window, longest, oldest)

    def _longest_window(self, columns: Layout) -> float | None:
        """Return the longest own window of a metric of these columns, or None if there is none."""
        wanted = [self.windows[field] for field in columns.of_field if field in self.windows]
        return max(wanted, default=None)

    @cached_property
    def own_names(self) -> frozenset[str]:
        """API names other than aliases; a user's metric may have the name of an alias."""
        written = (name for field in self._fields if not field.series for name, *_ in field.names)
        return frozenset((*written, *(m.name for m in self.neutral), *self.expected))

    @cached_property
    def principal(self) -> Sequence[str]:
        """API names without aliases, that is without other spellings of exporters' fields."""
        return [name for name in self.metrics if name in self.fields or name not in self.series]

    @cached_property
    def exact(self) -> frozenset[str]:
        """Fields whose samples measure a container's own part of a device."""
        return frozenset(field.name for field in self.fields.values() if field.exact)


@cache
def built_in() -> Catalog:
    """Return the catalogue without what a user adds. It takes 5 ms, so a process makes it once."""
    return Catalog()


def _spellings(field: Field) -> Iterable[Spelling]:
    """Yield every name of a field's series, on a page or in a store, once."""
    if field.kind is Kind.HISTOGRAM:
        yield from _of_histogram(field)
        return
    if field.series:
        for name in aliases(field.series, field.scope):
            yield Spelling(name, 1.0, field)
        return
    plain = {
        alias: factor for name, factor, _ in field.names for alias in aliases(name, field.scope)
    }
    suffixed = {
        form: into
        for name, factor in plain.items()
        for written, into in with_units(name, factor, field.unit, field.kind)
        for form in (written, written.lower())
    }
    for name, factor in plain.items():
        yield Spelling(name, factor, field)
    for name in sorted(suffixed.keys() - plain.keys()):
        yield Spelling(name, suffixed[name], field, suffixed=True)


def _of_histogram(field: Field) -> Iterator[Spelling]:
    """Yield the series of a classic histogram under each of its names.

    Its bounds and its sum are read in seconds. The number of a bucket is a count.
    """
    factor = 0.001 if field.unit is Unit.MILLISECONDS else 1.0
    every = (alias for name, _, _ in field.names for alias in aliases(name, field.scope))
    for alias in dict.fromkeys(every):
        for role in Role:
            into = 1.0 if role is Role.COUNT else factor
            yield Spelling(alias + role, into, field, role=role)


def _verbatim_metrics(field: Field) -> Iterable[Metric]:
    """Yield a metric per name and alias: some HPAs on GKE fail with upper case."""
    if field.series or field.on_demand:
        return
    whole_only = False if field.mig is Mig.INVALID else None
    for name, factor, unit in field.names:
        for alias in aliases(name, field.scope):
            yield Metric(
                alias,
                unit,
                field.kind,
                (Scaled(field.name, 1.0 / factor, mig=whole_only),),
                over_devices=field.over_devices,
                over_pods=field.over_pods,
                per_board=field.per_board,
                scope=field.scope,
                divisible=field.divisible,
                load=field.load,
                high=field.high / factor if unit in (Unit.PERCENT, Unit.RATIO) else None,
            )


def _groups(by_series: Mapping[str, Sequence[Spelling]]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for series, spellings in by_series.items():
        groups.setdefault(spellings[0].field.group, []).append(series)
    return {group: tuple(names) for group, names in groups.items()}


def _on_demand_series(
    metrics: Iterable[Metric], by_series: Mapping[str, Sequence[Spelling]]
) -> dict[str, frozenset[str]]:
    of_field: dict[str, set[str]] = {}
    for series, spellings in by_series.items():
        for spelling in spellings:
            if spelling.field.on_demand:
                of_field.setdefault(spelling.field.name, set()).add(series)
    return {
        metric.name: frozenset(
            series
            for formula in metric.formulas
            for field in formula.fields
            for series in of_field.get(field, ())
        )
        for metric in metrics
        if metric.on_demand
    }


def _windows(metrics: Iterable[Metric]) -> dict[str, float]:
    windows: dict[str, float] = {}
    for metric in metrics:
        for formula in metric.formulas:
            read = formula.formula if isinstance(formula, Unless) else formula
            rated = metric.kind in (Kind.RATE, Kind.HISTOGRAM) or isinstance(read, Rated)
            for field in formula.fields if rated or metric.window else ():
                windows[field] = max(windows.get(field, 0.0), metric.window or 0.0)
    return windows
