"""Declarations of metrics, used by ``/metrics`` and by the documentation.

A declaration bounds its own cardinality. If the values of a label are known, any other value
counts as ``other``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from apiservice.selfmetrics.durations import Durations

OTHER: Final = "other"
"""Shown in place of a label value that is not known."""

Row = tuple[Sequence[str], float]
"""Label values, and the number."""


class FamilyType(StrEnum):
    """Prometheus metric types."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric."""

    name: str
    """The name in the text exposition; a counter's name ends in ``_total``."""
    kind: FamilyType
    text: str
    labels: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    """All values of the last label, if they are known. Each is shown from the start, so that
    a counter's first increase is visible."""

    def one(self, value: float) -> Metric:
        """Return the metric without labels."""
        return self.rows([((), value)])

    def rows(self, rows: Iterable[Row]) -> Metric:
        """Return a number for each set of labels. Equal sets are summed."""
        family = self._family()
        merged: dict[tuple[str, ...], float] = {}
        for labels, value in rows:
            key = self._bound_labels(labels)
            merged[key] = merged.get(key, 0.0) + float(value)
        for key, value in merged.items():
            family.add_metric(key, value)
        return family

    def by(self, counts: Mapping[str, float]) -> Metric:
        """Return a number for each value of the only label, the known values first."""
        counted = {str(key): count for key, count in sorted(counts.items())}
        return self.rows(((key,), count) for key, count in self._add_known_values(counted).items())

    def pairs(self, counts: Mapping[tuple[str, str], float], first: Iterable[str]) -> Metric:
        """The same for two labels; ``first`` are all values of the first."""
        rows: list[Row] = []
        for value in first:
            counted = {str(key): count for (mine, key), count in counts.items() if mine == value}
            rows.extend(
                ((value, key), count) for key, count in self._add_known_values(counted).items()
            )
        return self.rows(rows)

    def durations(self, rows: Iterable[tuple[Sequence[str], Durations]]) -> Metric:
        """Return a histogram for each set of labels."""
        family = HistogramMetricFamily(self.name, self.text, labels=self.labels)
        for labels, took in rows:
            family.add_metric(labels, list(took.cumulative()), took.seconds)
        return family

    def _add_known_values(self, counted: dict[str, float]) -> dict[str, float]:
        return dict.fromkeys(self.known, 0.0) | counted

    def _bound_labels(self, labels: Sequence[str]) -> tuple[str, ...]:
        if not self.known or labels[-1] in self.known:
            return tuple(labels)
        return (*labels[:-1], OTHER)

    def _family(self) -> CounterMetricFamily | GaugeMetricFamily:
        if self.kind is FamilyType.COUNTER:
            return CounterMetricFamily(
                self.name.removesuffix("_total"), self.text, labels=self.labels
            )
        return GaugeMetricFamily(self.name, self.text, labels=self.labels)


def gauge(name: str, text: str, *labels: str, known: Iterable[str] = ()) -> Family:
    """Declare a gauge."""
    return Family(name, FamilyType.GAUGE, text, labels, tuple(known))


def counter(name: str, text: str, *labels: str, known: Iterable[str] = ()) -> Family:
    """Declare a counter; ``name`` ends in ``_total``."""
    return Family(name, FamilyType.COUNTER, text, labels, tuple(known))


def histogram(name: str, text: str, *labels: str) -> Family:
    """Declare a histogram of seconds; ``name`` ends in ``_seconds``."""
    return Family(name, FamilyType.HISTOGRAM, text, labels)
