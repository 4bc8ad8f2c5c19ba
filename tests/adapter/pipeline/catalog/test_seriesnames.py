"""The names that stores, collectors and Ray make of the names on pages."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog import FIELDS, Catalog
from adapter.pipeline.catalog.metric import Kind, Unit
from adapter.pipeline.catalog.seriesnames import with_units
from adapter.pipeline.catalog.table import _spellings
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.world import World, make_pod

CATALOG = Catalog()
T = 1_700_000_000.0

WRITTEN = [
    # OpenTelemetry's suffixes: the number is in the unit of the suffix.
    ("DCGM_FI_DEV_GPU_UTIL_percent", 63.0, "gpu_utilization", 63.0),
    ("dcgm_fi_dev_gpu_util_percent", 63.0, "gpu_utilization", 63.0),
    ("DCGM_FI_DEV_GPU_UTIL_ratio", 0.63, "gpu_utilization", 63.0),
    ("DCGM_FI_PROF_SM_ACTIVE_ratio", 0.5, "gpu_sm_activity", 50.0),
    ("DCGM_FI_PROF_SM_ACTIVE_percent", 50.0, "gpu_sm_activity", 50.0),
    ("DCGM_FI_DEV_FB_USED_mebibytes", 100.0, "gpu_memory_used_bytes", 104857600.0),
    ("DCGM_FI_DEV_FB_USED_bytes", 104857600.0, "gpu_memory_used_bytes", 104857600.0),
    ("DCGM_FI_DEV_FB_USED_BYTES_bytes", 104857600.0, "gpu_memory_used_bytes", 104857600.0),
    ("DCGM_FI_DEV_POWER_USAGE_watts", 310.0, "gpu_power_watts", 310.0),
    ("DCGM_FI_DEV_GPU_TEMP_celsius", 62.0, "gpu_temperature_celsius", 62.0),
    ("DCGM_FI_DEV_SM_CLOCK_hertz", 1.5e9, "dcgm_fi_dev_sm_clock", 1500.0),
    ("DCGM_FI_DEV_SM_CLOCK_MHz", 1500.0, "dcgm_fi_dev_sm_clock", 1500.0),
    ("gpu_gfx_activity_percent", 40.0, "gpu_gfx_activity", 40.0),
]


@pytest.mark.parametrize(("series", "number", "metric", "value"), WRITTEN)
def test_the_unit_in_the_name_of_a_devices_series_is_honoured(
    series: str, number: float, metric: str, value: float
) -> None:
    world = World(make_pod("llm"))
    labels = {"UUID": "GPU-0", "pod": "llm", "namespace": "ml"}
    world.store.ingest(ScrapeResult("e", "n1", [Sample(series, labels, number, T)], T, {}))
    assert world.value("llm", metric, T) == value


SERVERS = [
    ("vllm_num_requests_waiting", 7.0, "inference_requests_waiting", 7.0),
    ("ray_vllm_num_requests_waiting", 7.0, "inference_requests_waiting", 7.0),
    ("ray_vllm:num_requests_waiting", 7.0, "vllm:num_requests_waiting", 7.0),
    ("kserve_vllm:num_requests_waiting", 7.0, "inference_requests_waiting", 7.0),
    ("kserve_vllm:kv_cache_usage_perc", 0.5, "inference_kv_cache_utilization", 50.0),
    ("sglang_num_queue_reqs", 7.0, "inference_requests_waiting", 7.0),
    ("ray_sglang_num_queue_reqs", 7.0, "inference_requests_waiting", 7.0),
    ("llamacpp_requests_deferred", 7.0, "llamacpp_requests_deferred", 7.0),
    ("vllm_kv_cache_usage_perc_ratio", 0.5, "inference_kv_cache_utilization", 50.0),
]


@pytest.mark.parametrize(("series", "number", "metric", "value"), SERVERS)
def test_a_servers_series_is_read_under_every_form_of_its_name(
    series: str, number: float, metric: str, value: float
) -> None:
    world = World(make_pod("llm", gpus={}))
    labels = {"pod": "llm", "namespace": "ml", "instance": "10.0.0.5:8000"}
    sample = Sample(series, labels, number, T)
    world.store.ingest(ScrapeResult("10.0.0.5:8000", None, [sample], T, {}))
    assert world.value("llm", metric, T) == value


def test_a_name_that_says_another_unit_than_its_number_gets_no_unit() -> None:
    """HAMi's ``..._ratio`` is a percentage: what OpenTelemetry appends to it cannot be trusted."""
    assert list(with_units("a_ratio", 1.0, Unit.PERCENT, Kind.MEAN)) == []
    assert list(with_units("a_RATIO", 100.0, Unit.PERCENT, Kind.MEAN)) == [("a_RATIO_ratio", 100.0)]


def test_a_counters_name_may_end_in_total() -> None:
    written = dict(with_units("a_us", 1.0, Unit.MICROSECONDS_PER_SECOND, Kind.RATE))
    assert written == {
        "a_us_microseconds": 1.0,
        "a_us_microseconds_total": 1.0,
        "a_us_seconds": 1e6,
        "a_us_seconds_total": 1e6,
        "a_us_total": 1.0,
    }


def test_no_derived_name_is_a_name_of_another_field() -> None:
    fields: dict[str, set[str]] = {}
    for field in FIELDS:
        if not field.series:
            for spelling in _spellings(field):
                fields.setdefault(spelling.series, set()).add(field.name)
    assert {name: names for name, names in fields.items() if len(names) > 1} == {}
    labelled = {field.series for field in FIELDS if field.where}
    assert not labelled & fields.keys()
