"""Which metrics work is divided into, so that their sum over the pods is the demand."""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Kind, Metric, Unit

RUNNING: Final = "inference_requests_running"
_WHOLE: Final = {Unit.PERCENT: 100_000, Unit.RATIO: 1_000}
"""The highest value of a unit, in thousandths."""


class Divisible(NamedTuple):
    """A metric that work is divided into."""

    highest: int | None
    """The highest value that a pod can have, in thousandths; None if there is none."""


def divisible(name: str, catalog: Catalog) -> Divisible | None:
    """Return how a metric is divided; None if its sum over the pods is not the demand."""
    metric = catalog.metrics.get(name)
    if metric is None:
        return None
    if _fields(metric) <= _fields(catalog.metrics[RUNNING]):
        return Divisible(None)
    if metric.kind is Kind.MEAN and metric.unit in _WHOLE:
        return Divisible(_WHOLE[metric.unit])
    return None


def _fields(metric: Metric) -> set[str]:
    """Return the fields that a metric is computed from: the same under each name of a series.

    Requests that wait are not divided: see :mod:`.demand`.
    """
    return {field for formula in metric.formulas for field in formula.fields}
