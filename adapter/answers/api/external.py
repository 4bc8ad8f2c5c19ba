"""Serve the catalogue as ``external.metrics.k8s.io``: one series per pod, selected by labels.

The HPA controller adds the series up, so ``AverageValue`` is the mean over the pods, as
with a Pods metric. The adapter serves either all of the series or none: a missing series
would count as 0 and scale in. With the label ``aggregate`` in the selector, the answer is one
series over the pods, for a target of type ``Value``.

Names are in lower case, because client-go converts the resource part of a request to lower case
(``k8s.io/client-go/rest/request.go``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from adapter.answers.api.aggregate import (
    READ_STEP,
    Aggregate,
    PodValue,
    describe_missing,
    find_missing,
    pool_latencies,
    read_pods,
    selector_of,
    split_aggregate,
)
from adapter.answers.api.expectedpods import expected_pods
from adapter.answers.api.provider import Values
from adapter.answers.promises.ratios import PodQuestion, PromisedRatios
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.serieslabels import (
    OWN_LABELS,
    POD_LABELS,
    selects_value,
)
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.names import Names
from adapter.pipeline.catalog.targetfit import AGGREGATE
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup, workload_kind
from adapter.pipeline.cluster.placeholder import working_pods
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import workloads
from apiservice.errors import MetricUnknown, Unavailable
from apiservice.labels.requirement import Requirement
from apiservice.labels.selector import Selector
from apiservice.provider import Answer, ExternalQuery, ExternalValue
from apiservice.runtime.steps import Steps, parts
from apiservice.wire.quantity import to_milli

log = structlog.get_logger(__name__)


class _Wanted(NamedTuple):
    """The parts of a selector over series, by what they are matched against."""

    labels: Selector
    """Matched against the pods' own labels."""
    places: Selector
    """Matched against :data:`POD_LABELS`."""
    devices: Selector
    """Matched against labels of the devices; of a promised metric, its promise."""
    aggregate: Aggregate | None


class GpuExternalMetrics:
    """Implements :class:`apiservice.provider.ExternalMetricsProvider`.

    Args:
        catalog: the metrics.
        values: their values.
        objects: the pods.
        absent: counts pods without a value, by reason.
        ratios: answers questions about pods.
    """

    def __init__(
        self,
        catalog: Names,
        values: Values,
        objects: ObjectLookup,
        absent: Counter[str],
        ratios: PromisedRatios | None = None,
    ) -> None:
        self._catalog = catalog
        self._values = values
        self._objects = objects
        self._absent = absent
        self._ratios = ratios or PromisedRatios(objects.pod_index)
        self._named: tuple[Mapping[str, Metric], Mapping[str, Metric]] = ({}, {})
        """The catalogue's metrics, and the same metrics by their lower-case names."""

    @property
    def version(self) -> int:
        """A number that grows with every change of a value or of the cluster."""
        return self._values.version + self._objects.version

    def metrics(self) -> Sequence[str]:
        """The name of every metric, in lower case."""
        return tuple(self._by_name())

    def values(self, query: ExternalQuery, now: float) -> Steps[Answer[ExternalValue]]:
        """See :meth:`apiservice.provider.ExternalMetricsProvider.values`.

        Raises:
            Unavailable: a selected pod has no value, and the message names it and the reason; or
                the API cannot express a value.
        """
        metric = self._by_name().get(query.metric.lower())
        if metric is None:
            raise MetricUnknown(query.metric)
        index = self._objects.pod_index
        if not index.synced:
            raise Unavailable("the pods have not been listed yet; /readyz/pods says why")
        wanted = _split_selector(query.selector, metric)
        snapshot = self._values.snapshot
        pods = yield from _pods(index, query.namespace, wanted)
        question = PodQuestion(metric, wanted.devices, snapshot, now)
        about = yield from self._ratios.about(pods, question)
        values = yield from read_pods((pod for pod in pods if not pod.deleting), metric, about)
        how = wanted.aggregate or Aggregate.SUM
        values = list((yield from pool_latencies(values, metric, how, snapshot.options)))
        expected = yield from expected_pods(pods, metric, snapshot)
        lacking = yield from find_missing(values, expected)
        readings = yield from self._readings(values, lacking, metric, wanted)
        expires = min((reading.expires for _, reading in readings), default=float("inf"))
        if wanted.aggregate is not None:
            series = _aggregated_values(query.metric, wanted.aggregate, [r for _, r in readings])
            return Answer(series, expires)
        series = []
        for those in parts(readings, READ_STEP):
            series += [_series(query.metric, pod, reading) for pod, reading in those]
            yield
        return Answer(series, expires)

    def _readings(
        self,
        pod_values: Sequence[PodValue],
        lacking: Sequence[PodValue],
        metric: Metric,
        wanted: _Wanted,
    ) -> Steps[list[tuple[Pod, Reading]]]:
        readings = [(pod, value) for pod, value in pod_values if isinstance(value, Reading)]
        yield
        self._absent.update(value.reason for _, value in pod_values if isinstance(value, Absence))
        yield
        expected = len(readings) + len(lacking)
        if not (wanted.aggregate or Aggregate.SUM).speaks(len(readings), expected):
            raise Unavailable(f"{metric.name}: {describe_missing(lacking, expected)}")
        return readings

    def _by_name(self) -> Mapping[str, Metric]:
        of, by_name = self._named
        if of is not self._catalog.metrics:
            of = self._catalog.metrics
            by_name = by_lower_case(of)
            self._named = (of, by_name)
        return by_name


def by_lower_case(metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """Return the metrics by lower-case name; a metric whose name is lower-case keeps it.

    Built-in names that differ only in case mean the same metric. Of two metrics of the
    user, the first gets the name, and a log line names the one without.
    """
    by_name = {name: metric for name, metric in metrics.items() if name == name.lower()}
    for name, metric in metrics.items():
        holder = by_name.setdefault(name.lower(), metric)
        if (holder.unit, holder.formulas) != (metric.unit, metric.formulas):
            log.warning("no external name is left for a metric", metric=name, has_it=holder.name)
    return by_name


def _split_selector(selector: Selector, metric: Metric) -> _Wanted:
    """Split a selector into its parts. It is a conjunction, so all parts must match.

    Raises:
        BadQuery: ``aggregate`` has an invalid value, or occurs twice.
    """
    selector, aggregate = split_aggregate(selector)
    parts: dict[str, list[Requirement]] = {"labels": [], "places": [], "devices": []}
    for requirement in selector.requirements:
        if selects_value(requirement.key, metric.name):
            parts["devices"].append(requirement)
        else:
            parts["places" if requirement.key in POD_LABELS else "labels"].append(requirement)
    made = {name: selector_of(requirements) for name, requirements in parts.items()}
    return _Wanted(made["labels"], made["places"], made["devices"], aggregate)


def _pods(index: PodIndex, namespace: str, wanted: _Wanted) -> Steps[Sequence[Pod]]:
    pods = yield from index.select_in_steps(namespace, wanted.labels)
    if wanted.places.empty:
        return working_pods(pods)
    matching: list[Pod] = []
    for some in parts(pods, READ_STEP):
        matching += [pod for pod in some if wanted.places.matches(_places(pod))]
        yield
    return working_pods(matching)


def _places(pod: Pod) -> dict[str, str]:
    """Return the pod's :data:`POD_LABELS`; the workload is the topmost that is known."""
    places = {"pod": pod.ref.name}
    if pod.node:
        places["node"] = pod.node
    if above := workloads(pod):
        resource, name = above[-1]
        places["workload"] = name
        places["workload_kind"] = workload_kind(resource, pod)[1]
    return places


def _series(name: str, pod: Pod, reading: Reading) -> ExternalValue:
    """Return a pod's series, with the device labels on which all of its devices agree."""
    first, *others = [part.labels for part in reading.devices] or [{}]
    common = {k: v for k, v in first.items() if all(v == other.get(k) for other in others)}
    pod_labels = {name: value for name, value in pod.labels.items() if name not in OWN_LABELS}
    labels = {**pod_labels, **common, **_places(pod)}
    return _value(name, labels, reading.value, int(reading.time), reading.window)


def _aggregated_values(
    name: str, how: Aggregate, readings: Sequence[Reading]
) -> list[ExternalValue]:
    if not readings:
        return []
    value = how.of([reading.value for reading in readings])
    oldest = int(min(reading.time for reading in readings))
    return [_value(name, {AGGREGATE: how.value}, value, oldest, readings[0].window)]


def _value(
    name: str, labels: Mapping[str, str], value: float, time: int, window: int | None
) -> ExternalValue:
    try:
        # The HPA treats a negative sum as an overflow and scales to the maximum.
        milli = to_milli(max(0.0, value))
    except ValueError as error:
        raise Unavailable(f"{name}: {error}") from None
    return ExternalValue(name, labels, milli, time, window)
