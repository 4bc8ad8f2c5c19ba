"""Answer custom metrics queries from the snapshot: objects, values, and how long they are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from adapter.answers.api.aggregate import (
    Aggregate,
    combine,
    describe_missing,
    find_missing,
    is_enough,
    pool_latencies,
    read_pods,
    reading_step,
    split_aggregate,
)
from adapter.answers.api.expectedpods import expected_pods
from adapter.answers.api.groupvalues import GroupValues
from adapter.answers.promises.ratios import PodQuestion, PromisedRatios
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.reasons import explanation
from adapter.pipeline.catalog.metric import Combine, Metric, Scope
from adapter.pipeline.catalog.names import Names
from adapter.pipeline.cluster.lookup import LISTED, NAMESPACES, NODES, PODS, ObjectLookup
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.errors import MetricNotFound, MetricUnknown, Unavailable
from apiservice.provider import (
    Answer,
    MetricResource,
    MetricValue,
    ObjectQuery,
    ObjectReference,
)
from apiservice.runtime.steps import Steps
from apiservice.wire.quantity import to_milli

_HOW: Final = Aggregate.MEAN
"""How the latencies of an object's pods are combined."""
TOO_LARGE: Final = "too_large"
"""The API's quantity cannot express the value. It would invalidate the whole list."""


class _Found:
    """The values of an answer, and the time at which the first of them expires."""

    def __init__(self) -> None:
        self.items: list[MetricValue] = []
        self.expires = float("inf")
        self.why = ""
        """Why the last object without a value has none."""

    def add(self, value: MetricValue, expires: float) -> None:
        """Add a value."""
        self.items.append(value)
        self.expires = min(self.expires, expires)


class _Asked(NamedTuple):
    """A query, with the snapshot and the time for the answer."""

    query: ObjectQuery
    metric: Metric
    snapshot: Snapshot
    now: float


class Values(Protocol):
    """The current values."""

    @property
    def snapshot(self) -> Snapshot:
        """Return the values at one time."""

    @property
    def version(self) -> int:
        """A number that grows with every change of the values."""


class GpuMetricsProvider:
    """Implements :class:`apiservice.provider.CustomMetricsProvider`."""

    def __init__(
        self,
        names: Names,
        values: Values,
        objects: ObjectLookup,
        ratios: PromisedRatios | None = None,
    ) -> None:
        self._names = names
        self._values = values
        self._objects = objects
        self._ratios = ratios or PromisedRatios(objects.pod_index)
        self._listed: tuple[Mapping[str, Metric], Sequence[MetricResource]] = ({}, ())
        """The metrics of the last discovery, and its list."""
        self.absent: Counter[str] = Counter()
        """Pods that a query selected and that have no value, by reason.

        They are counted when an answer is prepared, not each time it is repeated.
        """

    @property
    def version(self) -> int:
        """A number that grows with every change of a value or of the cluster."""
        return self._values.version + self._objects.version

    def resources(self) -> Sequence[MetricResource]:
        """The catalogue's metrics under every resource of the discovery document."""
        metrics = self._names.metrics
        if self._listed[0] is not metrics:
            self._listed = (metrics, tuple(_resources(metrics, self._names.principal)))
        return self._listed[1]

    def values(self, query: ObjectQuery, now: float) -> Steps[Answer[MetricValue]]:
        """See :meth:`apiservice.provider.CustomMetricsProvider.values`."""
        metric = self._names.metrics.get(query.metric)
        if metric is None:
            raise MetricUnknown(query.metric, query.resource)
        if not self._objects.pod_index.synced:
            raise Unavailable("the pods have not been listed yet; /readyz/pods says why")
        request = _Asked(query, metric, self._values.snapshot, now)
        if query.resource == PODS:
            served = yield from self._pods(request)
        elif query.resource == NODES:
            served = yield from self._nodes(request)
        else:
            served = yield from self._groups(request)
        if query.name is not None and not served.items:
            raise MetricNotFound(query.metric, query.resource, query.name, served.why)
        return Answer(served.items, served.expires)

    def _pods(self, request: _Asked) -> Steps[_Found]:
        served = _Found()
        selector, how = split_aggregate(request.query.metric_selector)
        question = PodQuestion(request.metric, selector, request.snapshot, request.now)
        pods = yield from self._objects.pods(request.query)
        about = yield from self._ratios.about(pods, question)
        groups = None
        if how is not None:
            groups = GroupValues(self._objects.pod_index, self._ratios, about, question, how)
        step = reading_step(request.metric)
        for pod in pods:
            reading = about(pod) if groups is None else (yield from groups.of(pod))
            if isinstance(reading, Reading):
                self._serve(served, pod, request.metric.name, reading)
            else:
                self.absent[reading.reason] += 1
                served.why = "" if request.query.name is None else self._why(reading, pod)
            if step.spent(reading.extent):
                yield
        return served

    def _why(self, absence: Absence, pod: Pod | None) -> str:
        """Return the message about an absence: the cause, the reason and the fix."""
        why = explanation(absence, pod, self._find)
        return f"{why.message} ({why.reason}); fix: {why.hint}"

    def _find(self, ref: PodRef) -> Pod | None:
        return self._objects.pod_index.get(*ref)

    def _nodes(self, request: _Asked) -> Steps[_Found]:
        query, metric, snapshot, now = request
        yield from snapshot.survey()
        served = _Found()
        for name in self._objects.node_names(query, tuple(snapshot.nodes())):
            if query.namespace is not None:
                self._objects.check_node(query, name, snapshot.namespaces_on(name))
            reading = snapshot.node(name, metric.name, query.metric_selector, now)
            if isinstance(reading, Reading):
                self._serve(served, ObjectReference("Node", name), metric.name, reading)
            elif query.name is not None:
                served.why = self._why(reading, None)
            yield
        return served

    def _groups(self, request: _Asked) -> Steps[_Found]:
        metric = request.metric
        summed = metric.over_pods is Combine.SUM
        selector = request.query.metric_selector
        question = PodQuestion(metric, selector, request.snapshot, request.now)
        served = _Found()
        for reference, pods in (yield from self._objects.groups(request.query)):
            expected = yield from expected_pods(pods, metric, request.snapshot)
            about = yield from self._ratios.about(expected, question)
            values = yield from read_pods(expected, metric, about)
            values = list(
                (yield from pool_latencies(values, metric, _HOW, request.snapshot.options))
            )
            self.absent.update(value.reason for _, value in values if isinstance(value, Absence))
            yield
            readings = [value for _, value in values if isinstance(value, Reading)]
            lacking = yield from find_missing(values, expected)
            whole = len(readings) + len(lacking)
            if lacking:
                served.why = describe_missing(lacking, whole)
            if readings and is_enough(len(readings), whole, summed=summed):
                combined = combine(metric.over_pods, readings, partial=len(readings) < whole)
                yield
                self._serve(served, reference, metric.name, combined)
        return served

    def _serve(
        self, into: _Found, thing: Pod | ObjectReference, metric: str, reading: Reading
    ) -> None:
        # The object is cached with its reading, so that it is rendered once, and nothing is kept
        # of a pod that no longer exists.
        cached = reading.served
        if cached is not None and cached[0] == thing and cached[1] == metric:
            into.add(cached[2], reading.expires)
            return
        reference = (
            ObjectReference("Pod", thing.name, thing.namespace) if isinstance(thing, Pod) else thing
        )
        try:
            milli = to_milli(reading.value)
        except ValueError:
            self.absent[TOO_LARGE] += 1
            return
        value = MetricValue(reference, metric, milli, int(reading.time), reading.window)
        reading.serve((thing, metric, value))
        into.add(value, reading.expires)


def _resources(metrics: Mapping[str, Metric], principal: Sequence[str]) -> Iterator[MetricResource]:
    """Yield the metrics of each resource: pods list every alias, other resources one name each."""
    for name in metrics:
        yield MetricResource(PODS, name, namespaced=True)
    for resource in (*LISTED, NAMESPACES, NODES):
        for name in principal:
            if resource == NODES and metrics[name].scope is Scope.SERVER:
                continue  # a server metric is about a workload, not about a node
            yield MetricResource(resource, name, namespaced=resource in LISTED)
