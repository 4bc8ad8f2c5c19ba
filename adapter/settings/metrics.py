"""Metrics of the user's own."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from adapter.catalog import Catalog
from adapter.metric import Combine, Kind, Scope, Unit
from adapter.settings.types import Interval, Promql, Section

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]*")
_SERIES = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")


def _metric_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            "must be letters, digits, _ : . and -, beginning with a letter or _: it is a part "
            "of a URL's path"
        )
    if text.lower() in _taken():
        raise ValueError("is a name of the catalogue: choose another")
    return text


@cache
def _taken() -> frozenset[str]:
    return frozenset(name.lower() for name in Catalog().metrics)


def _series_name(text: str) -> str:
    if not _SERIES.fullmatch(text):
        raise ValueError("must be a series' name alone; give labels in labels, PromQL in query")
    return text


Window = Annotated[Interval, Field(le=3600)]
Over = Literal["mean", "max", "min", "sum"]


class MetricRow(Section):
    """one metric of the user's own, from a series of an exporter or from a query."""

    name: Annotated[str, Field(max_length=200), AfterValidator(_metric_name)]
    """The API's name for it; served in lower case as well."""
    series: Annotated[str, AfterValidator(_series_name)] | None = None
    """The exporter's series, on the pages that are scraped or in Prometheus."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that a row of the series must have; an empty value is a label that is not there."""
    query: Promql | None = None
    """PromQL in place of ``series`` (``source.kind: prometheus`` only). One query for all pods:
    each series of its answer is put to the pod that its labels ``namespace`` and ``pod`` (or
    ``exported_namespace`` and ``exported_pod``) name; its values count as measured when asked."""
    unit: Unit = Unit.NUMBER
    """Unit of the value. ``percent`` and ``ratio`` bound it to 0-100 and 0-1."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """The series' numbers times this are in ``unit``."""
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Least believable value, in ``unit``; 0 unless set. What is below is left out."""
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Largest believable value, in ``unit``."""
    kind: Kind = Kind.LAST
    """``mean`` over the window, ``last`` value, or ``rate``: a counter's increase per second."""
    window: Window | None = None
    """Seconds that a mean or rate is taken over, up to an hour; None is ``values.window``."""
    percentile: Annotated[float, Field(ge=0, le=100)] | None = None
    """This percentile of the window's samples in place of the mean."""
    combine: Over = "mean"
    """How a pod's devices, and an object's pods, become one value."""
    over_devices: Over | None = None
    """The same for a pod's devices alone."""
    over_pods: Over | None = None
    """The same for an object's pods alone."""
    scope: Scope | None = None
    """``device``: a row is about a GPU and names it. ``server``: about the pod itself, GPU or
    not. None is ``server`` for a query, else what the catalogue has for the series, else
    ``device``."""

    @model_validator(mode="after")
    def _sense(self) -> MetricRow:
        if (self.series is None) == (self.query is None):
            raise ValueError("needs either series or query: set one of them")
        if self.query is not None and self.labels:
            raise ValueError("labels go with series: write them into query")
        if self.percentile is not None and (self.window is None or self.kind is not Kind.MEAN):
            raise ValueError("percentile needs window and kind: mean: set both")
        if self.window is not None and self.kind is Kind.LAST:
            raise ValueError("window goes with kind: mean or rate: set one, or leave it out")
        if self.kind is Kind.RATE and (self.low is not None or self.high is not None):
            raise ValueError("low and high bound samples, not a rate: leave them out")
        if self.bounds[0] >= self.bounds[1]:
            raise ValueError("low must be below high")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value, in ``unit``."""
        limit = _MOST if self.limit is None else self.limit
        high = limit if self.high is None else self.high
        return (0.0 if self.low is None else self.low, high)

    @property
    def limit(self) -> float | None:
        """The most that the unit allows; None if it allows anything."""
        return {Unit.PERCENT: 100.0, Unit.RATIO: 1.0}.get(self.unit)

    @property
    def combined(self) -> tuple[Combine, Combine]:
        """Over devices, over pods."""
        return Combine(self.over_devices or self.combine), Combine(self.over_pods or self.combine)


_MOST = 9e15
"""What the HPA can read: thousandths in an int64 (wire contract, section 1)."""
