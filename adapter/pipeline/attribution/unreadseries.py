"""Say why the formulas of a metric have no value for a device whose samples are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.pipeline.catalog.formulas import hides
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.migfit import of_whole_devices
from adapter.pipeline.devices.series import DeviceSeries

NO_VALUE: Final = "no_value"
NOT_EXPORTED: Final = "metric_not_exported"
NOT_OF_INSTANCES: Final = "metric_of_whole_devices"
TOO_MANY_PARTS: Final = "too_many_label_sets"
NOT_SHOWN: Final = "queue_not_shown"


def unread_reason(metric: Metric, series: DeviceSeries) -> str:
    """Return why the formulas of a metric have no value for a device."""
    if series.mig:
        return _unread_of_instance(metric, series)
    if series.incomplete and _is_incomplete(metric, series):
        return TOO_MANY_PARTS
    if any(formula.is_exported(series) for formula in metric.formulas if hides(formula)):
        return NOT_SHOWN
    return NO_VALUE if _is_exported(metric, series) else NOT_EXPORTED


def _unread_of_instance(metric: Metric, series: DeviceSeries) -> str:
    """Return why a MIG instance or a partition has no value.

    :attr:`adapter.pipeline.devices.series.DeviceSeries.reported` is about whole devices. If those
    have a field that an instance can have, the exporter reads it, and left out the instance's.
    """
    written = series.rejected | series.history.layout.of_field.keys()
    if _is_exported(metric, replace(series, reported=frozenset(written))):
        return NO_VALUE
    if of_whole_devices(metric, written):
        return NOT_OF_INSTANCES
    return NO_VALUE if _is_exported(metric, series) else NOT_EXPORTED


def _is_incomplete(metric: Metric, series: DeviceSeries) -> bool:
    """Return whether not all samples are read of what each formula needs."""
    exported = [formula for formula in metric.formulas if formula.is_exported(series)]
    return bool(exported) and all(
        any(map(series.is_incomplete, formula.fields)) for formula in exported
    )


def _is_exported(metric: Metric, series: DeviceSeries) -> bool:
    return any(formula.is_exported(series) for formula in metric.formulas)
