"""Settings: the user's own metrics."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from adapter.config.settings.types import Interval, Promql, Section
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.metric import Combine, Kind, Scope, Unit

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]*")
_SERIES = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")


def _metric_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            "must be letters, digits, _ : . and -, and begin with a letter or _: it is part of a "
            "URL path"
        )
    if text.lower() in _built_in_names():
        raise ValueError("is a name of the catalogue: choose another")
    return text


@cache
def _built_in_names() -> frozenset[str]:
    return frozenset(name.lower() for name in built_in().own_names)


def _series_name(text: str) -> str:
    if not _SERIES.fullmatch(text):
        raise ValueError(
            "must be the name of a series only; write labels into labels and PromQL into query"
        )
    return text


Window = Annotated[Interval, Field(le=3600)]
Over = Literal["mean", "max", "min", "sum"]


class MetricSettings(Section):
    """A series of an exporter, or a query."""

    name: Annotated[str, Field(max_length=200), AfterValidator(_metric_name)]
    """Name in the API, which also serves it in lower case."""
    series: Annotated[str, AfterValidator(_series_name)] | None = None
    """Series on the exporters' pages or in Prometheus."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that a sample must have. An empty value means that the label must be absent."""
    query: Promql | None = None
    """PromQL, instead of ``series``, for ``source.kind: prometheus`` only: one query for all pods,
    whose series have the labels ``namespace`` and ``pod`` (or ``exported_namespace`` and
    ``exported_pod``)."""
    unit: Unit = Unit.NUMBER
    """Unit of the value. ``percent`` limits it to 0-100, ``ratio`` to 0-1."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Factor that converts the numbers of the series to ``unit``."""
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Lowest plausible value, in ``unit``; lower ones are left out. If not set, 0."""
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Highest plausible value, in ``unit``; higher ones are left out."""
    kind: Kind = Kind.LAST
    """``mean`` over the window, the ``last`` value, or ``rate``: the increase of a counter per
    second."""
    window: Window | None = None
    """Seconds over which the mean or the rate is taken, at most an hour. If not set,
    ``values.window``."""
    percentile: Annotated[float, Field(ge=0, le=100)] | None = None
    """Percentile of the samples in the window, instead of the mean."""
    combine: Over = "mean"
    """How the values of a pod's devices, and of an object's pods, are combined."""
    over_devices: Over | None = None
    """How the values of a pod's devices are combined. If not set, ``combine``."""
    over_pods: Over | None = None
    """How the values of an object's pods are combined. If not set, ``combine``."""
    scope: Scope | None = None
    """``device``: a sample describes a GPU and names it. ``server``: a sample describes the pod. If
    not set: ``server`` for a query, else the series' scope in the catalogue, else ``device``."""

    @model_validator(mode="after")
    def _check_sense(self) -> MetricSettings:
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
        """Lowest and highest plausible value, in ``unit``."""
        limit = _MOST if self.limit is None else self.limit
        high = limit if self.high is None else self.high
        return (0.0 if self.low is None else self.low, high)

    @property
    def limit(self) -> float | None:
        """The highest value of the unit; None if it has none."""
        return {Unit.PERCENT: 100.0, Unit.RATIO: 1.0}.get(self.unit)

    @property
    def combined(self) -> tuple[Combine, Combine]:
        """How values are combined over devices, and over pods."""
        return Combine(self.over_devices or self.combine), Combine(self.over_pods or self.combine)


_MOST = 9e15
"""The highest value that the HPA can read: thousandths in an int64."""
