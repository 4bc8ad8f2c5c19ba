"""The catalogue: names, units, and which fields a metric uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adapter
from adapter.pipeline.catalog import FIELDS, METRICS, VENDORS, Catalog, built_in
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.formulas import Scaled
from adapter.pipeline.catalog.metric import Combine, Kind, Metric, Unit

CATALOG = Catalog()

VERBATIM = [
    ("DCGM_FI_DEV_GPU_UTIL", Unit.PERCENT),
    ("DCGM_FI_DEV_GPU_UTIL_RATIO", Unit.RATIO),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", Unit.PERCENT),
    ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", Unit.RATIO),
    ("DCGM_FI_DEV_FB_USED", Unit.MEBIBYTES),
    ("DCGM_FI_DEV_FB_FREE", Unit.MEBIBYTES),
    ("DCGM_FI_DEV_FB_RESERVED", Unit.MEBIBYTES),
    ("DCGM_FI_DEV_FB_TOTAL", Unit.MEBIBYTES),
    ("DCGM_FI_DEV_FB_USED_BYTES", Unit.BYTES),
    ("DCGM_FI_DEV_FB_CAPACITY_BYTES", Unit.BYTES),
    ("DCGM_FI_DEV_FB_USED_PERCENT", Unit.RATIO),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", Unit.RATIO),
    ("DCGM_FI_PROF_SM_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_SM_OCCUPANCY", Unit.RATIO),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_DRAM_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", Unit.RATIO),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", Unit.RATIO),
    ("DCGM_FI_DEV_POWER_USAGE", Unit.WATTS),
    ("DCGM_FI_DEV_GPU_TEMP", Unit.CELSIUS),
    ("DCGM_FI_DEV_XID_ERRORS", Unit.CODE),
    ("dcgm_gpu_utilization", Unit.PERCENT),
]
NEUTRAL = [
    ("gpu_utilization", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_memory_utilization", Unit.PERCENT, Combine.MEAN, Kind.LAST),
    ("gpu_memory_used_bytes", Unit.BYTES, Combine.SUM, Kind.LAST),
    ("gpu_memory_total_bytes", Unit.BYTES, Combine.SUM, Kind.LAST),
    ("gpu_memory_bandwidth_utilization", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_sm_activity", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_sm_occupancy", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_tensor_activity", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_power_watts", Unit.WATTS, Combine.MEAN, Kind.LAST),
    ("gpu_temperature_celsius", Unit.CELSIUS, Combine.MEAN, Kind.LAST),
    ("gpu_count", Unit.DEVICES, Combine.SUM, Kind.LAST),
    ("gpu_utilization_max", Unit.PERCENT, Combine.MAX, Kind.MEAN),
    ("gpu_utilization_imbalance", Unit.PERCENT, Combine.SPREAD, Kind.MEAN),
    ("gpu_utilization_of_request", Unit.PERCENT, Combine.MEAN, Kind.MEAN),
    ("gpu_memory_headroom_bytes", Unit.BYTES, Combine.SUM, Kind.LAST),
    ("inference_requests_waiting", Unit.REQUESTS, Combine.SUM, Kind.LAST),
    ("inference_requests_running", Unit.REQUESTS, Combine.SUM, Kind.LAST),
    ("inference_kv_cache_utilization", Unit.PERCENT, Combine.MEAN, Kind.LAST),
    *(
        (f"{prefix}_{latency}_seconds_{statistic}", Unit.SECONDS, Combine.MEAN, Kind.HISTOGRAM)
        for prefix in ("inference", "inference_gateway")
        for latency in ("time_to_first_token", "time_per_output_token", "request", "queue")
        for statistic in ("p50", "p90", "p95", "p99", "mean")
    ),
    *(
        (f"{prefix}_{what}_tokens_per_second", Unit.TOKENS_PER_SECOND, Combine.SUM, Kind.RATE)
        for prefix in ("inference", "inference_gateway")
        for what in ("output", "prompt")
    ),
    ("inference_requests_per_second", Unit.REQUESTS_PER_SECOND, Combine.SUM, Kind.RATE),
    ("inference_gateway_requests_per_second", Unit.REQUESTS_PER_SECOND, Combine.SUM, Kind.RATE),
    ("inference_gateway_requests_waiting", Unit.REQUESTS, Combine.SUM, Kind.LAST),
    ("inference_gateway_requests_running", Unit.REQUESTS, Combine.SUM, Kind.LAST),
    ("inference_slo_ratio", Unit.RATIO, Combine.MEAN, Kind.MEAN),
]


@pytest.mark.parametrize(("name", "unit"), VERBATIM)
def test_an_exporters_name_is_served_in_its_own_unit_in_either_case(name: str, unit: Unit) -> None:
    assert CATALOG.metrics[name].unit is unit
    assert CATALOG.metrics[name.lower()].unit is unit


@pytest.mark.parametrize(("name", "unit", "combine", "kind"), NEUTRAL)
def test_each_neutral_name_has_one_meaning(
    name: str, unit: Unit, combine: Combine, kind: Kind
) -> None:
    metric = CATALOG.metrics[name]
    assert (metric.unit, metric.over_devices, metric.kind) == (unit, combine, kind)


def test_no_other_neutral_names_are_served() -> None:
    assert {metric.name for metric in METRICS} == {name for name, *_ in NEUTRAL}


def test_every_series_belongs_to_one_query_group() -> None:
    grouped = [name for names in CATALOG.groups.values() for name in names]
    on_demand = frozenset().union(*CATALOG.on_demand.values())
    assert sorted(grouped) == sorted(CATALOG.series | on_demand)


def test_prometheus_looks_the_names_of_a_group_up_in_its_index() -> None:
    """Beyond 256 alternatives, it compares the pattern with every name that it has.

    ``maxSetMatches`` in prometheus/prometheus, ``model/labels/regexp.go``.
    """
    assert {group: len(names) for group, names in CATALOG.groups.items() if len(names) > 256} == {}


def test_utilisation_and_its_fallback_are_in_one_query() -> None:
    """Whether an exporter has GPU_UTIL at all must be known when GR_ENGINE_ACTIVE arrives."""
    group = CATALOG.groups["utilization"]
    assert {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"} <= set(group)


def test_every_field_is_documented_under_its_vendor() -> None:
    vendors = {field.name for fields in VENDORS.values() for field in fields}
    assert vendors == {field.name for field in FIELDS}


def test_catalogue_names_are_unique() -> None:
    names = [name for field in FIELDS for name in (field.name, *field.legacy)]
    names += [name for field in FIELDS for name, *_ in field.renamed]
    assert len(names) == len(set(names))


def test_a_users_metric_may_have_the_name_of_an_alias() -> None:
    field = Field("vllm_num_requests_waiting", Unit.CODE, 1e6, series="mine")
    metric = Metric(field.name, Unit.CODE, Kind.LAST, (Scaled(field.name),), Combine.MAX)
    assert field.name not in CATALOG.own_names
    assert "vllm:num_requests_waiting" in CATALOG.own_names
    assert CATALOG.extended([field], [metric]).metrics[field.name] is metric


def test_a_user_metric_is_one_field_and_one_metric() -> None:
    mine = Field("my_queue", Unit.CODE, 1e6, group="mine", series="my_queue")
    metric = Metric("queue_depth", Unit.CODE, Kind.LAST, (Scaled("my_queue", 2.0),), Combine.MAX)
    catalog = Catalog((*FIELDS, mine), (*METRICS, metric))
    assert "my_queue" in catalog.series
    assert catalog.metrics["queue_depth"] is metric
    assert catalog.groups["mine"] == ("my_queue",)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9))
def test_every_combination_except_a_sum_is_within_the_range_of_its_values(
    values: list[float],
) -> None:
    for combine in (Combine.MEAN, Combine.MAX, Combine.MIN):
        slack = 1e-9 * max(values)
        assert min(values) - slack <= combine.of(values) <= max(values) + slack
    assert Combine.SUM.of(values) == pytest.approx(sum(values))


def test_a_process_makes_the_built_in_catalogue_once() -> None:
    """It takes 5 ms, and a command made six of them."""
    assert built_in() is built_in()
    again = [
        str(file)
        for file in Path(adapter.__path__[0]).rglob("*.py")
        if file.name != "table.py" and "Catalog()" in file.read_text()
    ]
    assert again == []
