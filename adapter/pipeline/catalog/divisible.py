"""Which metrics work is divided into, so that their sum over the pods is the demand.

Requests that wait are not divided: what would have waited with other replicas does not follow from
what did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.pipeline.catalog.metric import Kind, Metric, Unit
from adapter.pipeline.catalog.serverkind import RUNNING

_WHOLE: Final = {Unit.PERCENT: 100_000, Unit.RATIO: 1_000}
"""The highest value of a unit, in thousandths."""


class Divisible(NamedTuple):
    """A metric that work is divided into."""

    highest: int | None
    """The highest value that a pod can have, in thousandths; None if there is none."""


def divisible(name: str, metrics: Mapping[str, Metric]) -> Divisible | None:
    """Return how a metric is divided; None if its sum over the pods is not the demand.

    Args:
        name: of the metric.
        metrics: those of a catalogue.
    """
    metric = metrics.get(name)
    if metric is None or metric.expects:
        return None
    if metric.promised:
        return Divisible(None)  # the load of a pod as a share of what it can take
    if RUNNING in metrics and _fields(metric) <= _fields(metrics[RUNNING]):
        return Divisible(None)
    if metric.kind is Kind.MEAN and metric.unit in _WHOLE:
        return Divisible(_WHOLE[metric.unit])
    return None


def _fields(metric: Metric) -> set[str]:
    """Return the fields that a metric is computed from: the same under each name of a series."""
    return {field for formula in metric.formulas for field in formula.fields}
