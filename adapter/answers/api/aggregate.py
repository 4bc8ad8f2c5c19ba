"""Aggregate the values of several pods into one number, if enough of them have a value.

A sum is served only if every pod that should have a value has one. A sum without a pod would
be too low, and a value that is too low scales in (docs/decisions/0003).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.pipeline.attribution.latencies import counted_servers, latency
from adapter.pipeline.attribution.reading import Absence, DeviceReading, Reading
from adapter.pipeline.attribution.values import NOT_SELECTED
from adapter.pipeline.catalog.increases import Increase, sum_increases
from adapter.pipeline.catalog.metric import Combine, Kind, Metric
from adapter.pipeline.catalog.targetfit import AGGREGATE
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.errors import BadQuery
from apiservice.labels.requirement import Requirement, conjunction, predicate
from apiservice.labels.selector import Selector
from apiservice.runtime.steps import StepBudget, Steps, parts

_NOT_AWAITED: Final = frozenset(
    {Mismatch.FINISHED, Mismatch.NOT_RUNNING, Mismatch.NOT_READY, NOT_SELECTED}
)
_STEP: Final = 64
"""Pods, or histograms of servers, that one step processes."""
READ_STEP: Final = 16
"""Devices and servers that one step reads: 0.1 ms each if the answer is not cached."""
_NAMED: Final = 3
"""Pods that a message names; it only counts the others."""


class Aggregate(StrEnum):
    """How the values of several pods are combined."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    P95 = "p95"
    """The smallest value that at least 95 % of the pods do not exceed (nearest rank).

    It is always a measured value. With up to nineteen pods it is the largest.
    """

    def of(self, values: Sequence[float]) -> float:
        """Combine at least one value."""
        if self is Aggregate.SUM:
            return math.fsum(values)
        if self is Aggregate.MEAN:
            # Rounding must not raise a mean above the largest value.
            return min(math.fsum(values) / len(values), max(values))
        if self is Aggregate.MAX:
            return max(values)
        if self is Aggregate.MIN:
            return min(values)
        return sorted(values)[math.ceil(len(values) * 95 / 100) - 1]

    def speaks(self, have: int, expected: int) -> bool:
        """Return whether readings of ``have`` pods may represent all ``expected`` pods."""
        return is_enough(have, expected, summed=self is Aggregate.SUM)


def selector_of(requirements: Sequence[Requirement]) -> Selector:
    """Return the selector of what meets all requirements."""
    return Selector(tuple(requirements), conjunction([predicate(row) for row in requirements]))


def split_aggregate(selector: Selector) -> tuple[Selector, Aggregate | None]:
    """Split a selector into the rest and the form that its label ``aggregate`` asks for.

    Raises:
        BadQuery: ``aggregate`` has an invalid value, or occurs twice.
    """
    aggregates = [row for row in selector.requirements if row.key == AGGREGATE]
    if not aggregates:
        return selector, None
    if len(aggregates) > 1:
        raise BadQuery("labelSelector: aggregate is given more than once")
    _, op, values = aggregates[0]
    if op not in ("=", "==", "in") or len(values) != 1 or values[0] not in list(Aggregate):
        raise BadQuery(f"labelSelector: aggregate must be one of {', '.join(Aggregate)}")
    rest = [row for row in selector.requirements if row.key != AGGREGATE]
    return selector_of(rest), Aggregate(values[0])


class PodValue(NamedTuple):
    """A pod and its reading or absence."""

    pod: Pod
    value: Reading | Absence


def reading_step(metric: Metric, most: int = READ_STEP) -> StepBudget:
    """Return after how much reading a step ends, counted by ``extent``.

    A pod may have hundreds of servers, and a latency reads each of their buckets, also where it
    finds too few pages for a value: then a step is one pod.
    """
    return StepBudget(1 if metric.kind is Kind.HISTOGRAM else most)


def read_pods(
    pods: Iterable[Pod], metric: Metric, ask: Callable[[Pod], Reading | Absence]
) -> Steps[list[PodValue]]:
    """Return pods with their values of a metric."""
    values: list[PodValue] = []
    step = reading_step(metric)
    for pod in pods:
        value = ask(pod)
        values.append(PodValue(pod, value))
        if step.spent(value.extent):
            yield
    return values


def pool_latencies(
    pod_values: Sequence[PodValue], metric: Metric, how: Aggregate, options: TelemetryOptions
) -> Steps[Sequence[PodValue]]:
    """Return the pods with what an aggregate of their values is made of.

    Latencies do not add up, and their mean is that of no request. So a sum or mean of latencies
    takes for each pod the latency of the requests of all pods, which also counts pods that have too
    few requests for one of their own. Other aggregates leave such pods out, if others have one.
    """
    if metric.kind is not Kind.HISTOGRAM:
        return pod_values
    read = [row for row in pod_values if counted_servers(row.value)]
    if how not in (Aggregate.SUM, Aggregate.MEAN):
        usable = [
            row
            for row in pod_values
            if isinstance(row.value, Reading) or not counted_servers(row.value)
        ]
        return usable if any(isinstance(row.value, Reading) for row in usable) else pod_values
    whole: Increase | None = None
    step = StepBudget(_STEP)
    devices: list[DeviceReading] = []
    for row in read:
        for some in parts(counted_servers(row.value), _STEP):
            devices += some
            increases = [part.increase for part in some if part.increase is not None]
            whole = sum_increases([whole, *increases] if whole else increases)
            if step.spent(len(some)):
                yield
    if whole is None:
        return pod_values
    together = latency(metric, whole, devices, options)
    refs = {row.pod.ref for row in read}
    return [PodValue(pod, together if pod.ref in refs else value) for pod, value in pod_values]


def find_missing(pod_values: Sequence[PodValue], expected: Sequence[Pod]) -> Steps[list[PodValue]]:
    """Return the pods that should have a value and have none.

    Pods that do not run yet or no longer run are not included, nor are pods whose devices the
    selector excludes.

    Args:
        pod_values: every selected pod.
        expected: those of them that should have a value, running or not
            (:func:`adapter.answers.api.expectedpods.expected_pods`).
    """
    without: list[PodValue] = []
    for some in parts(pod_values, _STEP):
        without += [
            row
            for row in some
            if isinstance(row.value, Absence) and row.value.reason not in _NOT_AWAITED
        ]
        yield
    if not without:
        return without
    refs: set[PodRef] = set()
    for pods in parts(expected, _STEP):
        refs.update(pod.ref for pod in pods)
        yield
    return [row for row in without if row.pod.ref in refs]


def is_enough(have: int, expected: int, *, summed: bool) -> bool:
    """Return whether readings of ``have`` pods may represent all ``expected`` pods.

    A sum needs all pods, because a sum that is too low scales in. Other aggregates need half,
    which is also the default bound for the devices of one pod.
    """
    return have == expected if summed else 2 * have >= expected


def describe_missing(lacking: Sequence[PodValue], of: int) -> str:
    """Describe which pods lack a value: ``2 of 5 pods have no value: a (stale), b (stale)``."""
    names = ", ".join(
        f"{pod.ref.name} ({value.reason})"
        for pod, value in lacking[:_NAMED]
        if isinstance(value, Absence)
    )
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    return f"{len(lacking)} of {of} pods have no value: {names}{more}"


def combine(how: Combine | Aggregate, readings: Sequence[Reading], *, partial: bool) -> Reading:
    """Combine the readings of several pods, at least one, into one reading.

    Pods may share one reading, of the requests of all of them: its devices count once.
    """
    distinct = {id(reading): reading for reading in readings}.values()
    return Reading(
        value=how.of([reading.value for reading in readings]),
        time=min(reading.time for reading in readings),
        window=readings[0].window,
        expires=min(reading.expires for reading in readings),
        devices=tuple(device for reading in distinct for device in reading.devices),
        partial=partial or any(reading.partial for reading in readings),
    )
