"""Metrics that MIG instances do not have, and those that take their place."""

from __future__ import annotations

from decimal import Decimal

import pytest

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.catalog.migfit import instead_on_mig
from adapter.pipeline.catalog.targetfit import AskedTarget, MisfitKind, misfits

CATALOG = Catalog()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "gpu_utilization"),
        ("dcgm_fi_dev_gpu_util_ratio", "gpu_utilization"),
        ("gpu_gfx_activity", "gpu_utilization"),
        ("gpu_umc_activity", "gpu_memory_bandwidth_utilization"),
        ("DCGM_FI_DEV_MEM_COPY_UTIL", "gpu_memory_bandwidth_utilization"),
        ("DCGM_FI_DEV_ENC_UTIL", ""),
        ("gpu_utilization", None),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", None),
        ("gpu_memory_used_bytes", None),
        ("gpu_count", None),
        ("inference_requests_waiting", None),
        ("unknown", None),
    ],
)
def test_a_metric_of_whole_devices_has_one_of_the_same_meaning(
    name: str, instead: str | None
) -> None:
    assert instead_on_mig(name) == instead


@pytest.mark.parametrize("name", CATALOG.metrics)
def test_what_takes_the_place_of_a_metric_exists_for_instances(name: str) -> None:
    metric = CATALOG.metrics[name]
    target = AskedTarget(
        name, metric.unit, metric.load, "mean", "AverageValue", Decimal(1), metric.high, on_mig=True
    )
    rows = [row for row in misfits(target, averaged=True) if row.kind is MisfitKind.MIG]
    assert bool(rows) is (instead_on_mig(name) is not None)
    for row in rows:
        assert metric.scope is Scope.DEVICE
        assert instead_on_mig(row.metric) is None
        assert f"{name} does not exist for MIG instances" in row.text
    whole = misfits(target._replace(on_mig=False), averaged=True)
    assert [row for row in whole if row.kind is MisfitKind.MIG] == []
