"""A target fits exactly if the HPA's algorithm brings the replicas to what the work needs."""

from __future__ import annotations

from decimal import Decimal
from math import ceil

import pytest

from adapter.hpa import (
    HpaSpec,
    HpaState,
    MetricKind,
    MetricSpec,
    MetricTarget,
    Observation,
    PodState,
    TargetKind,
    Values,
    decide,
)
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.targetfit import AVERAGE, VALUE, AskedTarget, misfits

LOW, HIGH, TARGET = 1, 40, 70
WORK = (0, 160, 430, 900)
"""Percent of one GPU that the work needs, shared evenly by the replicas."""
TOTAL = 80.0
"""Memory of a GPU in GiB; each percent of the work holds half of one."""
CATALOG = Catalog()


def settled(kind: MetricKind, target: MetricTarget, form: str, work: float) -> set[int]:
    """The numbers of replicas in the last quarter of 200 syncs, from two replicas on."""
    spec = HpaSpec(HIGH, (MetricSpec(kind, "m", target),), LOW)
    state, replicas, seen = HpaState(), 2, []
    for sync in range(200):
        pods = [PodState(f"p{number}") for number in range(replicas)]
        value = 100 - work / replicas if form == "free" else min(100.0, work / replicas)
        milli = round(1000 * max(0.0, value))
        values: Values
        if kind is MetricKind.PODS:
            values = {pod.name: milli for pod in pods}
        elif kind is MetricKind.EXTERNAL:
            values = [milli] * replicas if form == "sum" else [milli]
        else:
            values = milli * replicas if form == "sum" else milli
        decision, state = decide(spec, state, Observation(replicas, pods, (values,)), 15.0 * sync)
        replicas = decision.desired
        seen.append(replicas)
    return set(seen[150:])


def needed(work: float) -> set[int]:
    """The numbers of replicas at which each is within the tolerance of its target."""
    right = {n for n in range(LOW, HIGH + 1) if abs(work / n / TARGET - 1) <= 0.1}
    return right | {min(HIGH, max(LOW, ceil(work / TARGET)))}


@pytest.mark.parametrize("kind", [MetricKind.EXTERNAL, MetricKind.OBJECT])
@pytest.mark.parametrize("form", ["sum", "mean", "max"])
@pytest.mark.parametrize("of", [VALUE, AVERAGE])
def test_a_form_fits_a_type_if_the_replicas_settle_where_the_work_needs_them(
    kind: MetricKind, form: str, of: str
) -> None:
    target = MetricTarget(TargetKind(of), 1000 * TARGET)
    right = all(settled(kind, target, form, work) <= needed(work) for work in WORK)
    metric = CATALOG.metrics["gpu_utilization"]
    asked = AskedTarget(
        metric.name, metric.unit, metric.load, form, of, Decimal(TARGET), metric.high
    )
    assert right is (not list(misfits(asked)))


def test_value_of_a_sum_runs_to_the_maximum_at_twice_the_target() -> None:
    target = MetricTarget(TargetKind.VALUE, 1000 * TARGET)
    assert settled(MetricKind.EXTERNAL, target, "sum", 160) == {HIGH}


def test_averagevalue_of_a_mean_stays_at_two() -> None:
    target = MetricTarget(TargetKind.AVERAGE_VALUE, 1000 * TARGET)
    assert settled(MetricKind.EXTERNAL, target, "mean", 900) <= {1, 2}


def test_a_metric_that_falls_runs_to_the_maximum_without_work() -> None:
    target = MetricTarget(TargetKind.AVERAGE_VALUE, 1000 * TARGET)
    assert settled(MetricKind.PODS, target, "free", 0) == {HIGH}
