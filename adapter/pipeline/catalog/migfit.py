"""Whether MIG instances, and partitions of other devices, have a metric; and which one instead.

The fields say it (:class:`adapter.pipeline.catalog.field.Mig`): NVML and DCGM count
``DCGM_FI_DEV_GPU_UTIL`` for a whole board only (NVIDIA's MIG user guide), so
``gpu_utilization`` of an instance comes from ``DCGM_FI_PROF_GR_ENGINE_ACTIVE``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from adapter.pipeline.catalog.field import Mig
from adapter.pipeline.catalog.formulas import Presence
from adapter.pipeline.catalog.metric import Formula, Metric, Scope
from adapter.pipeline.catalog.table import Catalog, built_in
from adapter.pipeline.catalog.vendors import VENDORS

_INSTEAD: Final = (
    ("gpu_utilization", ()),
    ("gpu_memory_bandwidth_utilization", ("DCGM_FI_DEV_MEM_COPY_UTIL",)),
)
"""A metric that instances have, and fields that it stands for beside those of its formulas."""


def instead_on_mig(name: str) -> str | None:
    """Return a metric of the same meaning that MIG instances have; empty if there is none, and
    None if they have this one, or it is not a metric of devices."""
    catalog = built_in()
    metric = catalog.metrics.get(name)
    if metric is None or metric.scope is not Scope.DEVICE:
        return None
    if not metric.formulas or any(_exists_on_mig(catalog, formula) for formula in metric.formulas):
        return None
    fields = _fields(metric)
    for other, more in _INSTEAD:
        if fields & (_fields(catalog.metrics[other]) | set(more)):
            return other
    return ""


def of_whole_devices(metric: Metric, written: Collection[str]) -> bool:
    """Return whether an exporter can have a metric for whole devices only.

    Args:
        metric: of devices.
        written: fields that the exporter writes for a MIG instance or a partition, of which they
            show the program.
    """
    programs = {_programs().get(name) for name in written} - {None}
    its = [
        formula
        for formula in metric.formulas
        if not programs or programs & {_programs().get(name) for name in formula.fields}
    ]
    return bool(its) and not any(_exists_on_mig(built_in(), formula) for formula in its)


@cache
def _programs() -> Mapping[str, str]:
    """Return field -> the program that writes it."""
    return {field.name: program for program, fields in VENDORS.items() for field in fields}


def _fields(metric: Metric) -> set[str]:
    return {field for formula in metric.formulas for field in formula.fields}


def _exists_on_mig(catalog: Catalog, formula: Formula) -> bool:
    if isinstance(formula, Presence):
        return True  # it counts devices of any kind, regardless of what is known of them
    if getattr(formula, "mig", None) is False:
        return False
    fields = (catalog.fields.get(name) for name in formula.fields)
    return all(field is None or field.mig is not Mig.INVALID for field in fields)
