"""The catalogue's rows, indexed for those who read pages and those who answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from adapter.catalog import amd, azure, google, hami, intel, nvidia, servers
from adapter.catalog.field import Field, Mig, Spelling
from adapter.catalog.formulas import Rated, Scaled
from adapter.catalog.layout import Layout
from adapter.catalog.metric import Kind, Metric
from adapter.catalog.neutral import METRICS

BUILT_IN: tuple[Field, ...] = (
    *nvidia.FIELDS,
    *amd.FIELDS,
    *intel.FIELDS,
    *hami.FIELDS,
    *azure.FIELDS,
    *google.FIELDS,
    *servers.FIELDS,
)

_MAX_SPANS = 1024
"""Layouts remembered: exporters of one version share one."""


class Catalog:
    """What to read from pages and what to serve. Never changes."""

    def __init__(self, fields: Sequence[Field] = BUILT_IN, metrics: Sequence[Metric] = METRICS):
        self.fields: Mapping[str, Field] = {field.name: field for field in fields}
        self.neutral: Sequence[Metric] = tuple(metrics)
        """Metrics that are no exporter's own."""
        by_series: dict[str, list[Spelling]] = {}
        for field in fields:
            for spelling in _spellings(field):
                by_series.setdefault(spelling.series, []).append(spelling)
        self.label_variants: Mapping[str, tuple[tuple[str, Spelling], ...]] = {
            series: tuple((f"{s.name} {s.field.name}", s) for s in found)
            for series, found in by_series.items()
            if len(found) > 1 or found[0].field.where
        }
        """Series that only a row's labels tell the fields of -> (a name that no page has, how
        to read it), each."""
        self.spellings: Mapping[str, Spelling] = {
            series: found[0]
            for series, found in by_series.items()
            if series not in self.label_variants
        } | dict(fork for label_variants in self.label_variants.values() for fork in label_variants)
        """Series name on a page, or one of the names in ``forks`` -> how to read it."""
        self.series: frozenset[str] = frozenset(by_series)
        """Every series name worth reading."""
        self.groups: Mapping[str, tuple[str, ...]] = _groups(by_series)
        """Series names that one Prometheus query fetches together."""
        verbatim = {metric.name: metric for field in fields for metric in _verbatim(field)}
        self.metrics: Mapping[str, Metric] = verbatim | {metric.name: metric for metric in metrics}
        """API name -> what it is made of."""
        self.windows: Mapping[str, float] = _windows(self.metrics.values())
        """Field -> seconds of the longest window that a metric of its own has; 0 where only
        a rate is made of it, which wants a sample from before the window too."""
        self._longest = lru_cache(_MAX_SPANS)(self._longest_window)
        self._fields, self._metrics = tuple(fields), tuple(metrics)

    def extended(self, fields: Sequence[Field], metrics: Sequence[Metric]) -> Catalog:
        """This catalogue and more rows; itself where there are none."""
        if not fields and not metrics:
            return self
        return Catalog((*self._fields, *fields), (*self._metrics, *metrics))

    def span(self, columns: Layout, window: float, oldest: float) -> float:
        """Seconds of samples that a device with these columns must keep.

        Args:
            columns: what the device's exporter writes.
            window: seconds that all values are taken over, unless their metric says more.
            oldest: seconds after which nothing is served.
        """
        longest = self._longest(columns)
        return window if longest is None else max(window, longest, oldest)

    def _longest_window(self, columns: Layout) -> float | None:
        """The longest window that a metric of these columns has of its own; None without one."""
        wanted = [self.windows[field] for field in columns.of_field if field in self.windows]
        return max(wanted, default=None)

    @cached_property
    def principal(self) -> Sequence[str]:
        """API names without the further spellings of exporters' fields."""
        return [name for name in self.metrics if name in self.fields or name not in self.series]

    @cached_property
    def exact(self) -> frozenset[str]:
        """Fields whose rows are the container's own."""
        return frozenset(field.name for field in self.fields.values() if field.exact)


def _spellings(field: Field) -> Iterable[Spelling]:
    named = [(field.series or field.name, 1.0), *((n, f) for n, f, _ in field.renamed)]
    named += [(name, 1.0) for name in field.legacy]
    for name, factor in named:
        yield Spelling(name, factor, field)
        if name.lower() != name:
            yield Spelling(name.lower(), factor, field)


def _verbatim(field: Field) -> Iterable[Metric]:
    """A metric per name, and its lowercase alias: some HPAs on GKE break on upper case."""
    if field.series:
        return
    served = [(field.name, 1.0, field.unit), *field.renamed]
    served += [(name, 1.0, field.unit) for name in field.legacy]
    whole_only = False if field.mig is Mig.INVALID else None
    for name, factor, unit in served:
        for spelt in (name, name.lower()):
            yield Metric(
                spelt,
                unit,
                field.kind,
                (Scaled(field.name, 1.0 / factor, mig=whole_only),),
                over_devices=field.over_devices,
                over_pods=field.over_pods,
                per_board=field.mig is Mig.BOARD,
                scope=field.scope,
                divisible=field.divisible,
            )


def _groups(by_series: Mapping[str, Sequence[Spelling]]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for series, spellings in by_series.items():
        groups.setdefault(spellings[0].field.group, []).append(series)
    return {group: tuple(names) for group, names in groups.items()}


def _windows(metrics: Iterable[Metric]) -> dict[str, float]:
    windows: dict[str, float] = {}
    for metric in metrics:
        for formula in metric.formulas:
            rated = metric.kind is Kind.RATE or isinstance(formula, Rated)
            for field in formula.fields if rated or metric.window else ():
                windows[field] = max(windows.get(field, 0.0), metric.window or 0.0)
    return windows
