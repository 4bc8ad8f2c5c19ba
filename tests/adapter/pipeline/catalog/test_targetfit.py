"""Whether a target fits its metric: form, direction and unit, from one room."""

from __future__ import annotations

from decimal import Decimal

import pytest

from adapter.answers.api.aggregate import Aggregate
from adapter.hpa import quantity
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Scope, Unit
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.servermeasures import gateway_metric
from adapter.pipeline.catalog.targetfit import (
    AVERAGE,
    VALUE,
    AskedTarget,
    MisfitKind,
    Selects,
    aggregate_of,
    form_of,
    misfits,
)

CATALOG = Catalog()


def asked(name: str, form: str, kind: str, number: str, own: bool | None = True) -> AskedTarget:
    metric = CATALOG.metrics[name]
    return AskedTarget(
        name, metric.unit, metric.load, form, kind, Decimal(number), metric.high, own
    )


def test_each_metric_of_the_catalogue_states_how_it_moves_with_the_load() -> None:
    unknown = {
        name for name, metric in CATALOG.metrics.items() if metric.load is LoadDirection.UNKNOWN
    }
    assert unknown == set()


def test_all_names_of_a_field_move_the_same_way() -> None:
    for field in CATALOG.fields.values():
        if not field.series and not field.on_demand:
            names = [name for name, *_ in field.names]
            assert {CATALOG.metrics[name].load for name in names} == {field.load}, field.name


@pytest.mark.parametrize("unit", [Unit.CELSIUS, Unit.MEGAHERTZ, Unit.CODE, Unit.DEVICES])
def test_what_cooling_limits_and_faults_move_does_not_follow_the_load(unit: Unit) -> None:
    of_unit = [metric for metric in CATALOG.metrics.values() if metric.unit is unit]
    assert of_unit
    assert {metric.load for metric in of_unit} == {LoadDirection.STEADY}


@pytest.mark.parametrize("word", ["free", "headroom", "remaining", "available"])
def test_a_name_that_says_what_is_left_falls_under_load(word: str) -> None:
    named = {name: m.load for name, m in CATALOG.metrics.items() if word in name.lower()}
    assert set(named.values()) <= {LoadDirection.FALLS}, named


@pytest.mark.parametrize(
    ("form", "kind", "own", "found"),
    [
        ("sum", VALUE, True, MisfitKind.SUM),
        ("sum", VALUE, None, MisfitKind.SUM),
        ("sum", VALUE, False, None),
        ("sum", AVERAGE, True, None),
        ("mean", AVERAGE, True, MisfitKind.LEVEL),
        ("max", AVERAGE, None, MisfitKind.LEVEL),
        ("p95", AVERAGE, False, MisfitKind.LEVEL),
        ("mean", VALUE, True, None),
    ],
)
def test_a_sum_needs_averagevalue_and_a_level_needs_value(
    form: str, kind: str, own: bool | None, found: MisfitKind | None
) -> None:
    rows = list(misfits(asked("gpu_utilization", form, kind, "70", own)))
    assert [row.kind for row in rows] == ([found] if found else [])
    if found is not None:
        again = asked("gpu_utilization", form, rows[0].type, "70", own)
        assert list(misfits(again)) == []


def test_every_aggregate_has_a_form() -> None:
    for aggregate in Aggregate:
        form = form_of("External", Combine.MEAN, aggregate.value)
        fits = VALUE if aggregate is not Aggregate.SUM else AVERAGE
        assert list(misfits(asked("gpu_utilization", form, fits, "70"))) == []


def test_a_mean_as_averagevalue_says_how_few_replicas_it_asks_for() -> None:
    (row,) = misfits(asked("gpu_utilization", "mean", AVERAGE, "70"))
    assert row.text.endswith("so for 2 at most")


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_FB_FREE", "gpu_memory_headroom_bytes"])
@pytest.mark.parametrize("averaged", [True, False])
def test_a_metric_that_falls_scales_backwards(name: str, averaged: bool) -> None:
    (row,) = misfits(asked(name, "sum", AVERAGE, "2000"), averaged=averaged)
    assert row.kind is MisfitKind.FALLS
    assert row.kind.runs_away
    assert CATALOG.metrics[row.metric].load is LoadDirection.RISES


@pytest.mark.parametrize(
    ("name", "number", "kind", "better"),
    [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "50", MisfitKind.RANGE, "500m"),
        ("vllm:kv_cache_usage_perc", "80", MisfitKind.RANGE, "800m"),
        ("gpu_utilization", "0.5", MisfitKind.UNIT, "50"),
        ("gpu_utilization", "150", MisfitKind.RANGE, "70"),
        ("gpu_memory_used_bytes", "20", MisfitKind.UNIT, "20Gi"),
        ("DCGM_FI_DEV_FB_USED", str(20 << 30), MisfitKind.UNIT, "20480"),
    ],
)
@pytest.mark.parametrize("averaged", [True, False])
def test_a_number_in_another_unit(
    name: str, number: str, kind: MisfitKind, better: str, averaged: bool
) -> None:
    (row,) = misfits(asked(name, "sum", AVERAGE, number), averaged=averaged)
    assert (row.kind, row.number) == (kind, better)


def test_a_sum_over_many_pods_of_others_may_be_above_the_maximum_of_one() -> None:
    assert list(misfits(asked("gpu_utilization", "sum", AVERAGE, "350", own=False))) == []
    assert list(misfits(asked("gpu_utilization", "sum", AVERAGE, "350", own=None))) == []
    far = asked("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "sum", AVERAGE, "50", own=None)
    assert [row.kind for row in misfits(far)] == [MisfitKind.RANGE]


@pytest.mark.parametrize(
    ("selector", "aggregate"),
    [
        (None, ""),
        ({"matchLabels": {"app": "a", "aggregate": "mean"}}, "mean"),
        (
            {"matchExpressions": [{"key": "aggregate", "operator": "In", "values": ["max"]}]},
            "max",
        ),
        ({"matchExpressions": "x", "matchLabels": 3}, ""),
    ],
)
def test_the_aggregate_of_a_selector(selector: dict[str, object] | None, aggregate: str) -> None:
    assert aggregate_of(selector) == aggregate


def test_a_replica_of_several_pods_is_judged_by_what_the_selector_matches() -> None:
    of_device = asked("gpu_utilization", "mean", AVERAGE, "70")._replace(scope=Scope.DEVICE)
    leaders = of_device._replace(selects=Selects.LEADERS)
    (row,) = misfits(leaders, averaged=True)
    assert (row.kind, row.aggregate, row.kind.runs_away) == (MisfitKind.LEADERS, "mean", False)
    assert not list(misfits(leaders._replace(of_groups=True), averaged=True))
    assert not list(misfits(leaders._replace(scope=Scope.SERVER), averaged=True))
    members = of_device._replace(selects=Selects.MEMBERS, of_groups=True)
    (row,) = misfits(members, averaged=True)
    assert row.kind is MisfitKind.MEMBERS
    assert row.kind.runs_away
    total = asked("gpu_utilization", "sum", AVERAGE, "280")._replace(selects=Selects.MEMBERS)
    assert not list(misfits(total))
    assert [row.kind for row in misfits(total._replace(form="mean", type=VALUE))][:1] == [
        MisfitKind.MEMBERS
    ]


TTFT = f"{Latency.FIRST_TOKEN}_p90"
ITL = f"{Latency.OUTPUT_TOKEN}_mean"


@pytest.mark.parametrize(
    ("name", "number", "better"),
    [
        (TTFT, "500", "500m"),
        (TTFT, "1", None),
        (TTFT, "100m", None),
        (gateway_metric(TTFT), "800", "800m"),
        (ITL, "1", "100m"),
        (ITL, "50", "50m"),
        (ITL, "50m", None),
        (f"{Latency.REQUEST}_p99", "600", None),
        (f"{Latency.REQUEST}_p99", "30000", "30000m"),
        (f"{Latency.QUEUE}_p95", "2000", "2000m"),
        ("inference_output_tokens_per_second", "5000", None),
    ],
)
@pytest.mark.parametrize("averaged", [True, False])
def test_the_target_of_a_latency_is_in_seconds(
    name: str, number: str, better: str | None, averaged: bool
) -> None:
    target = asked(name, "sum", AVERAGE, str(quantity.parse(number)))
    rows = [(row.kind, row.number) for row in misfits(target, averaged=averaged)]
    assert rows == ([(MisfitKind.RANGE, better)] if better else [])


@pytest.mark.parametrize("own", [True, False, None])
def test_a_latency_is_not_an_amount_that_a_target_divides(own: bool | None) -> None:
    """Each replica takes its part of a gateway's queue, and none of its latency."""
    (row,) = misfits(asked(gateway_metric(TTFT), "mean", AVERAGE, "1", own))
    assert (row.kind, row.type) == (MisfitKind.LEVEL, VALUE)
    assert list(misfits(asked(gateway_metric(TTFT), "mean", VALUE, "1", own))) == []


@pytest.mark.parametrize("kind", [VALUE, AVERAGE])
def test_a_sum_of_latencies_of_other_pods_means_nothing(kind: str) -> None:
    (row,) = misfits(asked(gateway_metric(TTFT), "sum", kind, "1", own=False))
    assert (row.kind, row.aggregate) == (MisfitKind.SUM, "mean")


def test_a_sum_of_latencies_of_the_scaled_pods_is_the_latency_times_the_replicas() -> None:
    assert list(misfits(asked(TTFT, "sum", AVERAGE, "1"))) == []
    assert [row.type for row in misfits(asked(TTFT, "sum", VALUE, "1"))] == [AVERAGE]
